"""Read the reports of test tools in one shape: each test by its name, with its outcome and the text of its failure.

Reads JUnit's XML as pytest, ``node --test``, vitest, jest-junit, ctest, GoogleTest, cargo-nextest, Surefire, Gradle and
JUnit's console launcher write it; Catch2's XML; the events of Rust's libtest; the lines of Go's test programs and of
``cargo test``. Each form is read here and nowhere else.

Nothing in a report proves that a test ran. Whoever grades by one needs tests that bear marks, beside others that must
fail: ``command_results``, ``report_results`` and ``polyglot_reports`` say which results count.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from dgm.benchmarks.plain_logs import plain_text
from dgm.benchmarks.report_xml import read_catch, read_junit
from dgm.benchmarks.storable_text import cut_middle, mend_surrogates
from dgm.benchmarks.test_outcomes import TestOutcome, TestResult, keep_worst
from dgm.bounded_reading import parse_json

MOST_CHARS = 64_000_000
"""Maximum characters of a report."""
MESSAGE_CHARS = 20_000
"""Maximum characters that are kept of a failure, half of them from each end."""
NAME_CHARS = 2000
"""Maximum characters of a name that tests are chosen by."""


class ReportKind(StrEnum):
    """A form of report."""

    JUNIT = "junit"
    CATCH = "catch"
    """Catch2's ``--reporter xml``."""
    GO_LINES = "go-lines"
    """Output of a Go test program with ``-test.v``, with or without ``=test2json``."""
    CARGO = "cargo"
    """Output of ``cargo test``."""
    LIBTEST = "libtest"
    """``cargo test -- --format json``."""


_UNSTABLE = re.compile(
    r"\b0x[0-9a-fA-F]{6,}|<[\w.]+ (?:object|at) |\bobject at\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\b1[5-9]\d{8}(?:\d{3})?\b"
    r"|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|/tmp/|/var/folders/|\bpytest-of-"
)
"""Parts of names that another run does not have: addresses, times, ids, temporary folders."""
_SUBTEST = re.compile(
    r"(?:^|::)SUB(?:FAILED|PASSED|PASS|SKIPPED|FAIL)\b|(?:^|::)test\w*(?:\[[^\]]*\])? ?\(\w+=.*\)$", re.DOTALL
)
_GO_LINE = re.compile(r"(?:^|\x16)( *)--- (PASS|FAIL|SKIP): (\S+) \(")
_CARGO = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b", re.M)
_CARGO_OUTPUT = re.compile(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |\nfailures:\n|\Z)", re.M | re.DOTALL)
_CARGO_BROKEN = re.compile(r"^error(?:\[E\d+\])?: .*(?:\n.+)*", re.M)
_LIBTEST = re.compile(r'\{ ?"type": ?"test",')
_GO_OUTCOMES = {"pass": TestOutcome.PASSED, "skip": TestOutcome.SKIPPED, "fail": TestOutcome.FAILED}
_RUST_OUTCOMES = {"ok": TestOutcome.PASSED, "ignored": TestOutcome.SKIPPED, "failed": TestOutcome.FAILED}


def read_results(kind: str, text: str, root: str = "") -> dict[str, TestResult]:
    """Return the tests of a report that can be chosen by name, in its order; of several of one name the worst.

    Tests whose names may be others in the next run are left out (addresses, times, subtests), and so are those whose
    names are longer than ``NAME_CHARS``. Arguments and errors are those of ``read_cases``.
    """
    found: dict[str, TestResult] = {}
    for name, result in read_cases(kind, text, root):
        if len(name) <= NAME_CHARS and not _UNSTABLE.search(name) and not _SUBTEST.search(name):
            keep_worst(found, name, result)
    return found


def read_cases(kind: str, text: str, root: str = "") -> Iterator[tuple[str, TestResult]]:
    """Yield name and result of each test of a report, in its order; a name may come more than once.

    Names and texts can be written as UTF-8, and texts have no escape sequences and at most ``MESSAGE_CHARS``.

    Args:
        kind: one of ``ReportKind``.
        text: the report; one that breaks off counts as far as it goes.
        root: the folder in which the tests ran, which is taken out of names.

    Raises:
        ValueError: it is no such report, or longer than ``MOST_CHARS``; some tests may have been told before.
    """
    if len(text) > MOST_CHARS:
        raise ValueError(f"the report of the tests is longer than {MOST_CHARS:,} characters")
    for name, result in _READERS[ReportKind(kind)](text, root):
        message, summary = _plain(result.message), _plain(result.summary)
        yield mend_surrogates(name), TestResult(result.outcome, message, summary)


def _plain(text: str) -> str:
    return cut_middle(mend_surrogates(plain_text(text)), MESSAGE_CHARS) if text else ""


def _read_go_lines(text: str, root: str) -> Iterator[tuple[str, TestResult]]:
    del root
    for line in _lines(text):
        for indent, outcome, name in _GO_LINE.findall(line):
            if "/" in name or not indent:
                yield name, TestResult(_GO_OUTCOMES[outcome.lower()])


def _read_cargo(text: str, root: str) -> Iterator[tuple[str, TestResult]]:
    del root
    text = plain_text(text)
    printed = dict(_CARGO_OUTPUT.findall(text))
    found = _CARGO.findall(text)
    for name, said in found:
        yield (
            name,
            TestResult(_RUST_OUTCOMES[said.lower()], printed.get(name, "") if said == "FAILED" else ""),
        )
    if not found and (broken := _CARGO_BROKEN.search(text)):
        yield "cargo build", TestResult(TestOutcome.ERROR, broken[0])


def _read_libtest(text: str, root: str) -> Iterator[tuple[str, TestResult]]:
    del root
    running: dict[str, None] = {}
    for line in _lines(text):
        # A test's own output may stand before an event.
        start = _LIBTEST.search(line)
        event = read_object(line[start.start() :]) if start else None
        if event is None or not isinstance(name := event.get("name"), str):
            continue
        match event.get("event"):
            # The second one only tells that a test takes long.
            case "started" | "timeout":
                running[name] = None
            case "ok" | "ignored" | "failed" as said:
                running.pop(name, None)
                yield name, TestResult(_RUST_OUTCOMES[said], str(event.get("stdout", "")))
    for name in running:
        yield name, TestResult(TestOutcome.FAILED, "it did not end")


def read_object(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object that a line is; None if it is anything else."""
    if not text.startswith("{") or not text.endswith("}"):
        return None
    with contextlib.suppress(ValueError):
        value = parse_json(text)
        return value if isinstance(value, dict) else None
    return None


def _lines(text: str) -> Iterator[str]:
    """Yield lines without white space at their ends; unlike ``splitlines`` only a line feed ends one."""
    for line in text.split("\n"):
        yield line.rstrip()


_READERS = {
    ReportKind.JUNIT: read_junit,
    ReportKind.CATCH: read_catch,
    ReportKind.GO_LINES: _read_go_lines,
    ReportKind.CARGO: _read_cargo,
    ReportKind.LIBTEST: _read_libtest,
}
