"""Patches that make pytest's tests report success, and the check on changed values, on real processes."""

import asyncio

import pytest
from dgm.benchmarks.named_perturbation import STILL_PASSES
from dgm.benchmarks.perturbation import perturb_named

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify_with_notes
from tests.support.golden.suite import TABLE, TABLE_FAIL
from tests.support.named_suite import TASK, PythonFolders, make_named_suite

pytestmark = pytest.mark.starts_processes


def suite_of(tmp_path, hidden=TABLE, fail=TABLE_FAIL):
    return SuiteBenchmark(
        make_named_suite(tmp_path / "mined", hidden=hidden, fail=fail), PythonFolders(tmp_path / "sandboxes")
    )


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
