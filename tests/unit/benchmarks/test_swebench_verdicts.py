"""Verdicts from results that were read, without the worker that reads logs."""

import pytest

from dgm.benchmarks.swebench_grading import SHOWN_LIMIT, _shown
from dgm.benchmarks.swebench_logs import Log
from dgm.benchmarks.swebench_verdicts import Expected, Results, judge, ran
from dgm.domain import Verdict
from dgm.protocols import Grade


@pytest.mark.parametrize(("code", "tests_ran"), [(0, True), (1, True), (126, False), (127, False)])
def test_a_command_that_was_not_found_ran_no_tests_whatever_its_log_says(code, tests_ran):
    assert ran(Results({}, code, "5 passed in 0.1s")) is tests_ran


def test_a_log_without_counts_shows_no_tests():
    assert not ran(Results({}, 0, "0 passed"))
    assert ran(Results({"test_a": "PASSED"}, 127))


@pytest.mark.parametrize(
    ("code", "other", "verdict"),
    [
        (0, "PASSED", Verdict.RESOLVED),
        (1, "FAILED", Verdict.RESOLVED),
        (1, "ERROR", Verdict.RESOLVED),
        (1, "PASSED", Verdict.UNRESOLVED),
    ],
)
def test_a_failed_command_must_be_explained_by_some_failed_test(code, other, verdict):
    results = Results({"test_fix": "PASSED", "test_other": other}, code)
    assert judge(Expected(["test_fix"], []), results).verdict is verdict


def failed(*tests):
    return Grade(Verdict.UNRESOLVED, "", 0.0, (), tests)


def test_all_failed_tests_are_shown_with_their_kind_of_error():
    text = b"FAILED test_a - ValueError: secret\nFAILED test_b - KeyError: secret\n"
    assert _shown(failed("test_a", "test_b", "test_c"), text).split(b"\n") == [
        b"FAILED test_a  ValueError",
        b"FAILED test_b  KeyError",
        b"FAILED test_c",
        b"",
    ]


def test_failed_tests_are_shown_up_to_a_limit():
    shown = _shown(failed(*(f"test_{n:0190}" for n in range(SHOWN_LIMIT // 100))), b"")
    assert len(shown) == SHOWN_LIMIT


def test_an_excerpt_holds_as_much_of_the_end_as_of_the_beginning(tmp_path):
    tests = tmp_path / "tests"
    tests.write_bytes(b"a" * 50 + b"b" * 50)
    log = Log({}, tests, 100, cut=False, around="around")
    assert log.excerpt(20) == b"a" * 10 + b"\n[...]\n" + b"b" * 10
    assert log.excerpt(100) == tests.read_bytes()
    tests.write_bytes(b"")
    assert log.excerpt(20) == b"around"
