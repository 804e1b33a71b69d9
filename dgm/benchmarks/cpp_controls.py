"""Cases of tests in C++: found by their macros, marked with a name of the run, and joined by cases that must fail.

dgm imports this module, and puts it into sandboxes as a file: standard library only (Python >= 3.9).
"""

from __future__ import annotations

import re
from typing import NamedTuple

SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx")
BUILDS = ("CMakeLists.txt", ".cmake")
"""Ends of the names of files that declare tests to ctest."""
LETTERS = "abc"
"""Ends of the names of cases that must fail."""
GOOGLE, CATCH = "googletest", "catch"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)
_OF_GOOGLE = re.compile(r"(?:.*/)?(?:gtest/gtest|gmock/gmock)\.h")
_OF_CATCH = re.compile(r"(?:.*/)?(?:catch2/.*|catch(?:_\w+)?\.hpp|doctest/doctest\.h|doctest\.h)")
_GOOGLE_CASE = re.compile(r"^[ \t]*(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
_CATCH_CASE = re.compile(r'^[ \t]*(?:TEST_CASE|SCENARIO)\s*\(\s*"((?:[^"\\\n]|\\.)*)"', re.M)
_DISCOVERS = re.compile(r"\b(?:gtest|catch|doctest)_discover_tests\s*\(|\bgtest_add_tests\s*\(", re.I)
_CTEST = re.compile(r"\bctest\b")
_BODIES = {
    GOOGLE: (
        "ADD_FAILURE();",
        "EXPECT_EQ({number}, {number} + 1);",
        "EXPECT_TRUE({number} == {number} + 1);",
    ),
    CATCH: ('FAIL("it must");', "CHECK({number} == {number} + 1);", "REQUIRE({number} == {number} + 1);"),
}
"""Bodies of cases that must fail: a macro of the project could stand for one of the framework's own."""


class Case(NamedTuple):
    """A case of tests in a file."""

    name: str
    """``Suite.Name`` of GoogleTest, else the title."""
    start: int
    """Offset of the macro."""
    marked_at: int
    """Offset of the name, or of the title within its quotes."""


def find_framework(text: str) -> str:
    """Return the framework that a file of tests includes; empty if none is known."""
    names = _INCLUDE.findall(text)
    if any(_OF_GOOGLE.fullmatch(name) for name in names):
        return GOOGLE
    return CATCH if any(_OF_CATCH.fullmatch(name) for name in names) else ""


def find_cases(text: str) -> list[Case]:
    """Return the cases of a file of tests, whichever framework they are of."""
    google = [Case(f"{one[1]}.{one[2]}", one.start(), one.start(2)) for one in _GOOGLE_CASE.finditer(text)]
    return google + [Case(one[1], one.start(), one.start(1)) for one in _CATCH_CASE.finditer(text)]


def mark_cases(text: str, mark: str) -> tuple[str, list[str]]:
    """Return a text with a mark before the names of its cases, and those names as they were."""
    cases = sorted(find_cases(text), key=lambda case: case.marked_at)
    for case in reversed(cases):
        text = f"{text[: case.marked_at]}{mark}_{text[case.marked_at :]}"
    return text, [case.name for case in cases]


def make_controls(framework: str, name: str, number: int) -> str:
    """Return cases that must fail, whose names begin with a name."""
    head = "TEST({name}_{letter}, Fails)" if framework == GOOGLE else 'TEST_CASE("{name}_{letter}")'
    bodies = zip(LETTERS, _BODIES[framework])  # noqa: B905  (Python 3.9)
    return "\n".join(
        f"{head.format(name=name, letter=letter)} {{ {body.format(number=number)} }}"
        for letter, body in bodies
    )


def reports_cases(command: str, builds: list[str]) -> bool:
    """Return whether a command reports each case, as frameworks do; ctest does only where it discovers them.

    Args:
        command: builds and runs the tests.
        builds: texts of the files that declare tests to ctest.
    """
    return not _CTEST.search(command) or any(_DISCOVERS.search(text) for text in builds)
