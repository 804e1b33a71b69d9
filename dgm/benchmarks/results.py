"""Read what a test command reported: each test by its name ``file::test``, with its outcome.

Graded code can write any report. So each file of tests holds one test that must fail (``languages``): where it passes,
the report was tampered with; where it is missing, the tests of its file do not count.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree

from dgm.benchmarks.languages import Language, Results, language_of
from dgm.benchmarks.logs import cut_middle, mend_surrogates, plain_text
from dgm.domain import Snapshot

PASSED, SKIPPED, FAILED = RANK = ("passed", "skipped", "failed")
"""Outcomes of tests, from good to bad."""
TAMPERED = "the tests were tampered with"
"""Beginning of a problem that is the patch's attempt to cheat."""
BUILD = "(build)"
"""Name under which a build that fails is reported."""
TOO_LONG = "the report of the tests is longer than any tool writes"
NO_JSON = "the report of the tests is no JSON"
NO_TEST = "(a test that was not reached)"
MESSAGE_CHARS = 20_000
"""Maximum characters that are kept of a failure, half of them from each end."""
NAME_CHARS = 10_000
"""Maximum characters of a class or test in JUnit's XML; each sign in it may be the end of its title."""
MOST_CHARS = 64_000_000
MOST_TAGS = 1_000_000
"""Limits of a report in XML: its characters, and its tags (of Go's its lines)."""
_DOCUMENT_TYPE = re.compile(r"<!(?!--|\[CDATA\[)")
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SECTION_END = re.compile(r"(<!\[CDATA\[.*?(?:\]\]>|\Z))|\]\]>", re.DOTALL)
_STATUSES = (0, 1, 134, 137, 139)
"""Exit statuses that a reason tells; graded code could spell out a secret with all of them."""
_CARGO_PROGRAM = re.compile(r"^ +(?:Running|Doc-tests) .*$", re.M)
_CARGO_END = re.compile(r"^test result: ", re.M)
_CARGO_TEST = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b", re.M)
_CARGO_OUTPUT = re.compile(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |\nfailures:\n|\Z)", re.M | re.DOTALL)
_ERROR = re.compile(r"^(?:.*\b(?:error|undefined reference)\b.*|.*: \w+Error\b.*)$", re.M | re.I)
_GO_OUTCOMES = {"pass": PASSED, "skip": SKIPPED, "fail": FAILED}
_CARGO_OUTCOMES = {"ok": PASSED, "ignored": SKIPPED, "FAILED": FAILED}
_JEST_OUTCOMES = {"passed": PASSED, "failed": FAILED}
_GTEST = re.compile(
    r"^[ \t]*(?:GTEST_)?(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*((?:DISABLED_)?\w+)\s*\)", re.M
)
_CATCH = re.compile(
    r"^[ \t]*(?:CATCH_|DOCTEST_)?(?:TEMPLATE_(?:\w+_)?TEST_CASE|TEST_CASE|SCENARIO)\w*\s*\(\s*"
    r'(?:[\w:<>, \t]+,\s*)?"((?:[^"\\\n]|\\.)*)"',
    re.M,
)
_GTEST_NAME = re.compile(
    r"(?:^|[^\w/])(?P<group>\w+(?:/\w+){0,2})(?:::|\.)(?P<test>(?P<name>\w+)(?:[/<].*)?)$", re.S
)
"""Reported name of GoogleTest's: with what an instance has before it, its parameter or type behind it."""
_ADD_TEST = re.compile(r"^[ \t]*add_test\s*\(\s*(?:NAME\s+)?\"?([\w.:/+-]+)\"?", re.M | re.I)
_BEHIND = re.compile(r"/|<| - ")
"""Sign between the title of a case and a section or type."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The part of a failure that graded code cannot fill with text."""

    kind: str
    """Name of one of Python's exceptions or of a class in the workspace; empty for any other."""
    lines: tuple[str, ...] = ()
    """Lines of the patched workspace, as it was before its code ran."""


@dataclass
class Outcomes:
    """The results of tests by name."""

    outcomes: dict[str, str] = field(default_factory=dict)
    """Test → ``passed``, ``failed`` or ``skipped``; a test that was not reported is missing."""
    failures: dict[str, Failure] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    """Test → the report on its failure."""
    broken: dict[str, str] = field(default_factory=dict)
    """Test file that could not be run, or ``BUILD`` → the reason."""
    foreign: list[str] = field(default_factory=list)
    """Top-level modules of the project that were imported from elsewhere than the workspace."""
    problem: str = ""
    """Why the results do not count as they are; empty if they do."""


@dataclass(frozen=True, slots=True)
class Case:
    """One reported test."""

    test: str
    """Name in its file."""
    outcome: str
    message: str = ""
    file: str = ""
    """Empty if it is not known."""
    watched: str = ""
    """Name of the control test that vouches for it: that of its file, or of its folder; empty: ``file``."""


def read_outcomes(
    results: Results, report: Mapping[str, Any], names: Sequence[str] | None, files: Snapshot, root: str
) -> Outcomes:
    """Return the outcomes of the tests that a run is to be believed on.

    Args:
        results: the way to read them.
        report: of ``sandbox_runner``, with ``reports`` unpacked: pairs of a file or folder and a text.
        names: of the tests that were wanted; None: all.
        files: tests and configuration that are put back, without controls.
        root: the workspace's folder in the sandbox.
    """
    if results is Results.PYTEST:
        return read_pytest(report, names)
    found = Outcomes(problem=report["problem"], broken=dict(report["broken"]))
    cases: list[Case] = []
    for label, text in report["reports"]:
        try:
            cases += _READERS[results](label, text, report, found)
        except (ValueError, RecursionError) as error:
            # What json says holds numbers that graded code can choose.
            found.problem = found.problem or (NO_JSON if results is Results.JEST else str(error))
    if results is Results.JUNIT:
        places = TestPlaces(files)
        cases = [places.place(case) for case in cases]
    _judge(cases, report, found)
    for test, message in list(found.messages.items()):
        found.messages[test] = cut_middle(
            mend_surrogates(plain_text(message)).replace(f"{root}/", ""), MESSAGE_CHARS
        )
    if names is not None:
        found.outcomes = {test: found.outcomes[test] for test in names if test in found.outcomes}
    elif not found.outcomes and BUILD not in found.broken:
        found.broken[BUILD] = _find_error(report, found.problem)
    if not found.outcomes:
        found.problem = found.problem or f"no test ran (exit status {report['code']})"
    return found


def _judge(cases: Iterable[Case], report: Mapping[str, Any], found: Outcomes) -> None:
    """Take the cases whose control failed; of several of one name the worst counts."""
    mark = re.compile(rf"{re.escape(report['mark'])}_(\d{{1,6}})(?!\d)")
    watched = [file for file, _ in report["controls"]]
    believed, tests = set[str](), list[Case]()
    for case in cases:
        control = mark.search(case.test)
        if control is None:
            tests.append(case)
        elif int(control[1]) < len(watched):
            if case.outcome == FAILED:
                believed.add(watched[int(control[1])])
            elif case.outcome == PASSED:
                found.problem = found.problem or f"{TAMPERED}: one that must fail did not"
    for case in tests:
        unit = case.watched or case.file
        if not case.file or (unit in watched and unit not in believed):
            continue
        name = mend_surrogates(f"{case.file}::{case.test}")
        outcome = max(found.outcomes.get(name, PASSED), case.outcome, key=RANK.index)
        found.outcomes[name] = outcome
        if case.outcome == FAILED and case.message:
            found.messages[name] = case.message


def _find_error(report: Mapping[str, Any], problem: str) -> str:
    output = plain_text(report["output"])
    error = _ERROR.search(output)
    if not error and not problem and not any(text for _, text in report["reports"]):
        return f"the command wrote no report (exit status {report['code']})"
    return (error[0] if error else problem or output.strip())[-2000:] or f"exit status {report['code']}"


def read_pytest(report: Mapping[str, Any], names: Sequence[str] | None) -> Outcomes:
    """Return what the plug-in in pytest's process reported, each test once.

    It must report that its two control tests failed: code under test shares its process, and this shows that it left
    alone what judges them. Arguments are those of ``read_outcomes``.
    """
    lines: list[dict[str, Any]] = [line for _, text in report["reports"] for line in json.loads(text)]
    controls = report["controls"]
    ended = any("end" in line for line in lines)
    told = [line for line in lines if isinstance(line.get("test"), str)]
    failed_controls = {
        line["test"] for line in told if line["test"] in controls and line["outcome"] == FAILED
    }
    if names is None:
        # A survey that does not come to its end keeps what it has: no list says which tests are missing.
        names = [*dict.fromkeys(line["test"] for line in told if line["test"] not in controls)]
        names += [] if ended else [NO_TEST]
    found, wanted = Outcomes(problem=report["problem"]), {*names}
    for line in told:
        test, outcome = line["test"], line["outcome"]
        if test not in wanted:
            continue
        first = test not in found.outcomes
        found.outcomes[test] = (outcome if outcome in RANK else FAILED) if first else "reported twice"
        if isinstance(error := line.get("error"), dict):
            found.failures[test] = Failure(error["kind"], tuple(error["lines"]))
        if line.get("message"):
            found.messages[test] = str(line["message"])
    found.broken = {str(line["broken"]): str(line.get("message")) for line in lines if "broken" in line}
    found.foreign = [str(line["foreign"]) for line in lines if "foreign" in line]
    code, complete = report["code"], ended or len(found.outcomes) == len(wanted)
    if not found.problem and (not ended or code):
        found.problem = (
            f"the tests ended early (exit status {code if code in _STATUSES else 'neither 0 nor 1'})"
        )
        distrusted = ended
    else:
        distrusted = False
    if ended and not told:
        found.problem = found.problem or "the tests ended early: pytest ran none"
    elif len(failed_controls) < len(controls) and complete:
        found.problem, distrusted = f"{TAMPERED}: one that must fail did not", True
    if distrusted:
        found.outcomes = dict.fromkeys(found.outcomes, FAILED)
    return found


def _read_junit(label: str, text: str, report: Mapping[str, Any], found: Outcomes) -> Iterator[Case]:
    del label, report, found
    for element in find_elements(text, "testcase"):
        outcome, message = junit_result(element)
        name, group = (element.get(key, "")[:NAME_CHARS] for key in ("name", "classname"))
        yield Case(name if group == name else f"{group}::{name}", outcome, message)


def find_elements(text: str, tag: str) -> Iterator[ElementTree.Element]:
    """Yield the complete elements of a tag.

    A document that breaks off counts as far as it goes. What it says of its encoding is passed over: it is decoded.

    Raises:
        ValueError: it is no XML, or XML that no tool writes: with a document type, which could make a few bytes expand
            to gigabytes, too long, or of too many tags.
    """
    text = _ILLEGAL.sub("\ufffd", text)
    text = _SECTION_END.sub(lambda end: end[1] or "]]&gt;", text) if "]]>" in text else text
    head = text[: next((match.start() for match in re.finditer(r"<\w", text)), len(text))]
    if _DOCUMENT_TYPE.search(head):
        raise ValueError("the report of the tests declares a document type")
    if len(text) > MOST_CHARS or text.count("<") > MOST_TAGS:
        raise ValueError(TOO_LONG)
    parser: ElementTree.XMLPullParser[ElementTree.Element] = ElementTree.XMLPullParser(("end",))
    parser.feed(text)
    with contextlib.suppress(ElementTree.ParseError):
        parser.close()
    complete = 0
    try:
        for event in parser.read_events():
            element = event[-1]
            if isinstance(element, ElementTree.Element) and element.tag == tag:
                complete += 1
                yield element
    except ElementTree.ParseError as error:
        if not complete:
            raise ValueError("the report of the tests is no XML") from error


def junit_result(case: ElementTree.Element) -> tuple[str, str]:
    """Return the outcome of a ``testcase``, and the text of its failure."""
    for kind in ("error", "failure"):
        if (blamed := case.find(kind)) is not None:
            text = (blamed.text or "").strip("\n")
            # ctest tells nothing of a failure, but what the test printed.
            return FAILED, text if text.strip() else blamed.get("message", "") or case.findtext(
                "system-out", ""
            )
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled", "skipped"):
        return SKIPPED, ""
    return (FAILED if case.get("status") == "fail" else PASSED), ""


def _read_jest(label: str, text: str, report: Mapping[str, Any], found: Outcomes) -> Iterator[Case]:
    with contextlib.suppress(KeyError, TypeError, AttributeError):
        for suite in json.loads(text)["testResults"]:
            file = label or str(suite["name"]).removeprefix(f"{report['root']}/")
            if not suite["assertionResults"] and suite.get("message"):
                found.broken[file] = str(suite["message"])[-MESSAGE_CHARS:]
            for test in suite["assertionResults"]:
                name = " > ".join([*test["ancestorTitles"], test["title"]])
                message = "\n".join(test.get("failureMessages") or ())
                yield Case(name, _JEST_OUTCOMES.get(test["status"], SKIPPED), message, file)


def _read_go(label: str, text: str, report: Mapping[str, Any], found: Outcomes) -> Iterator[Case]:
    functions: Mapping[str, str] = report["functions"].get(label, {})
    if text.count("\n") > MOST_TAGS:
        raise ValueError(TOO_LONG)
    printed, ends, begun = dict[str, str](), dict[str, str](), dict[str, None]()
    for line in text.split("\n"):
        event = _parse_event(line)
        test, action = str(event.get("Test", "")), str(event.get("Action"))
        if action == "run":
            begun[test] = None
        elif action == "output":
            printed[test] = f"{printed.get(test, '')}{event.get('Output', '')}"[-100_000:]
        elif test and action in _GO_OUTCOMES:
            # A test that ends twice did not report it all by itself.
            ends[test] = FAILED if test in ends else _GO_OUTCOMES[action]
    ends |= {test: FAILED for test in begun if test not in ends}
    if not ends:
        found.broken.update(dict.fromkeys(functions.values(), printed.get("", "").strip() or "no test ran"))
    sound = any(report["mark"] in test and outcome == FAILED for test, outcome in ends.items())
    for test, outcome in ends.items():
        # Where a test ends the program before the control runs, the others run once more.
        if sound or outcome == FAILED or report["mark"] in test:
            file = functions.get(test.partition("/")[0], "")
            yield Case(test, outcome, printed.get(test, "") if outcome == FAILED else "", file, label)


def _parse_event(line: str) -> Mapping[str, Any]:
    """Return the event of a line; what is none was printed by the build."""
    with contextlib.suppress(ValueError, RecursionError):
        event = json.loads(line)
        if isinstance(event, dict):
            return event
    return {"Action": "output", "Output": f"{line}\n"}


def _read_cargo(label: str, text: str, report: Mapping[str, Any], found: Outcomes) -> Iterator[Case]:
    del label
    text = plain_text(text)
    mark = re.compile(rf"(.*?){re.escape(report['mark'])}_(\d{{1,6}})")
    starts = [match.start() for match in _CARGO_PROGRAM.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        section = text[start:end]
        outcomes = [(name, _CARGO_OUTCOMES[word]) for name, word in _CARGO_TEST.findall(section)]
        if outcomes and not _CARGO_END.search(section):
            found.problem = found.problem or "a program of the tests ended early"
            continue
        printed = dict(_CARGO_OUTPUT.findall(section))
        prefixes: dict[str, tuple[str, str]] = {}
        for name, outcome in outcomes:
            control = mark.fullmatch(name)
            if control:
                yield Case(name.rpartition("::")[2], outcome)
                known = len(report["controls"])
                if outcome == FAILED and int(control[2]) < known and len(prefixes) < known:
                    file, module = report["controls"][int(control[2])]
                    prefixes[control[1]] = file, module
        for name, outcome in outcomes:
            prefix = max((each for each in prefixes if name.startswith(each)), key=len, default=None)
            if prefix is not None and not mark.fullmatch(name):
                file, module = prefixes[prefix]
                test = "::".join(filter(None, [module, name[len(prefix) :]]))
                yield Case(test, outcome, printed.get(name, ""), file)


_READERS = {
    Results.JUNIT: _read_junit,
    Results.JEST: _read_jest,
    Results.GO_JSON: _read_go,
    Results.CARGO: _read_cargo,
}


class TestPlaces:
    """The files of the tests of a workspace, by the names that reports in JUnit's XML give."""

    __test__ = False

    def __init__(self, files: Snapshot) -> None:
        """Read the files that are put back; a name in two of them is of neither."""
        self._cases: dict[str, set[str]] = {}
        for path, entry in files.items():
            language, text = language_of(path), entry.data.decode("utf-8", "surrogateescape")
            names: Iterable[str] = ()
            if language is Language.JVM:
                package = re.search(r"^\s*package\s+([\w.]+)", text, re.M)
                before = f"class {package[1]}." if package else "class "
                names = [before + name for name in re.findall(r"\b(?:class|object|record)\s+(\w+)", text)]
            elif language is Language.CPP:
                names = [f"{suite}.{name}" for suite, name in _GTEST.findall(text)]
                names += [re.sub(r"\\(.)", r"\1", title) for title in _CATCH.findall(text)]
            elif path.endswith(("CMakeLists.txt", ".cmake")):
                names = _ADD_TEST.findall(text)
            for name in names:
                self._cases.setdefault(name, set()).add(path)

    def place(self, case: Case) -> Case:
        """Return a case ``class::name`` with its file, and its name in the file; without one if it is not known."""
        group, _, name = case.test.partition("::")
        outer, *nested = group.split("$")
        if file := self._find_class(outer) if name else "":
            return replace(case, file=file, test=".".join([*nested, name]))
        for title in (case.test, name, name.lstrip().removeprefix("Scenario: ")):
            known, test = self._find_case(title)
            if file := _only(self._cases.get(known)):
                return replace(case, file=file, test=test)
        return case

    def _find_class(self, name: str) -> str:
        """Return the file of a class with its package; of two that declare it, the one with its name."""
        paths = self._cases.get(f"class {name}", set())
        return _only(paths) or _only(
            {path for path in paths if PurePosixPath(path).stem == name.rpartition(".")[2]}
        )

    def _find_case(self, reported: str) -> tuple[str, str]:
        """Return the case that a reported test is of, and the test's name; both are empty if it is of none."""
        if google := _GTEST_NAME.search(reported):
            cases = [f"{suite}.{google['name']}" for suite in google["group"].split("/")]
            if reported.endswith(">"):
                # ctest leaves the suite of an abstract typed test out: My/Suite/0.Name is My.Name<int>.
                alike = [known for known in self._cases if known.endswith(f".{google['name']}")]
                cases += alike if len(alike) == 1 else []
            for case in cases:
                if case in self._cases:
                    return case, f"{google['group']}.{google['test']}"
        ends = [len(reported), *(match.start() for match in _BEHIND.finditer(reported))]
        case = next(
            (reported[:end] for end in sorted(ends, reverse=True) if reported[:end] in self._cases), ""
        )
        return case, reported if case else ""


def _only(paths: set[str] | None) -> str:
    return next(iter(paths)) if paths and len(paths) == 1 else ""
