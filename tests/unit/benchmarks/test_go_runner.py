"""Names of Go's tests in one run, and what is believed of their output."""

import re

import pytest

from dgm.benchmarks.go_marks import MarkedPackage, mark_tests, without_marks
from dgm.benchmarks.go_output import TestOutput as Output
from dgm.benchmarks.go_runner import GoRun, is_chosen, is_left_out, top_name

TEXT = """\
package sums

import "testing"

// TestHalf is explained.
func TestHalf(t *testing.T) { helper(t, "TestHalf", "-test.run=^TestHalf$") }
func TestMain(m *testing.M) {}
func Testify(t *testing.T) {}
func helper(t *testing.T, words ...string) {}
"""
REAL, TWIN = "TestHalf_x" + "a" * 16, "TestHalf_x" + "b" * 16
PACKAGE = MarkedPackage({}, {REAL: "sums_test.go::TestHalf"}, {REAL: TWIN})
TWIN_FAILS = (
    f"=== RUN   {TWIN}\n=== RUN   {TWIN}/t1\n--- FAIL: {TWIN} (0.00s)\n    --- FAIL: {TWIN}/t1 (0.00s)\n"
)


def judge(text):
    output = Output(PACKAGE)
    active = output.read(text)
    return output, output.judge(), active


def test_tests_get_names_that_differ_between_runs_on_the_same_lines():
    first, second = (mark_tests({"sums_test.go": TEXT}) for _ in range(2))
    assert list(first.tests.values()) == ["sums_test.go::TestHalf"]
    assert first.tests.keys().isdisjoint(second.tests)
    rows = first.files["sums_test.go"].split("\n")
    (marked,) = first.tests
    assert f"func {marked}(t *testing.T)" in rows[5]
    assert f'"TestHalf", "-test.run=^{marked}$"' in rows[5]
    assert rows[6:9] == TEXT.split("\n")[6:9]
    assert without_marks(rows[4]) == "// TestHalf is explained."


def test_each_test_has_a_twin_of_the_same_look_that_fails():
    found = mark_tests({"sums_test.go": TEXT, "more_test.go": TEXT.replace("TestHalf", "TestWhole")})
    for test, twin in found.twins.items():
        assert without_marks(twin) == without_marks(test)
        file = found.tests[test].partition("::")[0]
        body = re.search(rf"func {twin}\(t \*testing\.T\) \{{ (.*?) \}}\) \}}", found.files[file])[1]
        assert re.search(r"t\.(Error|Fail|Fatal)", body)


def test_functions_of_one_name_in_files_for_different_systems_are_two_tests():
    found = mark_tests({"a_linux_test.go": TEXT, "a_windows_test.go": TEXT})
    assert sorted(found.tests.values()) == ["a_linux_test.go::TestHalf", "a_windows_test.go::TestHalf"]


def test_a_test_passes_beside_a_twin_that_fails():
    output, found, _ = judge(
        f"{TWIN_FAILS}=== RUN   {REAL}\n    a_test.go:3: seen\n--- PASS: {REAL} (0.00s)\nFAIL\n"
    )
    assert found == {"sums_test.go::TestHalf": "passed"}
    assert not output.tampered
    assert output.messages == {"sums_test.go::TestHalf": "    a_test.go:3: seen\n"}
    assert b"_x" not in output.log()


@pytest.mark.parametrize(
    ("text", "tampered"),
    [
        (f"--- PASS: {REAL} (0.00s)\n", False),
        (TWIN_FAILS.replace("FAIL", "PASS") + f"--- PASS: {REAL} (0.00s)\n", True),
        (TWIN_FAILS.replace("    --- FAIL", "    --- PASS") + f"--- PASS: {REAL} (0.00s)\n", True),
        (f"{TWIN_FAILS}--- PASS: {REAL} (0.00s)\n--- FAIL: {REAL} (0.00s)\n", False),
        (f"{TWIN_FAILS}--- FAIL: {REAL} (0.00s)\n", False),
    ],
)
def test_nothing_else_passes(text, tampered):
    output, found, _ = judge(text)
    assert found == {"sums_test.go::TestHalf": "failed"}
    assert output.tampered is tampered


def test_a_report_under_the_tests_own_name_is_no_report():
    assert judge(f"{TWIN_FAILS}--- PASS: TestHalf (0.00s)\n--- PASS: TestHalf_x{'c' * 16} (0.00s)\n")[1] == {}


def test_subtests_and_marks_in_the_middle_of_a_line_are_read():
    text = f"{TWIN_FAILS}printed--- FAIL: {REAL} (0.00s)\n\x16    --- PASS: {REAL}/a#01 (0.00s)\n"
    assert judge(text)[1] == {"sums_test.go::TestHalf": "failed", "sums_test.go::TestHalf/a#01": "passed"}


def test_subtests_of_a_test_that_runs_once_more_count_once():
    output = Output(PACKAGE)
    output.read(f"{TWIN_FAILS}=== RUN   {REAL}\n    --- PASS: {REAL}/a (0.00s)\npanic: of another test\n")
    output.forget({REAL})
    output.read(f"    --- PASS: {REAL}/a (0.00s)\n--- PASS: {REAL} (0.00s)\n")
    assert {*output.judge().values()} == {"passed"}


def test_the_report_of_a_grading_has_the_tests_asked_for_alone(tmp_path):
    task = {"tests": ["sums_test.go::TestHalf"], "tool": {}, "restored": []}
    run = GoRun(task, tmp_path, {})
    run.take_output(judge(f"{TWIN_FAILS}--- PASS: {REAL} (0.00s)\n--- FAIL: {REAL}/a (0.00s)\n")[0])
    assert (run.outcomes, run.failures) == ({"sums_test.go::TestHalf": "passed"}, {})


def test_who_ends_the_program_is_known():
    assert judge(f"=== RUN   {REAL}\npanic: nil\n")[2] == REAL


def test_packages_are_chosen_as_go_does():
    assert is_chosen("a/b", [])
    assert is_chosen("a/b", ["./..."])
    assert is_chosen("a", ["./a/..."])
    assert not is_chosen("ab", ["./a/..."])
    assert is_chosen(".", ["."])
    assert not is_chosen("a", ["."])
    assert is_left_out("a/testdata/b_test.go")
    assert is_left_out("_old/b_test.go")
    assert not is_left_out("a/_b_test.go")
    assert top_name("a/b_test.go::TestA/x/y") == "a/b_test.go::TestA"
