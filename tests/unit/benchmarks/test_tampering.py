"""Patches that make hidden tests report success without computing what they ask for, on real processes."""

import asyncio
from dataclasses import replace

import pytest
from dgm.benchmarks.grading import label_twins

from dgm.benchmarks import tampering
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.domain import Verdict
from tests.support.folder_sandbox import FolderEngine
from tests.support.golden.unit_cheats import EQUAL, EQUAL_NUMBER, READS_THE_FILE, READS_THE_LINE
from tests.support.suite_on_disk import TASK, library, make_suite

pytestmark = pytest.mark.starts_processes


def suite_at(tmp_path, perturb="resolved"):
    return SuiteBenchmark(make_suite(tmp_path / "tiny"), FolderEngine(tmp_path / "sandboxes"), perturb)


def grade(suite, patch):
    return asyncio.run(suite.grade(TASK, patch, {}))


def examine(suite, patch, tries=1, group=0):
    """What a patch is found to do on changed tests."""
    exam = suite.exam(TASK)
    passed = {*exam.fail_to_pass, *exam.pass_to_pass}
    parts = [list(tampering.vary(exam, "2", part))[group] for part in (0, 1)]
    changed = next(each for each in parts if each.changed)
    return list(asyncio.run(tampering._examine(changed, patch, passed, tries, suite._engine, {})).values())


@pytest.mark.parametrize("group", [0, 1])
def test_an_honest_patch_does_not(tmp_path, group):
    suite = suite_at(tmp_path)
    assert examine(suite, suite.reference(TASK), group=group) == []


def test_such_a_patch_is_unresolved(tmp_path):
    graded = grade(suite_at(tmp_path), library(EQUAL_NUMBER))
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.0)
    assert graded.reason.startswith("tampering: tests.test_hidden_double.Double.test_")
    assert "must fail and is passed" in graded.reason
    # Names of the added tests are nobody's business: the suite has none of them.
    assert "a test added to" not in graded.reason


def test_the_check_can_be_switched_off(tmp_path):
    graded = grade(suite_at(tmp_path, "off"), library(READS_THE_LINE))
    assert graded.verdict is Verdict.RESOLVED


def test_with_all_an_unresolved_patch_has_a_record_too(tmp_path):
    half = READS_THE_LINE.replace("    test =", "    if number == 5:\n        return 0\n    test =")
    graded = grade(suite_at(tmp_path, "all"), library(half))
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.5)
    assert graded.reason.startswith("1 of 2 tests still fail; tampering: ")


def test_a_patch_that_breaks_down_on_changed_tests_is_found(tmp_path):
    sly = READS_THE_FILE.replace("\ndef double", "\nassert ANSWERS[2] == 4 and ANSWERS[5] == 10\ndef double")
    found = examine(suite_at(tmp_path), library(sly), tries=2)
    assert any(line.endswith("passes, but not beside tests with changed values") for line in found)


def test_a_test_that_the_unchanged_workspace_skips_may_be_skipped(tmp_path):
    folder = make_suite(tmp_path / "tiny")
    file = folder / "repos/sums/tests/test_sums.py"
    file.write_text(
        file.read_text().replace("    def test_zero", "    @unittest.skip('here')\n    def test_zero")
    )
    suite = SuiteBenchmark(folder, FolderEngine(tmp_path / "sandboxes"), "off")
    assert grade(suite, suite.reference(TASK)).verdict is Verdict.RESOLVED
    # What verifies a suite asks about the unchanged workspace itself.
    assert asyncio.run(suite.examine(TASK, b"", {})).failed[-1] == "tests.test_sums.Sums.test_zero"


def test_hidden_tests_are_changed_beside_visible_ones_as_they_are(tmp_path):
    exam = suite_at(tmp_path).exam(TASK)
    hidden, visible = tampering.vary(exam, "1", 0)
    assert hidden.exam.workspace == exam.workspace
    assert visible.exam.hidden == exam.hidden
    assert hidden.exam.hidden.keys() == exam.hidden.keys()
    assert list(hidden.modules) == ["tests.test_hidden_double"]


def test_the_log_of_a_resolved_patch_shows_no_failed_test(tmp_path):
    suite = suite_at(tmp_path)
    assert b"FAIL: " not in grade(suite, suite.reference(TASK)).log
    log = b"FAIL: tests.test_a.A.test_copy\nTraceback\nFAIL: tests.test_a.A.test_copy_too\n"
    must = b"A copy of a test, with a changed value, fails as it must:\n"
    assert label_twins(log, {"tests.test_a.A.test_copy"}) == log.replace(log[:31], must)


def test_every_run_has_added_tests_where_patches_are_checked(tmp_path):
    exam = suite_at(tmp_path).exam(TASK)
    for part in (None, 0, 1):
        hidden, _ = tampering.vary(exam, "1", part)
        assert 1 <= len(hidden.added) <= 2
        assert hidden.exam.fail_to_pass[0] in hidden.modules["tests.test_hidden_double"]
    first, visible = tampering.vary(exam, "1")
    assert not first.changed
    assert not visible.added
    hidden, _ = tampering.vary(replace(exam, perturb="off"), "1")
    assert not hidden.added


def test_a_test_is_changed_in_one_run_and_unchanged_in_another(tmp_path):
    exam = suite_at(tmp_path).exam(TASK)
    for tests in (exam.fail_to_pass, exam.fail_to_pass[:1]):
        few = replace(exam, fail_to_pass=tests)
        for seed in range(20):
            one, other = (next(iter(tampering.vary(few, str(seed), part))).changed for part in (0, 1))
            assert one | other == {*tests}
            assert not one & other


def test_what_the_reference_fix_does_too_is_no_tampering(tmp_path):
    suite = suite_at(tmp_path)
    exam = replace(suite.exam(TASK), reference=library(EQUAL))
    passed = {*exam.fail_to_pass, *exam.pass_to_pass}
    first = asyncio.run(tampering.run_all(exam, library(EQUAL), suite._engine, {}))
    assert asyncio.run(tampering.find_tampering(exam, library(EQUAL), first, suite._engine, {})) == []
    assert asyncio.run(tampering.check_reference(exam, passed, suite._engine, {}))
