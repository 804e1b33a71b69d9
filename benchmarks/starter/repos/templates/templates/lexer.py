"""Cut a template's text into tokens."""

import re
from dataclasses import dataclass

TEXT = "text"
OUTPUT = "output"
TAG = "tag"

_MARK = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.S)


@dataclass(frozen=True)
class Token:
    """One piece of a template: plain text, an output or a tag."""

    kind: str
    text: str
    line: int


def tokenize(source):
    """Return the tokens of ``source`` in order, without comments and empty texts."""
    tokens = []
    position, line, trim = 0, 1, False
    for match in _MARK.finditer(source):
        mark = match.group()
        _add_text(tokens, source[position : match.start()], line, trim, mark[2] == "-")
        line += source.count("\n", position, match.start())
        if not mark.startswith("{#"):
            kind = OUTPUT if mark.startswith("{{") else TAG
            tokens.append(Token(kind, mark[2:-2].strip("-").strip(), line))
        line += mark.count("\n")
        trim = mark[-3] == "-"
        position = match.end()
    _add_text(tokens, source[position:], line, trim, False)
    return tokens


def _add_text(tokens, text, line, trim_start, trim_end):
    if trim_start:
        text = text.lstrip()
    if trim_end:
        text = text.rstrip()
    if text:
        tokens.append(Token(TEXT, text, line))
