"""Tests that stand in the files of the code: Rust's ``#[cfg(test)] mod tests { … }``, found, taken out and laid over.

A file is divided into its code and its tests, so that the tests of one version go with the code of another.
dgm imports this module, and puts it into sandboxes as a file: standard library only (Python >= 3.9).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

_TOKEN = re.compile(
    r"""//[^\n]*|/\*|b?r(?P<raw>\#*)".*?"(?P=raw)|b?"(?:\\.|[^"\\])*"|b?'(?:\\(?:u\{\w+\}|x\w\w|.)|[^\\'\n])'""",
    re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ATTRIBUTE = r"#\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]\s*"
_MODULE = re.compile(rf"(?P<attributes>(?:{_ATTRIBUTE})+)(?:pub(?:\([^)]*\))?\s+)?mod\s+(?P<name>\w+)\s*\{{")
_OF_TESTS = re.compile(r"#\[cfg\(\s*(?:test|all\((?![^\]]*\bnot\()[^\]]*\btest\b[^\]]*\))\s*\)\]")
_ANY_TEST = re.compile(r"#\[(?:\w+::)*(?:test|rstest|test_case)\b|\b(?:proptest|quickcheck)!")


class Part(NamedTuple):
    """A module of tests in a file."""

    start: int
    end: int
    name: str


def mask(text: str) -> str:
    """Return Rust's text with blanks for comments, strings and characters; every offset and line stays."""
    done: list[str] = []
    at = 0
    while found := _TOKEN.search(text, at):
        end = _end_of_comment(text, found.end()) if found[0] == "/*" else found.end()
        is_word = found[0][0] in "br" and found.start() and text[found.start() - 1].isidentifier()
        kept = text[found.start() : end]
        done += [text[at : found.start()], kept if is_word else re.sub(r"[^\n]", " ", kept)]
        at = end
    return "".join([*done, text[at:]])


def find_parts(text: str) -> list[Part]:
    """Return the modules of tests at the top of a file, with their attributes and the comments before them."""
    code = mask(text)
    found: list[Part] = []
    depth, seen = 0, 0
    for module in _MODULE.finditer(code):
        # Within the brackets of a macro's call tests are what the macro makes of them.
        between = Counter(code[seen : module.start()])
        depth += sum(between[sign] for sign in "([{") - sum(between[sign] for sign in ")]}")
        seen = module.start()
        end = closing_brace(code, module.end() - 1)
        if depth == 0 and end and _OF_TESTS.search(module["attributes"]):
            found.append(Part(_first_comment(text, module.start()), end, module["name"]))
    return found


def split_parts(text: str) -> tuple[str, str]:
    """Return the code of a file, and its modules of tests."""
    parts = find_parts(text)
    return _without(text, parts), "\n\n".join(text[part.start : part.end] for part in parts)


def lay_over(text: str, tests: str) -> str:
    """Return a file with other modules of tests: in the place of its first one, else at its end; none: without."""
    parts = find_parts(text)
    if not tests:
        return _without(text, parts)
    if not parts:
        return f"{text.rstrip()}\n\n{tests}\n" if text.strip() else f"{tests}\n"
    first = parts[0]
    return f"{text[: first.start]}{tests}{_without(text[first.end :], find_parts(text[first.end :]))}"


def has_tests(text: str) -> bool:
    """Return whether a file, or a module of one, has tests of any kind."""
    return bool(_ANY_TEST.search(mask(text)))


def _without(text: str, parts: list[Part]) -> str:
    for part in reversed(parts):
        text = text[: part.start].rstrip(" \t") + text[part.end :].lstrip("\n")
    return text


def _end_of_comment(text: str, at: int) -> int:
    """Return the end of a comment that may hold others, from behind its beginning."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    return len(text)


def closing_brace(code: str, at: int) -> int:
    """Return the offset behind the brace that closes the one at an offset; 0 if none does."""
    depth = 0
    for brace in re.finditer(r"[{}]", code[at:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return at + brace.end()
    return 0


def _first_comment(text: str, at: int) -> int:
    """Return the beginning of the comments in the lines right before an offset."""
    start = text.rfind("\n", 0, at) + 1
    while start:
        above = text.rfind("\n", 0, start - 1) + 1
        if not text[above:start].lstrip().startswith(("// ", "///")):
            break
        start = above
    return start
