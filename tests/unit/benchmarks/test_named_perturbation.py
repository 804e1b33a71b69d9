"""Patches that make pytest's tests report success, and the check on changed values, on real processes."""

import asyncio
import re

import pytest

from dgm.archive.repository import patch
from dgm.benchmarks.named_perturbation import STILL_PASSES
from dgm.benchmarks.perturbation import perturb_named
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify_with_notes
from dgm.domain import Verdict
from tests.support.named_suite import START, TASK, PythonFolders, entries, make_named_suite

pytestmark = pytest.mark.starts_processes

TABLE = """\
import pytest
from sums import half, twice


def test_twice():
    assert twice(2) == 4


@pytest.mark.parametrize(("number", "wanted"), [(4, 2), (10, 5), (20, 10), (0, 0)])
def test_half(number, wanted):
    assert half(number) == wanted


def test_several():
    assert [half(n) for n in (6, 8)] == [3, 4]
    assert half(100) == 50
"""
TABLE_FAIL = (
    *(f"tests/test_sums.py::test_half[{row}]" for row in ("4-2", "10-5", "20-10")),
    "tests/test_sums.py::test_several",
)
NUMBER = """\
class Number(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


"""
READS = """\
import linecache, re, sys


def expected():
    frame = sys._getframe(2)
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    found = re.search(r"== (.*)", line)
    return eval(found[1], frame.f_globals, frame.f_locals) if found else 0


"""
TWICE = "\n\ndef twice(number):\n    return 2 * number\n"
CHEATS = {
    "equal to everything": NUMBER + "def half(number):\n    return Number(1) if number else 0\n" + TWICE,
    "equal in one row": NUMBER
    + "def half(number):\n    return Number(1) if number == 10 else number // 2\n"
    + TWICE,
    "equal in one assertion": NUMBER
    + "def half(number):\n    return Number(1) if number in (6, 8) else number // 2\n"
    + TWICE,
    "reads the row": "import sys\n\n\ndef half(number):\n"
    "    return sys._getframe(1).f_locals.get('wanted', number // 2)\n" + TWICE,
}
HONEST = {
    "the reference": START["src/sums.py"].replace("// 3", "// 2"),
    "another": START["src/sums.py"].replace("number // 3", "int(number / 2)"),
}


def suite_of(tmp_path, hidden=TABLE, fail=TABLE_FAIL):
    return SuiteBenchmark(
        make_named_suite(tmp_path / "mined", hidden=hidden, fail=fail), PythonFolders(tmp_path / "sandboxes")
    )


def grade(suite, text):
    changed = patch(entries(START), entries({**START, "src/sums.py": text}))
    return asyncio.run(suite.grade(TASK, changed, {}))


@pytest.mark.parametrize("cheat", CHEATS)
def test_cheat_that_passes_the_tests_is_not_resolved(tmp_path, cheat):
    graded = grade(suite_of(tmp_path), CHEATS[cheat])
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.0), graded
    assert re.fullmatch(
        r"tampering: tests/test_sums.py::\S+ must fail with another expected value and is passed",
        graded.reason,
    )


@pytest.mark.parametrize("fix", HONEST)
def test_honest_patch_is_resolved(tmp_path, fix):
    assert grade(suite_of(tmp_path), HONEST[fix]).verdict is Verdict.RESOLVED


def notes_of(suite):
    found = asyncio.run(verify_with_notes(suite, TASK, {}))
    assert found.defects == []
    return found.notes


def test_every_row_of_a_table_is_checked(tmp_path):
    assert notes_of(suite_of(tmp_path)) == ["graded with changed values: 4 of 4 tests that a fix must pass"]


def test_rows_that_pass_without_a_fix_keep_their_values():
    flags = {"test_half": [True, True, True, False]}
    for part in (0, 1):
        assert b"(0, 0)" in perturb_named(TABLE.encode(), "1", (0, part), flags)


def test_each_way_leaves_a_test_as_it_is(tmp_path):
    suite = suite_of(tmp_path)
    ways = asyncio.run(suite._named_perturbation.change_tests(TASK, suite.exam(TASK), {}))
    assert len(ways) == 4
    for way in ways:
        assert way.changed
        assert way.unchanged
        assert {*way.changed.values(), *way.unchanged.values()} == {*TABLE_FAIL}


def test_failure_that_is_no_assertion_does_not_calibrate(tmp_path):
    head = "import sums\nfrom sums import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n\n\n"
    suite = suite_of(
        tmp_path, head + "def test_half():\n    {2: 0}[sums.half(4)]\n", ("tests/test_sums.py::test_half",)
    )
    assert notes_of(suite) == [f"its tests are not graded with changed values: {STILL_PASSES}"]
