"""Gives Go's test functions names that only one run knows, and each a twin that must fail; standard library only.

dgm puts it into the sandbox as a file, beside ``go_runner.py`` (Python >= 3.9). Lines keep their numbers.
"""

from __future__ import annotations

import random
import re
import secrets
from dataclasses import dataclass, field

FUNCTION = re.compile(
    r"^func (?P<name>Test(?:[^\Wa-z]\w*)?)\(\s*(?:\w+\s+)?\*\s*(?P<kind>(?:\w+\.)?T)\s*\)", re.MULTILINE
)
PACKAGE = re.compile(r"^package (\w+)", re.MULTILINE)
CLAUSE = re.compile(r"^package \w+(?=[ \t]*(?:;|//|/\*|\r?$))", re.MULTILINE)
MARK = re.compile(r"_x[0-9a-f]{16}")
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|`[^`]*`|'(?:\\.|[^'\\\n])*'|\w+""", re.DOTALL)
IN_TEXT = re.compile(r"(?<=run=)\w+|(?<=\^)\w+")
"""A name within a text that selects tests; in other texts names stay as they are."""
FAILURES = (
    't.Error("this", "that")',
    't.Errorf("got %d, want %d", 1, 2)',
    "t.Fail()",
    't.Fatal("this")',
    "t.FailNow()",
)


@dataclass
class MarkedPackage:
    """The test files of one folder under names of one run."""

    files: dict[str, str] = field(default_factory=dict)
    """File → its text; bytes as Latin-1."""
    tests: dict[str, str] = field(default_factory=dict)
    """Name of a function in this run → the test's own: the file and the function."""
    twins: dict[str, str] = field(default_factory=dict)
    """Name of a test in this run → that of its twin."""


def mark_tests(sources: dict[str, str]) -> MarkedPackage:
    """Return the test files of a folder under new names.

    Args:
        sources: file → its text, bytes as Latin-1.
    """
    found = MarkedPackage()
    names: dict[tuple[str, str], str] = {}
    own: dict[tuple[str, str], str] = {}
    for file, text in sources.items():
        for function in FUNCTION.finditer(text):
            name = function["name"]
            if name != "TestMain":
                marked = name + new_mark()
                own[file, name] = names[read_package(text), name] = marked
                found.tests[marked] = f"{file}::{name}"
                found.twins[marked] = name + new_mark()
    for file, text in sources.items():
        known = {name: marked for (package, name), marked in names.items() if package == read_package(text)}
        known |= {name: marked for (place, name), marked in own.items() if place == file}
        found.files[file] = restore_output(add_twins(rename(text, known), found.twins))
    return found


def rename(text: str, names: dict[str, str]) -> str:
    """Return a program with other names for some functions."""

    def change(token: re.Match[str]) -> str:
        said = token[0]
        if said[:1] in '"`':
            return IN_TEXT.sub(lambda name: names.get(name[0], name[0]), said)
        return names.get(said, said)

    return TOKEN.sub(change, text) if names else text


def add_twins(text: str, twins: dict[str, str]) -> str:
    """Return a test file with a twin of each test, on the line where the test begins or at the end."""
    last: list[str] = []
    choice = random.SystemRandom()

    def add(function: re.Match[str]) -> str:
        if function["name"] not in twins:
            return function[0]
        kind, name = function["kind"], twins[function["name"]]
        sub = "t" + secrets.token_hex(4)
        body = f't.Run("{sub}", func(t *{kind}) {{ {choice.choice(FAILURES)} }})'
        twin = f"func {name}(t *{kind}) {{ {body} }}"
        if choice.random() < 0.5:
            return f"{twin}; {function[0]}"
        last.append(twin)
        return function[0]

    changed = FUNCTION.sub(add, text)
    return "\n".join([changed, *last, ""])


def restore_output(text: str) -> str:
    """Return a test file that restores the tests' standard output after code under test was initialised."""
    system = f"os{new_mark()}"
    changed, times = CLAUSE.subn(lambda clause: f'{clause[0]}; import {system} "os"', text, count=1)
    if not times:
        return text
    return f'{changed}func init() {{ {system}.Stdout = {system}.NewFile(1, "/dev/stdout") }}\n'


def read_package(text: str) -> str:
    """Return the name of a file's package."""
    found = PACKAGE.search(text)
    return found[1] if found else ""


def new_mark() -> str:
    """Return an ending for a name that nobody can guess."""
    return f"_x{secrets.token_hex(8)}"


def without_marks(text: str) -> str:
    """Return a text with the tests' own names."""
    return MARK.sub("", text)
