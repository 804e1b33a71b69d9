"""The programs that make the tables of ``docs/policies.md``."""

import json
import sys
from pathlib import Path

import pytest

from dgm.simulate.results import Results

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[3] / "docs" / "policies"
BLOCKS = ("reported", "finals", "pair", "fresh", "reserved", "cells", "offline", "times")
FOUND = {"agents": 60, "tokens": 5_340_000, "depth": 4, "tasks": 20, "seed_resolved": 7, "best_resolved": 11}
ONE = {"time": 2, "policy": "hgm", "seed": 3, "version": "0123456789abcdef", "evaluations": 120, "workers": 2}
DGM = """\
import json, os, sys
from pathlib import Path

archive, words = Path(os.environ["DGM_ARCHIVE"]), sys.argv[1:]
with (archive.parent / "asked").open("a") as file:
    file.write(" ".join(words) + "\\n")
if words[0] == "run":
    (archive / words[2]).mkdir(parents=True)
print((archive.parent / f"{words[0]}.json").read_text() if "--json" in words else "")
"""


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """Both, writing to a folder of the test's own."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import offline
    import tables

    page = tmp_path / "policies.md"
    page.write_text("".join(f"{name}\n<!-- {name} -->\nold\n<!-- end -->\n" for name in BLOCKS))
    (tmp_path / "pictures").mkdir()
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    monkeypatch.setattr(tables, "KEPT", tmp_path / "kept.xz")
    monkeypatch.setattr(tables, "WORK", tmp_path / "work")
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "work" / "results.jsonl")
    monkeypatch.setattr(offline, "PAGE", page)
    monkeypatch.setattr(offline, "KEPT", tmp_path / "offline.jsonl")
    yield tables, offline, page
    for name in ("offline", "tables", "blocks", "commands"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "text", ["no block", "<!-- offline -->\nno end", "<!-- offline -->\n<!-- a -->\n<!-- end -->"]
)
def test_a_page_without_a_block_is_refused_and_left_alone(programs, text):
    _, offline, page = programs
    page.write_text(text)

    with pytest.raises(SystemExit, match="has no block <!-- offline -->"):
        offline.fill_in(page, {"offline": "new"})

    assert page.read_text() == text


def test_offline_searches_are_kept_one_by_one(programs, monkeypatch):
    _, offline, page = programs
    done, most = [], [5]

    def search(one):
        if len(done) == most[0]:
            raise KeyboardInterrupt
        done.append((one["seed"], one["policy"]))
        return {**FOUND, "best_resolved": one["seed"] + 9}

    monkeypatch.setattr(offline, "search", search)
    monkeypatch.setattr(sys, "argv", ["offline", "--searches", "2"])

    with pytest.raises(KeyboardInterrupt):
        offline.main()
    assert len(offline.KEPT.read_text().splitlines()) == 5
    with offline.KEPT.open("a") as file:
        file.write('{"half')
    most[0] = 8
    assert offline.main() == 0

    assert done == [(seed, policy) for seed in (1, 2) for policy in offline.POLICIES]
    assert "| lineage | 60 | 4.0 | 5.3 | 10, 11 |" in page.read_text()


@pytest.mark.slow
def test_all_times_that_the_offline_searches_were_performed_are_counted_together(programs, monkeypatch):
    _, offline, page = programs
    came_to = {
        "lineage": {1: [7, 8], 2: [6, 12], 3: [10, 14]},
        "hgm": {1: [7, 9], 2: [7, 7], 3: [8, 10]},
        "dgm": {1: [7, 7], 2: [7, 7], 3: [7, 7]},
        "best-of-n": {1: [7, 7], 2: [7, 7], 3: [7, 7]},
    }
    asked = []

    def search(one):
        asked.append(one["time"])
        best = came_to[one["policy"]][one["time"]][one["seed"] - 1]
        return {**FOUND, "best_resolved": best, "depth": 0 if best == 7 else 4}

    monkeypatch.setattr(offline, "search", search)
    for words in ([], ["--again"], ["--again"], []):
        monkeypatch.setattr(sys, "argv", ["offline", "--searches", "2", *words])
        assert offline.main() == 0

    assert asked == [1] * 8 + [2] * 8 + [3] * 8
    text = page.read_text()
    assert "| 10, 14 | 12.0 [" in text, "the last time"
    assert "| 1 | 7.5 | 8.0 | 7.0 | 7.0 | -0.5 [-1.0, +0.0] | 0, 1, 1 |" in text
    assert "| 2 | 9.0 | 7.0 | 7.0 | 7.0 | +2.0 [-1.0, +5.0] | 1, 0, 1 |" in text
    assert "| 3 | 12.0 | 9.0 | 7.0 | 7.0 | +3.0 [+2.0, +4.0] | 2, 0, 0 |" in text
    # By seeds: 1/3 and 8/3 more than hgm.
    assert "| **all** | 9.5 | 8.0 | 7.0 | 7.0 | +1.5 [+0.3, +2.7] | 3, 1, 2 |" in text
    assert (
        "| lineage | 6 | 9.5 [7.7, 11.3] | +2.5 [+0.7, +4.3] | +1.5 [+0.3, +2.7] | 3, 1, 2 | 1 | 1 |" in text
    )
    assert "| dgm | 6 | 7.0 [7.0, 7.0] | +0.0 [+0.0, +0.0] | -1.0 [-1.7, -0.3] | 0, 3, 3 | 0 | 6 |" in text


def test_what_other_rules_came_to_is_not_counted_unless_it_is_said_to_be_the_same(programs, monkeypatch):
    _, offline, page = programs
    monkeypatch.setattr(offline, "search", lambda _: dict(FOUND))
    monkeypatch.setattr(sys, "argv", ["offline", "--searches", "2", "--again"])
    now = [offline.what(policy, seed, 1) for seed in (1, 2) for policy in offline.POLICIES]
    for said, counted in (({}, False), ({"same_as": True}, True)):
        lines = [
            one | FOUND | {"version": "of other rules"} | ({"same_as": one["version"]} if said else {})
            for one in now
        ]
        offline.KEPT.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert offline.main() == 0
        assert ("| dgm | 4 |" in page.read_text()) == counted
        assert len(offline.KEPT.read_text().splitlines()) == 16, "nothing that is kept is lost"
    # The last time is of rules that are the same, so there is nothing to perform.
    offline.KEPT.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(offline, "search", None)
    monkeypatch.setattr(sys, "argv", ["offline", "--searches", "2"])
    assert offline.main() == 0


@pytest.fixture
def searches(programs, monkeypatch, tmp_path):
    """Searches by a program that prints what a test says, and notes what it was asked."""
    _, offline, _ = programs
    monkeypatch.setattr(offline, "ARCHIVE", tmp_path / "archive")
    program = tmp_path / "dgm.py"
    program.write_text(DGM)

    def search(graded, missing):
        spend = {"spend": {"tokens": 2_660_000}, "evaluations": {"graded": graded}}
        (tmp_path / "status.json").write_text(json.dumps({"state": "stopped", "agents": 17, **spend}))
        counts = {"tasks": 20, "missing": missing, "ungraded": 0}
        tried = {"seed": {"resolved": 7}, "best": {"resolved": 9}}
        (tmp_path / "report.json").write_text(
            json.dumps({"best": {"depth": 6}, "holdout": {**counts, **tried}})
        )
        return offline.search(ONE, (sys.executable, str(program)))

    return search


@pytest.mark.starts_processes
def test_an_offline_search_is_run_once_and_then_gone_on_with(searches, tmp_path):
    with pytest.raises(SystemExit, match="stopped after 119 of 120 evaluations"):
        searches(119, 0)
    with pytest.raises(SystemExit, match="3 holdout tasks have no verdict"):
        searches(120, 3)

    assert searches(120, 0) == {
        "agents": 17,
        "tokens": 2_660_000,
        "depth": 6,
        "tasks": 20,
        "seed_resolved": 7,
        "best_resolved": 9,
    }
    name = "2-hgm-3-0123456789abcdef-120-2"
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == (
        f"run --name {name} --model offline --sandbox bubblewrap"
        " --policy hgm --seed 3 --workers 2 --max-evaluations 120"
    )
    assert asked[1:3] == [f"status {name} --json", f"report {name} --holdout --json"]
    assert [words.split()[0] for words in asked[3:]] == ["resume", "status", "report"] * 2


@pytest.mark.parametrize("number", ["1", "0", "-3", "many"])
def test_too_few_offline_searches_are_refused(programs, monkeypatch, number):
    _, offline, page = programs
    monkeypatch.setattr(sys, "argv", ["offline", "--searches", number])
    before = page.read_text()

    with pytest.raises(SystemExit) as refused:
        offline.main()

    assert refused.value.code == 2
    assert page.read_text() == before


def test_a_changed_seed_agent_suite_or_model_makes_another_search(programs, monkeypatch, tmp_path):
    _, offline, _ = programs
    monkeypatch.setattr(offline, "ROOT", tmp_path)
    versions = set()
    for folder in offline.SETTING:
        (tmp_path / folder).mkdir(parents=True)
        for text in ("", "one", "two"):
            (tmp_path / folder / "file").write_text(text)
            offline._setting.cache_clear()
            versions.add(offline.what("hgm", 1, 1)["version"])

    assert len(versions) == 9


def test_results_that_a_study_writes_are_left_alone(programs, monkeypatch):
    tables, _, _ = programs
    monkeypatch.setattr(sys, "argv", ["tables"])
    tables.WORK.mkdir()
    with Results(tables.RESULTS), pytest.raises(SystemExit, match="another study is writing it"):
        tables.main()


def test_offline_searches_are_compared_in_pairs(programs):
    _, offline, _ = programs
    resolved = {"lineage": (12, 9, 11), "hgm": (10, 9, 8), "dgm": (7,)}
    lines = [
        {**FOUND, "time": 1, "policy": policy, "seed": seed, "best_resolved": count}
        for policy, counts in resolved.items()
        for seed, count in enumerate(counts, 1)
    ]

    rows = offline.table(lines).splitlines()

    assert "resolved of 20" in rows[0]
    assert rows[2].startswith(
        "| lineage | 60 | 4.0 | 5.3 | 12, 9, 11 | 10.7 [9.0, 11.7] | +3.7 [+2.0, +4.7] | +1.7 ["
    )
    assert rows[2].endswith("| 2, 1, 0 |")
    assert rows[3].endswith("| – | – |")
    assert len(rows) == 4, "one search is no sample"
