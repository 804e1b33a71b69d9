"""What is believed of the output of Go's tests."""

import pytest

from dgm.benchmarks.go_runner import GoPackage, GoRun, is_chosen, is_left_out, top_name
from dgm.benchmarks.go_runner import TestOutput as Output

TEXT = """\
package sums

import "testing"

// TestHalf is explained.
func TestHalf(t *testing.T) { helper(t, "TestHalf") }
func TestMain(m *testing.M) {}
func Testify(t *testing.T) {}
func helper(t *testing.T, words ...string) {}
"""
FAILS = "=== RUN   TestControl1\n    dgm_control_test.go:5: got 1, want 2\n--- FAIL: TestControl1 (0.00s)\n"


def judge(text):
    output = Output({"TestHalf": "sums_test.go::TestHalf"}, "TestControl1")
    active = output.read(text)
    return output, output.judge(), active


def test_a_package_has_its_test_functions_by_their_files(tmp_path):
    package = GoPackage("sums", {"sums/sums_test.go": TEXT}, tmp_path)
    assert package.tests == {"TestHalf": "sums/sums_test.go::TestHalf"}
    assert package.name == "sums"


def test_a_test_passes_beside_the_one_that_must_fail():
    output, found, _ = judge(
        f"{FAILS}=== RUN   TestHalf\n    a_test.go:3: seen\n--- PASS: TestHalf (0.00s)\nFAIL\n"
    )
    assert found == {"sums_test.go::TestHalf": "passed"}
    assert not output.tampered
    assert output.messages == {"sums_test.go::TestHalf": "    a_test.go:3: seen\n"}
    assert b"Control" not in output.log()


@pytest.mark.parametrize(
    ("text", "tampered"),
    [
        ("--- PASS: TestHalf (0.00s)\n", False),
        (FAILS.replace("FAIL", "PASS") + "--- PASS: TestHalf (0.00s)\n", True),
        (f"{FAILS}{FAILS.replace('FAIL', 'SKIP')}--- PASS: TestHalf (0.00s)\n", True),
        (f"{FAILS}--- PASS: TestHalf (0.00s)\n--- FAIL: TestHalf (0.00s)\n", False),
        (f"{FAILS}--- FAIL: TestHalf (0.00s)\n", False),
    ],
)
def test_nothing_else_passes(text, tampered):
    output, found, _ = judge(text)
    assert found == {"sums_test.go::TestHalf": "failed"}
    assert output.tampered is tampered


def test_subtests_and_ends_in_the_middle_of_a_line_are_read():
    text = f"{FAILS}printed--- FAIL: TestHalf (0.00s)\n\x16    --- PASS: TestHalf/a#01 (0.00s)\n"
    assert judge(text)[1] == {"sums_test.go::TestHalf": "failed", "sums_test.go::TestHalf/a#01": "passed"}


def test_subtests_of_a_test_that_runs_once_more_count_once():
    output = Output({"TestHalf": "sums_test.go::TestHalf"}, "TestControl1")
    output.read(f"{FAILS}=== RUN   TestHalf\n    --- PASS: TestHalf/a (0.00s)\npanic: of another test\n")
    output.forget({"TestHalf"})
    output.read(f"{FAILS}    --- PASS: TestHalf/a (0.00s)\n--- PASS: TestHalf (0.00s)\n")
    assert {*output.judge().values()} == {"passed"}


def test_the_report_of_a_grading_has_the_tests_asked_for_alone(tmp_path):
    task = {"tests": ["sums_test.go::TestHalf"], "tool": {}, "restored": []}
    run = GoRun(task, tmp_path, {})
    run.take_output(judge(f"{FAILS}--- PASS: TestHalf (0.00s)\n--- FAIL: TestHalf/a (0.00s)\n")[0])
    assert (run.outcomes, run.failures) == ({"sums_test.go::TestHalf": "passed"}, {})


def test_who_ends_the_program_is_known():
    assert judge("=== RUN   TestHalf\npanic: nil\n")[2] == "TestHalf"


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


def test_a_program_that_ends_before_the_test_that_must_fail_is_started_once_more_for_it():
    output = judge("--- PASS: TestHalf (0.00s)\n")[0]
    assert output.lacks_control
    output.read(FAILS)
    assert not output.lacks_control
    assert {*output.judge().values()} == {"passed"}
