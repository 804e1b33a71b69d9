"""Long lines as rows of a window, broken between words where that is possible, measured in cells."""

from collections.abc import Iterator, Sequence

from dgm.show.safe import cells, cut
from dgm.show.spans import Line, Span

_LEAST = 3
"""A row is broken between words where that leaves it at least one part in so many of the width."""


def wrapped(line: Line, width: int) -> Sequence[Line]:
    """The line in rows of at most ``width`` cells; one empty row for an empty line.

    Blanks at which a row is broken are left out. A character that is wider than the window takes a row of its own.
    """
    width = max(1, width)
    text = "".join(span.text for span in line)
    if cells(text) <= width:
        return [line]
    return [_slice(line, start, end) for start, end in _rows(text, width)]


def _rows(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where each row begins and ends in the text."""
    # Rows have at most four characters a cell; what combines beyond that is broken as well.
    window = 4 * width + 64
    start = 0
    while start < len(text):
        piece = text[start : start + window]
        if start + window >= len(text) and cells(piece) <= width:
            yield start, len(text)
            return
        end = start + max(1, _taken(piece, width))
        broken = text.rfind(" ", start, end + 1)
        if end < len(text) and broken - start > width // _LEAST:
            yield start, broken
            start = broken + 1
        else:
            yield start, end
            start = end


def _taken(piece: str, width: int) -> int:
    """How many characters fit into the width."""
    if cells(piece) <= width:
        return len(piece)
    return len(cut(piece + "…", width + 1)) - 1


def _slice(line: Line, start: int, end: int) -> Line:
    found: list[Span] = []
    at = 0
    for span in line:
        piece = span.text[max(0, start - at) : max(0, end - at)]
        if piece:
            found.append(Span(piece, span.tone))
        at += len(span.text)
        if at >= end:
            break
    return tuple(found)
