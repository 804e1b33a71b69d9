"""The results that a grading of a polyglot exercise counts: those under the mark that was made up for the run.

``test_reports`` reads the tools' own forms; the lines of our reporters for pytest and jest are read here. All of it was
written by, or beside, graded code, so nothing in it is trusted but what carries the mark (see ``polyglot_plan``).
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dgm.benchmarks.plain_logs import plain_text
from dgm.benchmarks.storable_text import cut_middle, mend_surrogates
from dgm.benchmarks.test_outcomes import TestOutcome, TestResult, keep_worst
from dgm.benchmarks.test_reports import ReportKind, read_cases, read_object

CONTROL = "_control"
"""Ends the name of the test that must fail, after the mark."""
MESSAGE_CHARS = 8000
"""Maximum characters that are kept of a failure."""
DOCUMENT_END = "\n\0\n"
"""Stands after each of several reports (``polyglot_runner``)."""
_OUTCOMES = {outcome.value: outcome for outcome in TestOutcome}


@dataclass(slots=True)
class Report:
    """All that counts of what a tool said."""

    results: dict[str, TestResult] = field(default_factory=dict)
    """By name, the mark taken out of it and of the text; passed, skipped or failed."""
    control: TestOutcome | None = None
    """Outcome of the test that must fail; of several, of one that did not."""
    broken: str = ""
    """Why the test files could not be loaded, in the tool's words."""

    def add(self, name: str, mark: str, outcome: TestOutcome, message: str = "") -> None:
        """Take one result in."""
        if outcome is TestOutcome.ERROR:
            outcome = TestOutcome.FAILED
        if mark + CONTROL in name:
            if self.control in (None, TestOutcome.FAILED):
                self.control = outcome
            return
        said = cut_middle(unmarked(plain_text(message), mark), MESSAGE_CHARS)
        keep_worst(self.results, unmarked(name, mark), TestResult(outcome, said))


def unmarked(text: str, mark: str) -> str:
    """Return the text as it was before the tests were marked."""
    return re.sub(rf"(?:_|::)?{mark}(?:::| )?", "", text)


def reporter_lines(results: str, marked: str, mark: str) -> Report:
    """Read our own reporters for pytest and jest: JSON lines under the mark."""
    del marked
    report = Report()
    for line in results.split("\n"):
        start, _, rest = line.rstrip().partition(" ")
        said = read_object(rest) if start == mark else None
        if said is None:
            continue
        if "broken" in said:
            report.broken = report.broken or mend_surrogates(str(said["broken"]))
        elif "test" in said:
            outcome = _OUTCOMES.get(str(said.get("outcome")), TestOutcome.FAILED)
            message = mend_surrogates(str(said.get("message", "")))
            report.add(mend_surrogates(str(said["test"])), mark, outcome, message)
    return report


def go_lines(results: str, marked: str, mark: str) -> Report:
    """Read a Go test program run with ``-test.v=test2json``; subtests that fail are named in their test's text."""
    del results
    report = Report()
    ends: list[tuple[str, TestOutcome]] = []
    parts: dict[str, list[str]] = {}
    for name, result in read_cases(ReportKind.GO_LINES, marked):
        test, slash, part = name.partition("/")
        if mark in test and not slash:
            ends.append((test, result.outcome))
        elif result.outcome is TestOutcome.FAILED:
            parts.setdefault(test, []).append(part)
    for test, outcome in ends:
        failed = ", ".join(parts.get(test, ()))
        report.add(test, mark, outcome, f"fails in {failed}" if failed else "")
    return report


def rust_lines(results: str, marked: str, mark: str) -> Report:
    """Read Rust's libtest with ``--format json``."""
    del results
    report = Report()
    for name, result in read_cases(ReportKind.LIBTEST, marked):
        if mark in name:
            report.add(name, mark, result.outcome, result.message)
    return report


def catch_xml(results: str, marked: str, mark: str) -> Report:
    """Read Catch2's XML reporter."""
    del marked
    report = Report()
    for name, result in _read_documents(ReportKind.CATCH, results):
        if mark in name:
            report.add(name, mark, result.outcome, result.message)
    return report


def junit_xml(results: str, marked: str, mark: str) -> Report:
    """Read JUnit's console launcher; the runs of a parametrised test count as one.

    Tests bear no mark here, only the class of the control does.
    """
    del marked
    report = Report()
    for name, result in _read_documents(ReportKind.JUNIT, results):
        method = re.split(r"[(\[{]", name, maxsplit=1)[0]
        test = method if mark in method else method.rpartition("::")[2]
        report.add(test, mark, result.outcome, result.summary or result.message)
    return report


def _read_documents(kind: ReportKind, results: str) -> Iterator[tuple[str, TestResult]]:
    """Yield the results of all documents; one that is no report says nothing."""
    for document in results.split(DOCUMENT_END):
        with contextlib.suppress(ValueError):
            yield from read_cases(kind, document)
