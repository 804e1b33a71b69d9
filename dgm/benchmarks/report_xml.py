"""Reports in XML, read element by element: JUnit's form as a dozen tools write it, and Catch2's own.

Graded code can write either. The text is decoded already, so what it says of its encoding is passed over; a document
type, and nesting or a number of elements that no tool writes, are refused; memory is that of one test.
"""

import contextlib
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from dgm.benchmarks.test_outcomes import TestOutcome, TestResult

MOST_TAGS = 1_000_000
"""Maximum number of tags of a report, comments and the like included."""
MOST_NESTED = 100
"""Maximum nesting of elements."""
_CHUNK = 1_000_000
"""Characters that are parsed at once: fewer, and older parsers read a tag of millions again and again."""
_DOCUMENT_TYPE = re.compile(r"[\s\ufeff]*+(?:<\?.*?\?>\s*+|<!--.*?-->\s*+)*+<!", re.DOTALL)
"""A declaration before the first element, which is the only place for one."""
_COLOUR = re.compile(r"\x1b\[[0-9;:]*[A-Za-z]")
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SECTION_END = re.compile(r"(<!\[CDATA\[.*?(?:\]\]>|\Z))|\]\]>", re.DOTALL)


def read_junit(text: str, root: str) -> Iterator[tuple[str, TestResult]]:
    """Yield name and result of each test of a report as pytest, node, vitest, ctest, Surefire and others write it.

    Args:
        text: one document; one that breaks off counts as far as it goes.
        root: the folder in which the tests ran, which is taken out of names.

    Raises:
        ValueError: it is no XML, or XML that no tool writes.
    """
    for suites, case in _find_elements(text, "testcase"):
        yield _junit_name(case, suites, root), _junit_result(case)


def read_catch(text: str, root: str) -> Iterator[tuple[str, TestResult]]:
    """Yield name and result of each test case of a report by Catch2, version 2 or 3.

    Arguments and errors are those of ``read_junit``.
    """
    del root
    for _, case in _find_elements(text, "TestCase"):
        yield case.get("name", ""), _catch_result(case)


def _find_elements(text: str, tag: str) -> Iterator[tuple[Sequence[str], ElementTree.Element]]:
    """Yield the complete elements of a tag, each with the names of the suites around it."""
    if _DOCUMENT_TYPE.match(text):
        # No tool writes one; it could make a few bytes expand to gigabytes.
        raise ValueError("the report of the tests declares a document type")
    if text.count("<") > MOST_TAGS:
        raise ValueError(f"the report of the tests has more than {MOST_TAGS:,} tags")
    around: list[ElementTree.Element] = []
    found = wanted = 0
    try:
        for event, element in _parse(text):
            if event == "start":
                around.append(element)
                wanted += element.tag == tag
                if len(around) > MOST_NESTED:
                    raise ValueError(f"the report of the tests nests deeper than {MOST_NESTED} elements")
                continue
            around.pop()
            if element.tag == tag:
                wanted -= 1
                found += 1
                yield [each.get("name", "") for each in around if each.tag == "testsuite"], element
            if not wanted:
                # What is done with would fill memory: an element keeps all that was in it.
                element.clear()
                for outer in around[-1:]:
                    del outer[:]
    except ElementTree.ParseError as error:
        if not found:
            raise ValueError(f"the report of the tests is no XML: {error}") from error


def _parse(text: str) -> Iterator[tuple[str, ElementTree.Element]]:
    """Yield the beginnings and ends of elements; raise ``ParseError`` where the text is no XML any more."""
    parser: ElementTree.XMLPullParser[ElementTree.Element] = ElementTree.XMLPullParser(("start", "end"))
    text = _mend(text)
    # Text, not bytes: so the parser does not heed the encoding that the document names.
    for start in range(0, len(text), _CHUNK):
        parser.feed(text[start : start + _CHUNK])
        yield from _new_events(parser)
    # A parser may wait with the last bytes. That elements are open at the end is a report that was cut off.
    with contextlib.suppress(ElementTree.ParseError):
        parser.close()
    yield from _new_events(parser)


def _mend(text: str) -> str:
    """Return the text without what tools copy into it from tests although XML does not allow it anywhere."""
    # Node's reporter leaves the end of a section in the text of failures; several leave control characters.
    text = _ILLEGAL.sub("\ufffd", _COLOUR.sub("", text))
    return _SECTION_END.sub(lambda found: found[1] or "]]&gt;", text) if "]]>" in text else text


def _new_events(
    parser: "ElementTree.XMLPullParser[ElementTree.Element]",
) -> Iterator[tuple[str, ElementTree.Element]]:
    for event in parser.read_events():
        element = event[-1]
        if isinstance(element, ElementTree.Element):
            yield event[0], element


def _junit_name(case: ElementTree.Element, suites: Sequence[str], root: str) -> str:
    name, group, file = case.get("name", ""), case.get("classname", ""), case.get("file", "")
    module = file.removesuffix(".py").replace("/", ".")
    if file.endswith(".py") and (group == module or group.startswith(module + ".")):
        return "::".join([file, *filter(None, group[len(module) + 1 :].split(".")), name])
    alike = name.startswith(f"{group} ") or (name == group and suites[-1:] != ["pytest"])
    if group in ("", "test") or alike:
        # node:test gives all of them the class ``test``, and its suites are those of the test file.
        nested = [suite for suite in suites if group == "test" and suite]
        return " > ".join((*nested, path_below(name, root)))
    return f"{path_below(group, root)}::{name}"


def _junit_result(case: ElementTree.Element) -> TestResult:
    for kind, outcome in (("error", TestOutcome.ERROR), ("failure", TestOutcome.FAILED)):
        if (blamed := case.find(kind)) is not None:
            text, message = (blamed.text or "").strip("\n"), blamed.get("message", "")
            # ctest tells nothing of a failure, but what the test printed.
            said = text if text.strip() else message or case.findtext("system-out", "")
            return TestResult(outcome, said, message)
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled", "skipped"):
        return TestResult(TestOutcome.SKIPPED)
    return TestResult(TestOutcome.FAILED if case.get("status") == "fail" else TestOutcome.PASSED)


def _catch_result(case: ElementTree.Element) -> TestResult:
    whole = case.find("OverallResult")
    if whole is not None and whole.get("success") == "true":
        skipped = whole.get("skips", "0") not in ("0", "")
        return TestResult(TestOutcome.SKIPPED if skipped else TestOutcome.PASSED)
    said = [_catch_expression(each) for each in case.iter("Expression") if each.get("success") == "false"]
    for kind in ("Exception", "FatalErrorCondition", "Failure"):
        said += [(each.text or "").strip() for each in case.iter(kind)]
    return TestResult(TestOutcome.FAILED, "\n".join(said))


def _catch_expression(element: ElementTree.Element) -> str:
    original = (element.findtext("Original") or "").strip()
    expanded = (element.findtext("Expanded") or "").strip()
    thrown = (element.findtext("Exception") or "").strip()
    found = f"{original}  is  {expanded}" if expanded and expanded != original else original
    return f"{found}  throws {thrown}" if thrown else found


def path_below(place: str, root: str) -> str:
    """Return a path below the root; anything else as it is."""
    if root and place.startswith("/") and PurePosixPath(place).is_relative_to(root):
        return str(PurePosixPath(place).relative_to(root))
    return place
