"""Long lines as rows of a window, broken between words where that is possible, measured in cells."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from dgm.show.safe import cell_width, count_fitting
from dgm.show.spans import Line, Span

_LEAST = 3
"""Divisor of the width: a row is broken between words if it keeps more than this part of the width."""


class Flow:
    """Begins and ends of the rows of some lines at one width; a row itself is made when it is seen."""

    def __init__(self, lines: Sequence[Line], width: int) -> None:
        """Break the lines; ``lines`` is not kept."""
        self.width = width
        self._first, self._starts, self._ends = array("q"), array("q"), array("q")
        for each in lines:
            self._first.append(len(self._starts))
            for start, end in find_breaks(each, width):
                self._starts.append(start)
                self._ends.append(end)

    def __len__(self) -> int:
        return len(self._starts)

    def line_of(self, number: int) -> int:
        """Return the line that a row belongs to."""
        return bisect_right(self._first, number) - 1

    def row(self, lines: Sequence[Line], number: int) -> Line:
        """Return a row of the lines that were broken."""
        return _slice_line(lines[self.line_of(number)], self._starts[number], self._ends[number])


def wrap_line(line: Line, width: int) -> Sequence[Line]:
    """Return the line in rows of at most ``width`` cells; one empty row for an empty line.

    Blanks at which a row is broken are left out. A character that is wider than the window takes a row of its own.
    """
    return [_slice_line(line, start, end) for start, end in find_breaks(line, width)]


def find_breaks(line: Line, width: int) -> Iterator[tuple[int, int]]:
    """Yield where each row of a line begins and ends in its text, as ``wrap_line`` breaks it."""
    width = max(1, width)
    text = line[0].text if len(line) == 1 else "".join(span.text for span in line)
    if len(text) <= 2 * width and cell_width(text) <= width:
        yield 0, len(text)
        return
    # Rows have at most four characters a cell; combining characters beyond that are broken as well.
    window = 4 * width + 64
    start = 0
    while start < len(text):
        piece = text[start : start + window]
        end = start + max(1, count_fitting(piece, width))
        if end == len(text):
            yield start, end
            return
        broken = text.rfind(" ", start, end + 1)
        if broken - start > width // _LEAST:
            yield start, broken
            start = broken + 1
        else:
            yield start, end
            start = end


def _slice_line(line: Line, start: int, end: int) -> Line:
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
