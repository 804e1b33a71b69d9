"""What the statuses of tests mean for a patch: the strict rules of swebench 5, whatever version read the log.

``docs/swebench-grading.md`` shows them case by case. Pure: no process, no sandbox, no file.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dgm.benchmarks.plain_logs import plain_text
from dgm.domain import Verdict
from dgm.protocols import Grade

PASSING = frozenset({"PASSED", "XFAIL"})
FAILING = frozenset({"FAILED", "ERROR"})
SKIPPED = "SKIPPED"
RAN = re.compile(
    r"\b[1-9]\d* (?:passed|failed|passing|failing|specs?\b|tests? passed|examples?\b|assertions?\b)"
    r"|\bRan [1-9]\d* tests?\b|\bTests:? +[1-9]\d*|\bExecuted [1-9]\d* of \d+|\bTests run: [1-9]"
    r"|\bTOTAL: [1-9]\d* |^# tests [1-9]|^(?:ok|PASS|FAIL)\s+\S+\s+[\d.]+s$|^test result: ",
    re.MULTILINE,
)
"""A count of tests above zero, as runners sum up: a sign that tests were run where none is named."""
NOT_FOUND = (126, 127)
"""What a shell says of a command that it cannot start."""
NAME_LIMIT, REASON_LIMIT = 80, 300


@dataclass(frozen=True, slots=True)
class Expected:
    """The tests that an instance names."""

    fail_to_pass: Sequence[str]
    pass_to_pass: Sequence[str]
    fail_only: bool = False
    """The log lists failures only: a test that is not in it passed, if tests ran at all."""


@dataclass(frozen=True, slots=True)
class Results:
    """One run of the test command, as its log and its exit code tell of it."""

    statuses: Mapping[str, str]
    exit_code: int
    log: str = ""
    """What stands between the markers, or as much of it as was kept; needed only where no test is named."""
    cut: bool = False
    """Part of the log was left out."""


def ran(results: Results) -> bool:
    """Whether any test was run; otherwise nothing is known of the patch."""
    if results.statuses:
        return True
    return results.exit_code not in NOT_FOUND and RAN.search(results.log) is not None


def judge(expected: Expected, results: Results) -> Grade:
    """The grade of a patch whose tests ran."""
    told = _statuses(expected, results)
    missing = [test for test in expected.fail_to_pass if told[test] not in PASSING]
    # A skipped test is no fix, but no regression either.
    broken = [test for test in expected.pass_to_pass if told[test] not in (*PASSING, SKIPPED)]
    failed = tuple(dict.fromkeys((*missing, *broken)))
    lost = set(failed)
    passed = tuple(test for test in told if test not in lost)
    if not failed:
        return _all_pass(results, passed)
    score = 0.0 if broken or not expected.fail_to_pass else 1 - len(missing) / len(expected.fail_to_pass)
    reasons = [
        _said(missing, told, f"of {len(expected.fail_to_pass)} tests that must pass fail"),
        _said(broken, told, f"of {len(expected.pass_to_pass)} tests that passed are broken"),
        "the log was so long that part of it was left out" if results.cut else "",
        _never_ran(results),
    ]
    return Grade(Verdict.UNRESOLVED, one_line("; ".join(filter(None, reasons))), score, passed, failed)


def _all_pass(results: Results, passed: tuple[str, ...]) -> Grade:
    """The log says that all is well: the exit code has to agree with it."""
    if results.exit_code and results.statuses and not FAILING & set(results.statuses.values()):
        reason = (
            f"the log names no failed test, but the test command ended with {results.exit_code}: the log does not"
            " tell of the run that took place"
        )
        return Grade(Verdict.UNRESOLVED, reason, 0.0, (), passed)
    return Grade(Verdict.RESOLVED, f"all {len(passed)} tests pass", 1.0, passed, ())


def _statuses(expected: Expected, results: Results) -> Mapping[str, str]:
    return {
        test: _status(test, results.statuses, absent="PASSED" if expected.fail_only else "absent")
        for test in (*expected.fail_to_pass, *expected.pass_to_pass)
    }


def _status(test: str, statuses: Mapping[str, str], absent: str) -> str:
    """A test's status; a name that was cut within its parameters stands for all that begin with it.

    676 names of SWE-bench Verified are cut like that; where the tests it may mean disagree, it counts as absent.
    """
    # In a log without its colours a name is without them too.
    test = test if test in statuses else plain_text(test)
    if test in statuses:
        return statuses[test]
    if test.count("[") > test.count("]"):
        meant = {status for name, status in statuses.items() if name.startswith(test)}
        if meant and (meant <= PASSING or not meant & PASSING):
            return min(meant)
    return absent


def _said(tests: Sequence[str], told: Mapping[str, str], what: str) -> str:
    if not tests:
        return ""
    first = tests[0]
    status = "is not in the log" if told[first] == "absent" else told[first].lower()
    more = ", …" if len(tests) > 1 else ""
    return f"{len(tests)} {what} ({one_line(first, NAME_LIMIT)}: {status}{more})"


def _never_ran(results: Results) -> str:
    """The end of a log that names no test: an error in collection, an import that failed."""
    if results.statuses:
        return ""
    lines = [line for line in results.log.split("\n") if line.strip()]
    return f"no test ran: {one_line(lines[-1], 160)}" if lines else "no test ran, and nothing was printed"


def one_line(text: str, limit: int = REASON_LIMIT) -> str:
    """Printable text on one line: names of tests and output may hold anything."""
    shown = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
