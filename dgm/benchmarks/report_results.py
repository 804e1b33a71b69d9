"""The outcomes of tests out of reports in JUnit's XML that a command of the user's wrote.

The sandbox's side (``report_runner.py``) tells which cases it added that must fail. A name begins with the file that
has the test; only files that are put back count, so that a test which a patch adds is left out.
"""

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from dgm.benchmarks import cpp_controls, jvm_controls
from dgm.benchmarks.command_results import BUILD, CommandOutcomes
from dgm.benchmarks.test_outcomes import TestOutcome, TestResult
from dgm.benchmarks.test_reports import ReportKind, read_results
from dgm.domain import Snapshot

SAID = 2000
"""Maximum characters that are kept of a build's output."""
_ADD_TEST = re.compile(r"^[ \t]*add_test\s*\(\s*(?:NAME\s+)?\"?([\w.:/+-]+)\"?", re.M | re.I)
_SCENARIO = "Scenario: "
_PARAMETERS = re.compile(r"[(\[{]")
_ERROR = re.compile(r"^.*\b(?:error|undefined reference)\b.*$", re.M | re.I)
_OUTCOMES = {TestOutcome.PASSED: "passed", TestOutcome.SKIPPED: "skipped"}
_RANK = ("passed", "skipped", "failed")


class TestPlaces:
    """The files of the tests of a workspace, by the names that reports give."""

    __test__ = False

    def __init__(self, files: Snapshot) -> None:
        """Read the files that are put back; a name in two of them is of neither."""
        self._cases: dict[str, set[str]] = {}
        self._declared: dict[str, set[str]] = {}
        self._classes: dict[str, set[str]] = {}
        self._methods: dict[str, set[str]] = {}
        sources: dict[str, str] = {}
        for path, entry in files.items():
            text = entry.data.decode("utf-8", "surrogateescape")
            if path.endswith(cpp_controls.SUFFIXES):
                for case in cpp_controls.find_cases(text):
                    self._cases.setdefault(case.name, set()).add(path)
            elif path.endswith(jvm_controls.SUFFIXES):
                sources[path] = text
                for name in jvm_controls.find_classes(text):
                    self._classes.setdefault(name, set()).add(path)
            elif path.endswith(cpp_controls.BUILDS):
                for name in _ADD_TEST.findall(text):
                    self._declared.setdefault(name, set()).add(path)

        bases = jvm_controls.find_bases(sources.values())
        for path, text in sources.items():
            for method in jvm_controls.find_cases(text, bases):
                self._methods.setdefault(method.name, set()).add(path)

    def find_inherited(self, path: str, method: str) -> set[str]:
        """Return the other files that may have the test method which a file inherits; none if it has its own."""
        declared = self._methods.get(method, set())
        return set() if path in declared else declared

    def find(self, reported: str) -> tuple[str, str, str] | None:
        """Return the file of a test, its case or none, and its name in the file; None if it is not known.

        Args:
            reported: name, with whatever a declaration or a framework puts before and behind it.
        """
        outer, *nested = reported.partition("::")[0].split("$")
        inside = reported.partition("::")[2]
        if inside and (path := _only(self._classes.get(outer), outer.rpartition(".")[2])):
            return path, _PARAMETERS.split(inside, maxsplit=1)[0], ".".join([*nested, inside])
        for title in (reported, inside, reported.lstrip().removeprefix(_SCENARIO)):
            case, name = cpp_controls.find_case(title, self._cases)
            if path := _only(self._cases.get(case)):
                return path, case, name
        if path := _only(self._declared.get(reported)):
            return path, "", reported
        return None


def read_reports(record: Mapping[str, Any], files: Snapshot, root: str) -> CommandOutcomes:
    """Return the outcomes of the tests that a run is to be believed on.

    Args:
        record: of the sandbox.
        files: tests and configuration that are put back, as they are without marks.
        root: the workspace's folder in the sandbox.
    """
    found = CommandOutcomes(problem=record["problem"])
    results = _merge(record, root, found)
    controls = re.compile(rf"{record['mark']}c_(\d+)(?!\d)")
    believed, passed = _read_controls(results, controls, [file for file, _ in record["controls"]])
    watched = {file for file, _ in record["controls"]}
    if passed:
        found.problem = found.problem or "the tests were tampered with: one that must fail did not"
    places = TestPlaces(files)
    for reported, result in results.items():
        place = None if controls.search(reported) else places.find(reported)
        if place is None or (place[0] in watched and place[0] not in believed):
            continue
        path, case, name = place
        origins = places.find_inherited(path, case)
        if origins & watched and not origins & believed:
            # The file has no method that must fail for it.
            continue
        outcome = _OUTCOMES.get(result.outcome, "failed")
        test = f"{path}::{name}"
        found.outcomes[test] = max(found.outcomes.get(test, "passed"), outcome, key=_RANK.index)
        if outcome == "failed" and result.message:
            found.messages[test] = result.message.replace(f"{root}/", "")
    if not found.outcomes:
        found.broken[BUILD] = _find_error(record, found.problem)
        found.problem = found.problem or f"no test ran (exit status {record['code']})"
    return found


def _read_texts(record: Mapping[str, Any]) -> list[str]:
    """Return the texts of the reports."""
    packed = record["reports"]
    return json.loads(zlib.decompress(base64.b64decode(packed))) if packed else []


def _merge(record: Mapping[str, Any], root: str, found: CommandOutcomes) -> dict[str, TestResult]:
    """Return the results of all reports; of several of one name the worst counts."""
    results: dict[str, TestResult] = {}
    for text in _read_texts(record):
        try:
            more = read_results(ReportKind.JUNIT, text, root)
        except ValueError as error:
            found.problem = found.problem or str(error)
            continue
        for name, result in more.items():
            known = results.get(name)
            if known is None or _rank(result) > _rank(known):
                results[name] = result
    return results


def _read_controls(
    results: Mapping[str, TestResult], controls: re.Pattern[str], files: Sequence[str]
) -> tuple[set[str], bool]:
    """Return the files whose case that must fail did, and whether any passed."""
    believed: set[str] = set()
    passed = False
    for name, result in results.items():
        control = controls.search(name)
        if control and int(control[1]) < len(files):
            if result.outcome in (TestOutcome.FAILED, TestOutcome.ERROR):
                believed.add(files[int(control[1])])
            passed = passed or result.outcome is TestOutcome.PASSED
    return believed, passed


def _rank(result: TestResult) -> int:
    return _RANK.index(_OUTCOMES.get(result.outcome, "failed"))


def _only(paths: set[str] | None, name: str = "") -> str:
    """Return the only path, or the only one whose file has a name; empty if there are others."""
    if paths and len(paths) > 1 and name:
        paths = {path for path in paths if PurePosixPath(path).stem == name}
    return next(iter(paths)) if paths and len(paths) == 1 else ""


def _find_error(record: Mapping[str, Any], problem: str) -> str:
    said = (
        zlib.decompress(base64.b64decode(record["said"])).decode("utf-8", "replace") if record["said"] else ""
    )
    error = _ERROR.search(said)
    if not error and not problem and not _read_texts(record):
        return f"the command wrote no file that --report names (exit status {record['code']})"
    return (error[0] if error else problem or said.strip())[-SAID:] or f"exit status {record['code']}"
