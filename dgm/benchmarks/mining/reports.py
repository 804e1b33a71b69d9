"""Read the reports of test runners in one shape: each test by its name, with its outcome and the text of its failure.

Reads JUnit's XML as pytest, ``node --test``, vitest, jest-junit, ctest, GoogleTest, cargo-nextest, Surefire and Gradle
write it; the JSON of jest and vitest; the events of ``go test -json``; the lines of ``cargo test``. Nothing in a report
proves that a test ran: that is enough to mine tasks, not to grade patches.
"""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from dgm.benchmarks.plain_logs import plain_text
from dgm.bounded_reading import parse_json

MOST_CHARS = 64_000_000
"""Maximum characters of a report."""
MESSAGE_CHARS = 20_000
"""Maximum characters that are kept of a failure, half of them from each end."""


class ReportKind(StrEnum):
    """A form of report."""

    JUNIT = "junit"
    JEST = "jest"
    """``--json`` of jest, ``--reporter=json`` of vitest."""
    GO = "go"
    """``go test -json``."""
    CARGO = "cargo"
    """Output of ``cargo test``."""


class TestOutcome(StrEnum):
    """Outcome of a test, from good to bad."""

    __test__ = False  # pytest takes classes of this name for tests

    PASSED = "passed"
    SKIPPED = "skipped"
    FAILED = "failed"
    ERROR = "error"
    """Something around the test failed: a file could not be read or built, a fixture failed."""


_RANK = {outcome: number for number, outcome in enumerate(TestOutcome)}


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test that a report names."""

    __test__ = False

    outcome: TestOutcome
    message: str = ""
    """Text of its failure; empty if it did not fail."""


_UNSTABLE = re.compile(
    r"\b0x[0-9a-fA-F]{6,}|<[\w.]+ (?:object|at) |\bobject at\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\b1[5-9]\d{8}(?:\d{3})?\b"
    r"|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|/tmp/|/var/folders/|\bpytest-of-"
)
"""Parts of names that another run does not have: addresses, times, ids, temporary folders."""
_SUBTEST = re.compile(
    r"(?:^|::)SUB(?:FAILED|PASSED|PASS|SKIPPED|FAIL)\b|(?:^|::)test\w*(?:\[[^\]]*\])? ?\(\w+=.*\)$", re.DOTALL
)
_CARGO = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b", re.M)
_CARGO_OUTPUT = re.compile(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |\nfailures:\n|\Z)", re.M | re.DOTALL)
_CARGO_BROKEN = re.compile(r"^error(?:\[E\d+\])?: .*(?:\n.+)*", re.M)


def read_report(kind: str, text: str, root: str = "") -> dict[str, TestOutcome]:
    """Return the outcomes of a report's tests; arguments and errors are those of ``read_results``."""
    return {name: result.outcome for name, result in read_results(kind, text, root).items()}


def read_results(kind: str, text: str, root: str = "") -> dict[str, TestResult]:
    """Return the tests of a report by name, in its order.

    Of several tests of one name the worst counts. Tests whose names may be others in the next run are left out:
    addresses, times, subtests.

    Args:
        kind: one of ``ReportKind``.
        text: the report; one that was cut off counts as far as it goes.
        root: the folder in which the tests ran, which is taken out of names.

    Raises:
        ValueError: it is no such report, or longer than ``MOST_CHARS``.
    """
    if len(text) > MOST_CHARS:
        raise ValueError(f"the report of the tests is longer than {MOST_CHARS:,} characters")
    found: dict[str, TestResult] = {}
    for name, result in _READERS[ReportKind(kind)](text, root):
        if _UNSTABLE.search(name) or _SUBTEST.search(name):
            continue
        known = found.get(name)
        if known is None or _RANK[result.outcome] > _RANK[known.outcome]:
            found[name] = TestResult(result.outcome, _cut(plain_text(result.message)))
    return found


def _read_junit(text: str, root: str) -> Iterator[tuple[str, TestResult]]:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        # No runner writes one; it could make a few bytes expand to gigabytes.
        raise ValueError("the JUnit report declares a document type")
    suites: list[str] = []
    cases = 0
    try:
        for event, element in _elements(text):
            if element.tag == "testsuite":
                suites = [*suites, element.get("name", "")] if event == "start" else suites[:-1]
            elif element.tag == "testcase" and event == "end":
                cases += 1
                yield _junit_name(element, suites, root), _junit_result(element)
                element.clear()
    except ElementTree.ParseError as error:
        if not cases:
            raise ValueError(f"the JUnit report is no XML: {error}") from error


def _elements(text: str) -> Iterator[tuple[str, ElementTree.Element]]:
    """Yield the beginnings and ends of elements; raise ``ParseError`` where the text breaks off."""
    parser: ElementTree.XMLPullParser[ElementTree.Element] = ElementTree.XMLPullParser(("start", "end"))
    parser.feed(text.encode("utf-8", "replace"))
    for event in parser.read_events():
        element = event[-1]
        if isinstance(element, ElementTree.Element):
            yield event[0], element


def _junit_name(case: ElementTree.Element, suites: list[str], root: str) -> str:
    name, group, file = case.get("name", ""), case.get("classname", ""), case.get("file", "")
    module = file.removesuffix(".py").replace("/", ".")
    if file.endswith(".py") and (group == module or group.startswith(module + ".")):
        return "::".join([file, *filter(None, group[len(module) + 1 :].split(".")), name])
    alike = name.startswith(f"{group} ") or (name == group and suites[-1:] != ["pytest"])
    if group in ("", "test") or alike:
        # node:test gives all of them the class ``test``, and its suites are those of the test file.
        nested = [suite for suite in suites if group == "test" and suite]
        return " > ".join((*nested, _below(name, root)))
    return f"{_below(group, root)}::{name}"


def _junit_result(case: ElementTree.Element) -> TestResult:
    for kind, outcome in (("error", TestOutcome.ERROR), ("failure", TestOutcome.FAILED)):
        if (blamed := case.find(kind)) is not None:
            text, message = (blamed.text or "").strip("\n"), blamed.get("message", "")
            # ctest tells nothing of a failure, but what the test printed.
            return TestResult(outcome, text if text.strip() else message or case.findtext("system-out", ""))
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled", "skipped"):
        return TestResult(TestOutcome.SKIPPED)
    return TestResult(TestOutcome.FAILED if case.get("status") == "fail" else TestOutcome.PASSED)


def _read_jest(text: str, root: str) -> Iterator[tuple[str, TestResult]]:
    start = text.find("{")
    try:
        files = parse_json(text[max(start, 0) :])["testResults"]
        for file in files:
            place = _below(str(file["name"]), root)
            tests = file["assertionResults"]
            for test in tests:
                yield f"{place}::{test['fullName']}", _jest_result(test)
            if not tests and file.get("status") == "failed":
                yield place, TestResult(TestOutcome.ERROR, str(file.get("message", "")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the report of the tests is not the JSON of jest or vitest: {error!r}") from error


def _jest_result(test: Mapping[str, Any]) -> TestResult:
    status = test["status"]
    if status == "failed":
        return TestResult(TestOutcome.FAILED, "\n".join(map(str, test.get("failureMessages") or [])))
    return TestResult(TestOutcome.PASSED if status == "passed" else TestOutcome.SKIPPED)


def _read_go(text: str, root: str) -> Iterator[tuple[str, TestResult]]:
    del root
    outcomes = {"pass": TestOutcome.PASSED, "skip": TestOutcome.SKIPPED, "fail": TestOutcome.FAILED}
    printed: dict[str, list[str]] = {}
    failed: set[str] = set()
    events = 0
    for line in text.splitlines():
        event = _go_event(line)
        if event is None:
            continue
        events += 1
        package, test, action = event["Package"], event["Test"], event["Action"]
        name = f"{package}::{test}" if test else package
        if action in ("output", "build-output"):
            printed.setdefault(name, []).append(event["Output"])
        elif action in outcomes and test:
            failed.update([package] if action == "fail" else [])
            message = "".join(printed.pop(name, [])) if action == "fail" else ""
            yield name, TestResult(outcomes[action], message)
        elif action == "fail" and package not in failed:
            yield name, TestResult(TestOutcome.ERROR, "".join(printed.pop(name, [])))
    if text.strip() and not events:
        raise ValueError("the report of the tests has no event of 'go test -json'")


def _go_event(line: str) -> Mapping[str, str] | None:
    try:
        event = json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or "Action" not in event:
        return None
    package = str(event.get("Package") or event.get("ImportPath", "")).partition(" ")[0]
    return {"Package": package, **{key: str(event.get(key, "")) for key in ("Action", "Test", "Output")}}


def _read_cargo(text: str, root: str) -> Iterator[tuple[str, TestResult]]:
    del root
    text = plain_text(text)
    printed = dict(_CARGO_OUTPUT.findall(text))
    outcomes = {"ok": TestOutcome.PASSED, "ignored": TestOutcome.SKIPPED, "FAILED": TestOutcome.FAILED}
    found = _CARGO.findall(text)
    for name, said in found:
        yield name, TestResult(outcomes[said], printed.get(name, "") if said == "FAILED" else "")
    if not found and (broken := _CARGO_BROKEN.search(text)):
        yield "cargo build", TestResult(TestOutcome.ERROR, broken[0])


def _below(place: str, root: str) -> str:
    """Return a path below the root; anything else as it is."""
    if root and place.startswith("/") and PurePosixPath(place).is_relative_to(root):
        return str(PurePosixPath(place).relative_to(root))
    return place


def _cut(text: str) -> str:
    half = MESSAGE_CHARS // 2
    return text if len(text) <= MESSAGE_CHARS else f"{text[:half]}\n[...]\n{text[-half:]}"


_READERS = {
    ReportKind.JUNIT: _read_junit,
    ReportKind.JEST: _read_jest,
    ReportKind.GO: _read_go,
    ReportKind.CARGO: _read_cargo,
}
