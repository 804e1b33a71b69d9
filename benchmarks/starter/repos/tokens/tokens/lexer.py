"""Text to tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator

from .errors import ParseError

KEYWORDS = {"and", "or", "not", "if", "else", "true", "false", "none"}

_OPERATORS = ("<=", ">=", "==", "!=", "//", "<", ">", "+", "-", "*", "/", "%", "^", "(", ")", ",")
_PATTERN = re.compile(
    r"(?P<blank>\s+|#[^\n]*)"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<operator>" + "|".join(re.escape(operator) for operator in _OPERATORS) + ")"
)
_ESCAPES = {"n": "\n", "t": "\t"}


@dataclass(frozen=True)
class Token:
    """One token: its kind, its text as written and where it begins."""

    kind: str
    text: str
    position: int


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of an expression, ending with one of the kind ``end``."""
    position = 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            raise ParseError(f"unexpected {text[position]!r}", position)
        kind = match.lastgroup
        if kind == "name" and match[0] in KEYWORDS:
            kind = "keyword"
        if kind != "blank":
            yield Token(kind, match[0], position)
        position = match.end()
    yield Token("end", "", len(text))


def unquote(text: str) -> str:
    """The value of a quoted text."""
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])
