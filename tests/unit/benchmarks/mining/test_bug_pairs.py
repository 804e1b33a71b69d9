"""Pairs of faults: refused ones are made up for by others, and there are no more than wanted."""

import asyncio
import random
from dataclasses import asdict

import pytest

from dgm.benchmarks.environments import Environment
from dgm.benchmarks.mining.bugs import (
    TRIES,
    CoverageMap,
    Ground,
    bug_id,
    choose_bugs,
    choose_pairs,
    place_bugs,
)
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.validation import Validated, Workbench
from dgm.domain import Entry

WANTED = 6
SOURCE = "".join(f"def f{number}(x):\n    return x + {number}\n\n\n" for number in range(8)).encode()


@pytest.fixture
def ground():
    """Eight functions, each run by a test of its own and by one of all."""
    lines = {f"t{number}": 1 << (4 * number + 2) for number in range(8)}
    lines["all"] = sum(lines.values())
    covered = CoverageMap({"a.py": lines})
    return Ground({"a.py": Entry(SOURCE)}, Environment.__new__(Environment), tuple(lines), covered, "/work")


def place(ground, refused, folder):
    """Places bugs of which single ones are all kept, and as many of the first pairs refused."""
    singles = choose_bugs(ground, WANTED * TRIES, random.Random("0/bugs"))
    pairs = choose_pairs(singles[:WANTED], WANTED, random.Random("0/pairs"))
    assert len(pairs) > 1
    journal = MiningJournal(folder / "journal.jsonl", {})
    for number, bug in enumerate((*pairs, *singles)):
        placed = Validated("it is refused" if number < refused else "", "", ("all",), ("t0",))
        journal.put(f"bug {bug_id(bug)}", asdict(placed))

    async def collect():
        return [
            pair async for pair in place_bugs(ground, WANTED, Workbench(None, {}, "python", None), journal, 0)
        ]

    tried = [placed for bug, placed in asyncio.run(collect()) if len(bug.sites) > 1]
    return [bool(placed.reason) for placed in tried]


def test_as_many_pairs_are_kept_as_are_wanted(ground, tmp_path):
    assert place(ground, 0, tmp_path) == [False]


def test_another_pair_is_tried_where_one_is_refused(ground, tmp_path):
    assert place(ground, 1, tmp_path) == [True, False]
