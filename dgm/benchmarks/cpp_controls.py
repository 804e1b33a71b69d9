"""Cases of tests in C++: found by their macros, and joined by one a file that must fail.

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
_ESCAPE = re.compile(r"\\(.)")
_OF_GOOGLE_CASE = re.compile(
    r"(?:^|[^\w/])(?P<group>\w+(?:/\w+){0,2})(?:::|\.)(?P<test>(?P<name>\w+)(?:[/<].*)?)$", re.DOTALL
)
"""Reported name of GoogleTest's: with what an instance has before it, its parameter or type behind it."""
_BEHIND = re.compile(r"/|<| - ")
"""Sign between the title of a case and a section or type."""
_DISCOVERS = re.compile(r"\b(?:gtest|catch|doctest)_discover_tests\s*\(|\bgtest_add_tests\s*\(", re.I)
_CTEST = re.compile(r"\bctest\b")
_CONTROLS = {
    GOOGLE: "{prefix}TEST({name}, Fails) {{ EXPECT_EQ({number}, {number} + 1); }}",
    # Not FAIL: doctest's own report in JUnit's XML does not tell it.
    CATCH: '{prefix}TEST_CASE("{name}") {{ {prefix}CHECK({number} == {number} + 1); }}',
}
"""The case that must fail; if it passes, the framework or its report was tampered with."""


class Case(NamedTuple):
    """A case of tests in a file."""

    name: str
    """``Suite.Name`` of GoogleTest, else the title."""
    prefix: str = ""
    """Beginning of the macro before its usual name, as in ``CATCH_TEST_CASE``."""


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
        Case(f"{one['suite']}.{one['off'] or ''}{one['name']}", one[1] or "")
        for one in _GOOGLE_CASE.finditer(text)
    ]
    return found + [Case(_ESCAPE.sub(r"\1", one[2]), one[1] or "") for one in _CATCH_CASE.finditer(text)]


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


def add_controls(
    texts: Mapping[str, str], command: str, run: tuple[str, int, int]
) -> Iterator[tuple[str, str]]:
    """Yield paths and texts of the files of tests, with a case that must fail at the end of each.

    Args:
        texts: files of tests and configuration, by their paths.
        command: builds and runs the tests.
        run: the run's mark, number of its first file, whose case is ``{mark}c_{number}``, and a number that nobody can
            know.
    """
    mark, number, secret = run
    if not reports_cases(command, [text for path, text in texts.items() if path.endswith(BUILDS)]):
        return
    sources = {path: text for path, text in texts.items() if path.endswith(SUFFIXES)}
    for path, framework in find_frameworks(sources).items():
        if cases := find_cases(sources[path]):
            own = _CONTROLS[framework].format(name=f"{mark}c_{number}", number=secret, prefix=cases[0].prefix)
            yield path, f"{sources[path]}\n{own}\n"
            number += 1


def reports_cases(command: str, builds: list[str]) -> bool:
    """Return whether a command reports each case, as frameworks do; ctest does only where it discovers them.

    Args:
        command: builds and runs the tests.
        builds: texts of the files that declare tests to ctest.
    """
    return not _CTEST.search(command) or any(_DISCOVERS.search(text) for text in builds)
