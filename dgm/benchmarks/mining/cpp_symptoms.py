"""The failing assertion of a test in C++: the test's own code, and what its framework or ``assert`` prints."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from dgm.benchmarks.cpp_controls import find_case, find_cases
from dgm.benchmarks.hidden_parts import closing_brace
from dgm.benchmarks.mining.symptoms import ERROR_LINES, LINE_CHARS, Symptom, only_code
from dgm.benchmarks.plain_logs import plain_text

_ASSERT = re.compile(r"^\S+: (?:\S+:\d+: )?.*?: (Assertion `(.*)' failed\.)$", re.M)
_PLACE = re.compile(r"^\S+:\d+:(?: |$)")
"""File and line before what a framework says."""
_AROUND = re.compile(
    r"Failure|FAILED:?|at \S+:\d+|\S+:\d+|[-=.~]{5,}|\[.*\].*|Running main\(\) from .*|Note: Google Test filter = .*"
    r"|\d+ FAILED TESTS?|Filters: .*|Randomness seeded to: .*|.* is a Catch2? v\S+ host application\."
    r"|Run with -\? for options|(?:test cases|assertions): .*|TEST SUITE:.*"
)
"""Rows around a failure that say nothing of it."""
_TITLE = re.compile(r"(?:TEST CASE:\s+)?(?:Scenario: )?")
_SECTION = re.compile(
    r'\b(?:(SECTION|SUBCASE)|(?:AND_)?(?:GIVEN|WHEN|THEN))\s*\(\s*"((?:[^"\\\n]|\\.)*)"\s*\)'
)
_STEP = re.compile(r"\s*(?:(?:and )?(?:given|when|then)|and): +", re.I)
"""Words that frameworks put before the titles of GIVEN, WHEN and THEN."""
_BLANKS = re.compile(r"\n(?:[ \t]*\n)+")
_MAIN = re.compile(r"^int\s+main\s*\([^)]*\)\s*", re.M)


def find_cpp_symptom(failure: str, test: str, files: Sequence[str]) -> Symptom:
    """Return what a failing test runs, and how it ends.

    Args:
        failure: what the test printed.
        test: its id: the file, and the name of the case or of ctest's test.
        files: the texts of the test files.

    Raises:
        ValueError: no file, or more than one, has the test, or its code is too long, or there is no error.
    """
    name = test.partition("::")[2]
    failure = plain_text(failure).replace("\r\n", "\n")
    wrong = _ASSERT.search(failure)
    told = [_PLACE.sub("", row) for row in failure.split("\n")]
    rows = [row for row in told if row.strip() and not _is_around(row.strip(), name)]
    error = wrong[1] if wrong else "\n".join(row[:LINE_CHARS] for row in rows[:ERROR_LINES])
    if not error:
        raise ValueError("the output of the tests holds no error that could be told")
    found = {code for text in files for code in _find_code(text, name)}
    if not found and wrong:
        found = {code for text in files for code in _find_main(text, wrong[2])}
    return Symptom(only_code(found), (), error)


def _is_around(row: str, name: str) -> bool:
    """Return whether a row tells a place, the test's own name, or what the framework says of every run."""
    return bool(_AROUND.fullmatch(row)) or _TITLE.sub("", row, count=1) == name


def _find_code(text: str, name: str) -> Iterator[str]:
    """Yield the code of the cases that a test is of."""
    cases = find_cases(text)
    wanted, _ = find_case(name, {case.name for case in cases})
    for case in cases:
        if case.name == wanted:
            section = name.removeprefix(wanted).removeprefix("/")
            for code in _body(text, case.marked_at):
                yield _BLANKS.sub("\n", _keep_section(code, section)).strip("\n") if section else code


def _find_main(text: str, asserted: str) -> Iterator[str]:
    """Yield the code of a program that asserts something."""
    if main := _MAIN.search(text):
        for code in _body(text, main.end()):
            if "".join(asserted.split()) in "".join(code.split()):
                yield code


def _keep_section(code: str, section: str) -> str:
    """Return code without the sections that do not run when one does; all of it if it has none of that name.

    Args:
        code: a case, or a section.
        section: titles from the outermost section to the innermost, with ``/`` between them.
    """
    masked, kept, at, found = _mask(code), "", 0, False
    for one in _SECTION.finditer(code):
        start = masked.find("{", one.end())
        end = closing_brace(masked, start) if start >= 0 else 0
        if one.start() < at or masked[one.start()] == " " or not end:
            continue
        title, path = one[2].replace("\\", ""), section if one[1] else _STEP.sub("", section, count=1)
        if not f"{path}/".startswith(f"{title}/"):
            kept += code[at : one.start()].rstrip(" \t")
        else:
            inside = _keep_section(code[start + 1 : end - 1], path[len(title) + 1 :])
            kept, found = f"{kept}{code[at : start + 1]}{inside}{code[end - 1 : end]}", True
        at = end
    return kept + code[at:] if found else code


def _body(text: str, at: int) -> Iterator[str]:
    masked = _mask(text)
    start = masked.find("{", at)
    end = closing_brace(masked, start) if start >= 0 else 0
    if end:
        rows = textwrap.dedent(text[start + 1 : end - 1].strip("\n")).rstrip().split("\n")
        yield "\n".join(row.rstrip() for row in rows if not row.lstrip().startswith("//")).strip("\n")


def _mask(text: str) -> str:
    """Return the text with blanks for comments, strings and characters; every offset stays."""
    return re.sub(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
        lambda one: re.sub(r"[^\n]", " ", one[0]),
        text,
        flags=re.DOTALL,
    )
