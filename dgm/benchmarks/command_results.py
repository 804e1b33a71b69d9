"""The outcomes of tests that a command of the user's ran, out of what it printed.

The sandbox's side (``command_runner.py``) tells which tests it added that must fail. Where they do, they also show
under which module's name each file's tests are reported: tests of other files, which a patch may have changed, are
left out.
"""

import base64
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from dgm.benchmarks.test_outcomes import TestOutcome, TestResult
from dgm.benchmarks.test_reports import ReportKind, read_results

BUILD = "(build)"
"""Name under which a build that fails is told."""
_SECTION = re.compile(r"^ +(?:Running|Doc-tests) .*$", re.M)
_ENDED = re.compile(r"^test result: ", re.M)
_ERROR = re.compile(r"^error(?:\[E\d+\])?: .*", re.M)
_OUTCOMES = {TestOutcome.PASSED: "passed", TestOutcome.SKIPPED: "skipped"}
_RANK = ("passed", "skipped", "failed")


@dataclass
class CommandOutcomes:
    """The results of one run of a command."""

    outcomes: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def read_command(record: Mapping[str, Any]) -> CommandOutcomes:
    """Return the outcomes of the tests that a run is to be believed on."""
    found = CommandOutcomes(problem=record["problem"])
    text = (
        zlib.decompress(base64.b64decode(record["said"])).decode("utf-8", "replace") if record["said"] else ""
    )
    starts = [match.start() for match in _SECTION.finditer(text)]
    sections = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    for section in sections:
        results = read_results(ReportKind.CARGO, section)
        if results and not _ENDED.search(section):
            found.problem = found.problem or "a program of the tests ended early"
            continue
        _take_section(found, results, record)
    if not found.outcomes:
        broken = _ERROR.search(text)
        end = broken[0] if broken else text.strip()[-2000:]
        found.broken[BUILD] = end or f"exit status {record['code']}"
        found.problem = found.problem or f"no test ran (exit status {record['code']})"
    return found


def _take_section(
    found: CommandOutcomes, results: Mapping[str, TestResult], record: Mapping[str, Any]
) -> None:
    """Add the outcomes of one program's tests."""
    mark = record["mark"]
    prefixes = _find_prefixes(results, record)
    if results and not prefixes and any(mark in name for name in results):
        found.problem = found.problem or "the tests were tampered with: one that must fail did not"
    for name, result in results.items():
        path, _, last = name.rpartition("::")
        if re.fullmatch(rf"{mark}_[0-9]+", last):
            continue
        prefix = max((each for each in prefixes if name.startswith(each)), key=len, default=None)
        if prefix is None:
            continue
        file, module = prefixes[prefix]
        outcome = _OUTCOMES.get(result.outcome, "failed")
        inside = f"{path}::{last}" if path else last
        parts = [file, module, inside[len(prefix) :]]
        test = "::".join(filter(None, parts))
        known = found.outcomes.get(test, "passed")
        found.outcomes[test] = max(known, outcome, key=_RANK.index)
        if outcome == "failed" and result.message:
            found.messages[test] = result.message


def _find_prefixes(
    results: Mapping[str, TestResult], record: Mapping[str, Any]
) -> dict[str, tuple[str, str]]:
    """Return beginnings of names → file and module, for those whose tests that must fail all do."""
    pattern = re.compile(rf"(.*?){record['mark']}_([0-9]{{1,6}})")
    found: dict[str, tuple[str, str]] = {}
    for name, result in results.items():
        control = pattern.fullmatch(name)
        if control and result.outcome is TestOutcome.FAILED and int(control[2]) < len(record["controls"]):
            file, module = record["controls"][int(control[2])]
            found[control[1]] = (file, module)
    return found
