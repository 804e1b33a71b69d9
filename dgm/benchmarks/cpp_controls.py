"""Cases of tests in C++: found by their macros, marked with a name of the run, and joined by cases that must fail.

dgm imports this module, and puts it into sandboxes as a file: standard library only (Python >= 3.9).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx")
BUILDS = ("CMakeLists.txt", ".cmake")
"""Ends of the names of files that declare tests to ctest."""
LETTERS = "abc"
"""Ends of the names of cases that must fail."""
GOOGLE, CATCH = "googletest", "catch"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)
_OF_GOOGLE = re.compile(r"(?:.*/)?(?:gtest/gtest|gmock/gmock)\.h")
_OF_CATCH = re.compile(r"(?:.*/)?(?:catch2/.*|catch(?:_\w+)?\.hpp|doctest\.h(?:pp)?)")
_GOOGLE_CASE = re.compile(
    r"^[ \t]*(GTEST_)?(?P<kind>(?:TYPED_)?TEST(?:_F|_P)?)\s*\("
    r"\s*(?P<suite>\w+)\s*,\s*(?P<off>DISABLED_)?(?P<name>\w+)\s*\)",
    re.M,
)
_CATCH_CASE = re.compile(
    r"^[ \t]*(CATCH_|DOCTEST_)?(?:TEMPLATE_(?:\w+_)?TEST_CASE|TEST_CASE|SCENARIO)\w*\s*\(\s*"
    r'(?:[\w:<>, \t]+,\s*)?"((?:[^"\\\n]|\\.)*)"',
    re.M,
)
_REGISTERED = re.compile(r"\bREGISTER_TYPED_TEST_(?:SUITE|CASE)_P\s*\(\s*(\w+)\s*,([\w\s,]*)\)")
_FRIEND = re.compile(r"\bFRIEND_TEST\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
_MACRO = re.compile(
    r"^[^\S\n]*(?:#|%:)[^\S\n]*(?:define|undef)[^\S\n]+((?:GTEST_|TYPED_)?TEST(?:_[FP])?|(?:EXPECT|ASSERT|GTEST|CATCH|DOCTEST"
    r"|INTERNAL_CATCH|TEST_CASE|TEMPLATE_\w*TEST_CASE|CHECK|REQUIRE|ADD_FAILURE|SCENARIO)(?:_\w+)?|FAIL|FAIL_CHECK|SUCCEED"
    r"|SECTION|SUBCASE|DYNAMIC_SECTION|GIVEN|WHEN|THEN|AND_(?:GIVEN|WHEN|THEN)|GENERATE|assert|NDEBUG)\b",
    re.M,
)
_INSIDE = re.compile(
    r"\bnamespace\s+((?:testing\s*::\s*internal|testing\s*\{[^}]*?\bnamespace\s+internal|Catch|doctest)\b)"
    r"|<\s*>[^;{}]*?\b(testing\s*::\s*internal|Catch|doctest)\s*::"
    r"|\b(CmpHelper[A-Z]\w*|EqHelper)\b"
)
"""The inside of a framework, or a specialisation of something in it."""
_SPLICE = re.compile(r"\\\r?\n")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"\w+")
_ESCAPE = re.compile(r"\\(.)")
_OF_GOOGLE_CASE = re.compile(
    r"(?:^|[^\w/])(?P<group>\w+(?:/\w+){0,2})(?:::|\.)(?P<test>(?P<name>\w+)(?:[/<].*)?)$", re.DOTALL
)
"""Reported name of GoogleTest's: with what an instance has before it, its parameter or type behind it."""
_BEHIND = re.compile(r"/|<| - ")
"""Sign between the title of a case and a section or type."""
_DISCOVERS = re.compile(r"\b(?:gtest|catch|doctest)_discover_tests\s*\(|\bgtest_add_tests\s*\(", re.I)
_CTEST = re.compile(r"\bctest\b")
_BODIES = {
    GOOGLE: (
        "ADD_FAILURE();",
        "EXPECT_EQ({number}, {number} + 1);",
        "EXPECT_TRUE({number} == {number} + 1);",
    ),
    CATCH: (
        # Not FAIL: doctest's own report in JUnit's XML does not tell it.
        "{prefix}CHECK_FALSE({number} == {number});",
        "{prefix}CHECK({number} == {number} + 1);",
        "{prefix}REQUIRE({number} == {number} + 1);",
    ),
}
"""Bodies of cases that must fail: a macro of the project could stand for one of the framework's own."""


class Case(NamedTuple):
    """A case of tests in a file."""

    name: str
    """``Suite.Name`` of GoogleTest, else the title."""
    marked_at: int
    """Offset of the name, or of the title within its quotes."""
    prefix: str = ""
    """Beginning of the macro before its usual name, as in ``CATCH_TEST_CASE``."""
    is_abstract: bool = False
    """True if the name stands a second time where the suite is registered."""


def find_framework(text: str) -> str:
    """Return the framework that a file of tests includes; empty if none is known."""
    names = _INCLUDE.findall(text)
    if any(_OF_GOOGLE.fullmatch(name) for name in names):
        return GOOGLE
    return CATCH if any(_OF_CATCH.fullmatch(name) for name in names) else ""


def find_frameworks(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the framework of each file that includes one, itself or by another of these files.

    Args:
        texts: by the files' paths.
    """
    found = {name: find_framework(text) for name, text in texts.items()}
    included = {name: _find_included(name, text, texts) for name, text in texts.items()}
    more = True
    while more:
        more = False
        for name, others in included.items():
            told = next((found[other] for other in others if found[other]), "")
            if told and not found[name]:
                found[name], more = told, True
    return {name: framework for name, framework in found.items() if framework}


def _find_included(name: str, text: str, known: Collection[str]) -> list[str]:
    """Return the files that a file includes; a path may begin at any folder."""
    names = [posixpath.normpath(one) for one in _INCLUDE.findall(text)]
    beside = [posixpath.normpath(posixpath.join(posixpath.dirname(name), one)) for one in names]
    ends = tuple(f"/{one}" for one in names if not one.startswith("../"))
    return [other for other in known if other != name and (other in beside or f"/{other}".endswith(ends))]


def find_cases(text: str) -> list[Case]:
    """Return the cases of a file of tests, whichever framework they are of."""
    found = [
        Case(
            f"{one['suite']}.{one['off'] or ''}{one['name']}",
            one.start("name"),
            one[1] or "",
            one["kind"] == "TYPED_TEST_P",
        )
        for one in _GOOGLE_CASE.finditer(text)
    ]
    return found + [
        Case(_ESCAPE.sub(r"\1", one[2]), one.start(2), one[1] or "") for one in _CATCH_CASE.finditer(text)
    ]


def find_case(reported: str, known: Collection[str]) -> tuple[str, str]:
    """Return the case that a reported test is of, and the test's name; both are empty if it is of none.

    Args:
        reported: name, which may tell an instance, a type or a section, too.
        known: names of cases.
    """
    if google := _OF_GOOGLE_CASE.search(reported):
        cases = [f"{suite}.{google['name']}" for suite in google["group"].split("/")]
        if reported.endswith(">"):
            # ctest leaves the suite of an abstract typed test out: My/Suite/0.Name is My.Name<int>.
            alike = [one for one in known if one.endswith(f".{google['name']}")]
            cases += alike if len(alike) == 1 else []
        for case in cases:
            if case in known:
                return case, f"{google['group']}.{google['test']}"
    ends = [len(reported), *(one.start() for one in _BEHIND.finditer(reported))]
    case = next((reported[:end] for end in sorted(ends, reverse=True) if reported[:end] in known), "")
    return case, reported if case else ""


def find_friends(text: str) -> set[str]:
    """Return the cases that a file of the code names as friends of a class."""
    return {f"{suite}.{name}" for suite, name in _FRIEND.findall(text)}


def find_false_macros(text: str) -> set[str]:
    """Return the macros of tests that a file of the code defines, or takes away."""
    text = _SPLICE.sub("", text)
    # What looks like a comment may stand in strings, with a macro between them.
    return {*_MACRO.findall(text), *_MACRO.findall(_COMMENT.sub(" ", text))}


def find_inside(text: str) -> set[str]:
    """Return the namespaces of frameworks to whose inside a file of the code adds."""
    found = _INSIDE.findall(_COMMENT.sub(" ", _SPLICE.sub("", text)))
    return {re.split(r"\W", name)[0] for names in found for name in names if name}


def find_replaced(start: Mapping[str, str], patched: Mapping[str, str]) -> str:
    """Return what of a framework a patch gives another meaning: cases that must fail do not use all of it.

    Args:
        start: files of the code without the patch, by their paths.
        patched: the same with it.
    """
    for path, text in patched.items():
        before = start.get(path, "")
        if text != before and (new := find_false_macros(text) - find_false_macros(before)):
            return f"{min(new)} is defined anew"
        if text != before and (new := find_inside(text) - find_inside(before)):
            return f"{path} adds to {min(new)}"
    return ""


def mark_files(
    texts: Mapping[str, str], code: Mapping[str, str], command: str, run: tuple[str, int, int]
) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield the files of tests with marks before the names of their cases, and cases that must fail.

    Each is a path, the text, the names of the cases that are marked, and the ends of the names of those that must fail.

    Args:
        texts: files of tests and configuration, by their paths.
        code: files of the code without a patch.
        command: builds and runs the tests.
        run: the run's mark, number of its first file, whose cases are ``{mark}c_{number}_{letter}``, and a number that
            nobody can know.
    """
    mark, number, secret = run
    if not reports_cases(command, [text for path, text in texts.items() if path.endswith(BUILDS)]):
        return
    sources = {path: text for path, text in texts.items() if path.endswith(SUFFIXES)}
    headers = [text for path, text in code.items() if path.endswith(SUFFIXES)]
    friends = {name for text in (*headers, *sources.values()) for name in find_friends(text)}
    for path, framework in find_frameworks(sources).items():
        if cases := find_cases(sources[path]):
            text, marked = mark_cases(sources[path], mark, friends)
            own = make_controls(framework, f"{mark}c_{number}", secret, cases[0].prefix)
            yield path, f"{text}\n{own}\n", marked, LETTERS
            number += 1


def mark_cases(text: str, mark: str, friends: Collection[str] = ()) -> tuple[str, list[str]]:
    """Return a text with a mark before the names of its cases, and those names as they were.

    Args:
        text: a file of tests.
        mark: new in each run.
        friends: cases that stay as they are, since code names them.
    """
    registered = {
        f"{one[1]}.{word[0]}": word.start()
        for one in _REGISTERED.finditer(text)
        for word in _WORD.finditer(text, one.start(2), one.end(2))
    }
    cases = [
        case
        for case in sorted(find_cases(text), key=lambda case: case.marked_at)
        if case.name not in friends and (not case.is_abstract or case.name in registered)
    ]
    places = {case.marked_at for case in cases}
    places |= {registered[case.name] for case in cases if case.is_abstract}
    for place in sorted(places, reverse=True):
        text = f"{text[:place]}{mark}_{text[place:]}"
    return text, [case.name for case in cases]


def make_controls(framework: str, name: str, number: int, prefix: str = "") -> str:
    """Return cases that must fail, whose names begin with a name.

    Args:
        framework: ``GOOGLE`` or ``CATCH``.
        name: new in each run.
        number: new in each run, so that no macro can be made for it.
        prefix: before the macros that declare cases, such as ``CATCH_``.
    """
    head = (
        "{prefix}TEST({name}_{letter}, Fails)"
        if framework == GOOGLE
        else '{prefix}TEST_CASE("{name}_{letter}")'
    )
    bodies = zip(LETTERS, _BODIES[framework])  # noqa: B905  (Python 3.9)
    return "\n".join(
        f"{head.format(name=name, letter=letter, prefix=prefix)} {{ {body.format(number=number, prefix=prefix)} }}"
        for letter, body in bodies
    )


def reports_cases(command: str, builds: list[str]) -> bool:
    """Return whether a command reports each case, as frameworks do; ctest does only where it discovers them.

    Args:
        command: builds and runs the tests.
        builds: texts of the files that declare tests to ctest.
    """
    return not _CTEST.search(command) or any(_DISCOVERS.search(text) for text in builds)
