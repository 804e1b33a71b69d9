"""A line of text as pieces with a tone each; the look of a tone is left to terminal, browser and page."""

from collections.abc import Iterable
from enum import StrEnum, auto
from itertools import groupby
from typing import NamedTuple

from dgm.show.safe import ELLIPSIS, cell_width, cut, fit


class Tone(StrEnum):
    """The meaning of a piece of text. No meaning hangs on a tone alone: the text says it too, or a mark does."""

    PLAIN = auto()
    DIM = auto()
    """Text of less weight: guides, units, details that hardly anybody reads."""
    STRONG = auto()
    """Headings, and the subject of a row."""
    GOOD = auto()
    BAD = auto()
    WARN = auto()
    MARK = auto()
    """The best agent, and text that a person has marked or searched for."""
    KEY = auto()
    """Names of facts, and keys to press."""
    ADDED = auto()
    REMOVED = auto()
    HUNK = auto()
    CODE_COMMENT = auto()
    CODE_KEYWORD = auto()
    CODE_STRING = auto()
    CODE_NUMBER = auto()
    CODE_NAME = auto()
    """Names where they are defined."""
    CODE_BUILTIN = auto()
    CODE_DECORATOR = auto()
    CODE_OPERATOR = auto()


class Span(NamedTuple):
    """A piece of one line; no line breaks and no control characters in it."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]


def make_line(*pieces: str | Span) -> Line:
    """Return a line of the pieces; a string is a plain piece, empty ones are left out."""
    spans = (Span(piece) if isinstance(piece, str) else piece for piece in pieces)
    return tuple(span for span in spans if span.text)


def fact_line(name: str, *text: str | Span, width: int = 11) -> Line:
    """Return a name in a column of ``width`` cells, and its text behind it."""
    return make_line(Span(fit(name, width), Tone.KEY), *text)


def join_lines(parts: Iterable[Line], between: str) -> Line:
    """Join the lines into one, with the same text between each two; empty ones are left out."""
    spans: list[Span] = []
    for part in parts:
        if part:
            spans += [Span(between), *part] if spans else part
    return tuple(spans)


def plain_text(line: Line) -> str:
    """Return the line's text without the blanks at its end."""
    return "".join(span.text for span in line).rstrip(" ")


def merge_spans(spans: Iterable[Span]) -> Line:
    """Return the spans as a line in which neighbours of one tone are one span; empty ones are left out."""
    groups = groupby((span for span in spans if span.text), key=lambda span: span.tone)
    return tuple(Span("".join(span.text for span in group), tone) for tone, group in groups)


def line_width(line: Line) -> int:
    """Return the cells of a terminal that the line takes."""
    return sum(cell_width(span.text) for span in line)


def pad_line(line: Line, width: int) -> Line:
    """Return the line with blanks behind it, up to ``width`` cells; a longer line stays whole."""
    return (*line, Span(" " * max(0, width - line_width(line))))


def crop_line(line: Line, width: int) -> Line:
    """Return the line's beginning, at most ``width`` cells of it; ``…`` where it is cut."""
    left = width
    spans: list[Span] = []
    for number, span in enumerate(line):
        taken = cell_width(span.text)
        more = any(later.text for later in line[number + 1 :])
        if taken > left or (taken == left and more):
            spans.append(Span(cut(span.text + ELLIPSIS * more, left), span.tone))
            break
        spans.append(span)
        left -= taken
    return tuple(span for span in spans if span.text)
