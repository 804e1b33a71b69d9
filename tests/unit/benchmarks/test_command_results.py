"""Outcomes out of the output of ``cargo test``, and reports that are not believed."""

import base64
import zlib

import pytest

from dgm.benchmarks.command_results import BUILD, read_command

MARK = "dgm_ab12"
HEAD = "     Running unittests src/lib.rs (target/debug/deps/sums-1)\n\nrunning 4 tests\n"
CONTROLS = f"test tests::{MARK}_0 ... FAILED\n"
REAL = "test tests::halves ... ok\n"
END = "\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n"


def read(text, problem=""):
    record = {
        "mark": MARK,
        "controls": [["src/lib.rs", "tests"], ["tests/all.rs", ""]],
        "problem": problem,
        "code": 101,
        "said": base64.b64encode(zlib.compress(text.encode())).decode(),
    }
    return read_command(record)


def test_names_are_those_of_files_and_modules():
    second = (
        HEAD + CONTROLS.replace("tests::", "").replace("_0 ", "_1 ") + "test deep::odd ... FAILED\n" + END
    )
    found = read(HEAD + REAL + CONTROLS + END + second)
    assert found.outcomes == {"src/lib.rs::tests::halves": "passed", "tests/all.rs::deep::odd": "failed"}
    assert not found.problem


def test_tests_without_their_controls_are_left_out():
    found = read(HEAD + REAL + "test other::one ... ok\n" + CONTROLS + END)
    assert found.outcomes == {"src/lib.rs::tests::halves": "passed"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEAD + REAL + CONTROLS, "a program of the tests ended early"),
        (HEAD + REAL + CONTROLS.replace("FAILED", "ok") + END, "were tampered with"),
        (HEAD + "test tests::halves ... ok\n" + END, "no test ran"),
        ("", "no test ran"),
    ],
)
def test_a_forged_report_counts_as_nothing(text, problem):
    found = read(text)
    assert not found.outcomes
    assert problem in found.problem


def test_a_number_that_no_control_has_is_no_control():
    found = read(HEAD + REAL + CONTROLS + f"test tests::{MARK}_{'9' * 5000} ... FAILED\n" + END)
    assert found.outcomes == {"src/lib.rs::tests::halves": "passed"}


def test_what_fails_tells_its_panic():
    test = "tests::halves"
    said = f"\nfailures:\n\n---- {test} stdout ----\nthread '{test}' panicked\n\nfailures:\n"
    found = read(HEAD + REAL.replace("ok", "FAILED") + CONTROLS + said + END)
    assert found.messages == {"src/lib.rs::tests::halves": "thread 'tests::halves' panicked\n"}


def test_a_build_that_fails_tells_the_compilers_error():
    found = read(
        "   Compiling sums\nerror[E0425]: cannot find function `third`\n --> src/lib.rs:3\n\nerror: could not\n"
    )
    assert found.broken == {BUILD: "error[E0425]: cannot find function `third`"}
    assert "exit status 101" in found.problem
