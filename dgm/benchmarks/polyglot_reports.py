"""What the test tools of six languages report, as one shape.

Only reads: everything here was written by, or beside, graded code, so nothing in it is trusted but what carries
the mark that was made up for the run (see ``polyglot_languages``).
"""

import contextlib
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dgm.benchmarks.plain_logs import plain_text

CONTROL = "_control"
"""Ends the name of the test that must fail, after the mark."""
MESSAGE_LIMIT = 8_000
_GO_RESULT = re.compile(r"(?:^|\x16)( *)--- (PASS|FAIL|SKIP): (\S+) \(")
_RUST_EVENT = re.compile(r'\{ ?"type": ?"test",.*\}$')


class Ran(StrEnum):
    """What became of one test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


_OUTCOMES = {ran.value: ran for ran in Ran}


@dataclass(frozen=True, slots=True)
class Result:
    """One test that ran."""

    ran: Ran
    message: str = ""


@dataclass(slots=True)
class Report:
    """Everything that a tool said."""

    results: dict[str, Result] = field(default_factory=dict)
    """By name, the mark taken out; of several results under one name the worst."""
    control: Ran | None = None
    """Of the test that must fail."""
    broken: str = ""
    """Why the test files could not be loaded, in the tool's words."""

    def add(self, name: str, mark: str, result: Result) -> None:
        """Takes one result in."""
        if mark + CONTROL in name:
            self.control = result.ran
            return
        plain = unmarked(name, mark)
        known = self.results.get(plain)
        if known is None or known.ran is Ran.PASSED:
            self.results[plain] = Result(result.ran, plain_text(result.message))


def unmarked(text: str, mark: str) -> str:
    """The text as it was before the tests were marked."""
    return re.sub(rf"(?:_|::)?{mark}(?:::| )?", "", text)


def reporter_lines(results: str, marked: str, mark: str) -> Report:
    """Of our own reporters for pytest and jest: JSON lines under the mark, complete only if the last says so."""
    del marked
    report = Report()
    for said in _spoken(results, mark):
        if "broken" in said:
            report.broken = report.broken or _text(said["broken"])
        elif "test" in said:
            ran = _OUTCOMES.get(_text(said.get("outcome")), Ran.FAILED)
            message = _text(said.get("message", ""))[:MESSAGE_LIMIT]
            report.add(_text(said["test"]), mark, Result(ran, message))
    return report


def go_lines(results: str, marked: str, mark: str) -> Report:
    """Of a Go test program run with ``-test.v=test2json``: one line a test; subtests are named in the message."""
    del results
    report = Report()
    parts: dict[str, list[str]] = {}
    for line in marked.splitlines():
        for indent, verdict, name in _GO_RESULT.findall(line):
            if mark not in name:
                continue
            test, slash, part = name.partition("/")
            if slash and verdict == "FAIL":
                parts.setdefault(test, []).append(part)
            elif not slash and not indent:
                ran = {"PASS": Ran.PASSED, "FAIL": Ran.FAILED, "SKIP": Ran.SKIPPED}[verdict]
                report.add(test, mark, Result(ran))
    for test, failed in parts.items():
        plain = unmarked(test, mark)
        if plain in report.results:
            message = "fails in " + ", ".join(failed)
            report.results[plain] = Result(report.results[plain].ran, message[:MESSAGE_LIMIT])
    return report


def rust_lines(results: str, marked: str, mark: str) -> Report:
    """Of Rust's libtest with ``--format json``: one event a line."""
    del results
    report = Report()
    for line in marked.splitlines():
        found = _RUST_EVENT.search(line)
        event = _json(found.group()) if found else None
        if (
            event
            and mark in str(event.get("name"))
            and event.get("event") in ("ok", "failed", "ignored", "timeout")
        ):
            ran = {"ok": Ran.PASSED, "ignored": Ran.SKIPPED}.get(str(event["event"]), Ran.FAILED)
            said = _text(event.get("stdout", ""))[:MESSAGE_LIMIT]
            report.add(_text(event.get("name", "")), mark, Result(ran, unmarked(said, mark)))
    return report


def catch_xml(results: str, marked: str, mark: str) -> Report:
    """Of Catch2's XML reporter, version 2 or 3; a cut-off report counts as far as it goes."""
    del marked
    report = Report()
    for case in _elements(results, "TestCase"):
        if mark not in case.get("name", ""):
            continue
        whole = case.find("OverallResult")
        passed = whole is not None and whole.get("success") == "true"
        skipped = whole is not None and whole.get("skips", "0") not in ("0", "")
        said = [_expression(each) for each in case.iter("Expression") if each.get("success") == "false"]
        said += [(each.text or "").strip() for name in ("Exception", "FatalErrorCondition", "Failure")
                 for each in case.iter(name)]  # fmt: skip
        ran = Ran.SKIPPED if passed and skipped else Ran.PASSED if passed else Ran.FAILED
        report.add(case.get("name", ""), mark, Result(ran, "\n".join(said)[:MESSAGE_LIMIT]))
    return report


def junit_xml(results: str, marked: str, mark: str) -> Report:
    """Of JUnit's console launcher; the runs of a parametrised test count as one."""
    del marked
    report = Report()
    for case in _elements(results, "testcase"):
        name = re.split(r"[(\[{]", case.get("name", ""), maxsplit=1)[0]
        blamed = [each for kind in ("failure", "error") for each in case.iter(kind)]
        ran = Ran.FAILED if blamed else Ran.SKIPPED if case.find("skipped") is not None else Ran.PASSED
        said = "\n".join((each.get("message") or each.text or "").strip() for each in blamed)
        where = case.get("classname", "")
        report.add(where + name if mark in where else name, mark, Result(ran, said[:MESSAGE_LIMIT]))
    return report


def _expression(element: ElementTree.Element) -> str:
    original = (element.findtext("Original") or "").strip()
    expanded = (element.findtext("Expanded") or "").strip()
    thrown = (element.findtext("Exception") or "").strip()
    found = f"{original}  is  {expanded}" if expanded and expanded != original else original
    return f"{found}  throws {thrown}" if thrown else found


def _elements(text: str, tag: str) -> Iterator[ElementTree.Element]:
    """Complete elements of the XML documents in ``text``; each document ends at a NUL or where it is cut off."""
    for document in text.split("\n\0\n"):
        # Our tools write none; a document type could make a few bytes expand to gigabytes.
        if "<!DOCTYPE" in document or "<!ENTITY" in document:
            continue
        yield from _complete(document, tag)


def _complete(document: str, tag: str) -> Sequence[ElementTree.Element]:
    complete: list[ElementTree.Element] = []
    parser: ElementTree.XMLPullParser[ElementTree.Element] = ElementTree.XMLPullParser(events=("end",))
    # A program that was ended leaves half a document: what was said before that counts.
    # Encodings that the parser does not know, or cannot read, are other errors than those of the document's form.
    with contextlib.suppress(ElementTree.ParseError, ValueError, LookupError):
        parser.feed(document.encode("utf-8", "replace"))
        parser.feed(b"")
    with contextlib.suppress(ElementTree.ParseError):
        for event in parser.read_events():
            element = event[-1]
            if isinstance(element, ElementTree.Element) and element.tag == tag:
                complete.append(element)
    return complete


def _spoken(results: str, mark: str) -> Iterator[Mapping[str, object]]:
    for line in results.splitlines():
        start, _, rest = line.partition(" ")
        said = _json(rest) if start == mark else None
        if said is not None:
            yield said


def _json(text: str) -> Mapping[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(value: object) -> str:
    """As it can be written: JSON may hold halves of surrogate pairs."""
    return str(value).encode("utf-8", "replace").decode()
