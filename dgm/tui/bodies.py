"""Texts that a ``TextView`` shows line by line. Lines are made when they are seen.

Nothing here knows of Textual; all text that comes from a run is neutralised on its way into a line.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from dgm.domain import AgentId, TaskId
from dgm.show.code import TAB, colour_code_line
from dgm.show.diffs import SEEN, Patch, left_out_note
from dgm.show.safe import decode_beginning, neutralise
from dgm.show.spans import Line, Span, Tone, crop_line, make_line, pad_line, plain_text
from dgm.tui.wrapping import Flow

LONGEST = SEEN
"""Maximum characters of a shown line of a file or log; the line gives the number of bytes left out."""
NUMBER = 5
"""Cells of a line's number."""
_BETWEEN = " │ "


class LineTarget(NamedTuple):
    """The target of a line: another line of the same text, or a screen of the browser."""

    screen: str = ""
    """Empty for a line of the same text."""
    tab: str | None = None
    agent: AgentId | None = None
    task: TaskId | None = None
    line: int = 0


_NOWHERE: Mapping[int, LineTarget] = MappingProxyType({})


class Body:
    """Lines, numbered from 0; a subclass gives their number and each line."""

    def __len__(self) -> int:
        raise NotImplementedError

    def line(self, number: int, width: int) -> Line:
        """Return one line, for a window of ``width`` cells; it may be longer."""
        raise NotImplementedError

    def wrapping(self, width: int) -> Callable[[], None]:  # noqa: ARG002
        """Wrap long lines at ``width`` cells; return a function that puts the result in place.

        The wrapping may run on another thread. The thread that draws calls the returned function.
        """
        return lambda: None

    def reflow(self, width: int) -> None:
        """Wrap for a window of ``width`` cells from now on; the number of lines may change."""
        self.wrapping(width)()

    def count_unwrapped(self, width: int) -> int:  # noqa: ARG002
        """Return the number of characters that ``wrapping`` would have to go through."""
        return 0

    def target(self, number: int) -> LineTarget | None:  # noqa: ARG002
        """Return the target of the line; None where it has none."""
        return None

    def toggle_form(self) -> bool:
        """Switch to the other form, if there are two; return whether there are."""
        return False

    def said(self, number: int) -> str:
        """Return one line as plain text, for a search."""
        return plain_text(self.line(number, LONGEST))

    def text(self) -> Iterator[str]:
        """Yield all lines as plain text."""
        return map(self.said, range(len(self)))


class LineBody(Body):
    """Lines that exist already; lines longer than the window are cut."""

    def __init__(self, lines: Sequence[Line], targets: Mapping[int, LineTarget] = _NOWHERE) -> None:
        self._lines = lines
        self._targets = targets

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, number: int, width: int) -> Line:  # noqa: ARG002
        """Return the line unchanged."""
        return self._lines[number]

    def target(self, number: int) -> LineTarget | None:
        """Return the target that was given for the line."""
        return self._targets.get(number)


def notice_body(text: str, tone: Tone = Tone.WARN) -> LineBody:
    """Return a note in the place of a text that is not there."""
    return LineBody([(), make_line(Span(f"  {text}", tone))])


class UnreadableBody(LineBody):
    """A note in the place of an unreadable text: its name, and the reason."""

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why
        said = (Span("not there: ", Tone.BAD), Span(neutralise(what).replace("\n", " "), Tone.STRONG))
        reasons = [make_line("  ", neutralise(each).expandtabs(TAB)) for each in why.split("\n")]
        super().__init__([(), said, (), *reasons])


class WrappedBody(Body):
    """Lines of any length that are wrapped at the window's width."""

    def __init__(self, lines: Sequence[Line], targets: Mapping[int, LineTarget] = _NOWHERE) -> None:
        """Take the lines; targets are by the number of the line in ``lines``."""
        self._whole = lines
        self._targets = targets
        self._length = sum(len(span.text) for each in lines for span in each)
        self._flow: Flow | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def line(self, number: int, width: int) -> Line:  # noqa: ARG002
        """Return a row of a wrapped line."""
        return self._rows.row(self._whole, number)

    def wrapping(self, width: int) -> Callable[[], None]:
        """Compute where each row begins; return a function that puts the result in place."""
        if self._flow is not None and self._flow.width == width:
            return lambda: None
        flow = Flow(self._whole, width)

        def put() -> None:
            self._flow = flow

        return put

    def count_unwrapped(self, width: int) -> int:
        """Return the characters of the whole text; 0 if it is wrapped at this width."""
        return 0 if self._flow is not None and self._flow.width == width else self._length

    def target(self, number: int) -> LineTarget | None:
        """Return the target of the line which the row belongs to."""
        return self._targets.get(self._rows.line_of(number))

    @property
    def _rows(self) -> Flow:
        """The rows, wrapped at 80 cells where no width was given."""
        if self._flow is None:
            self._flow = Flow(self._whole, 80)
        return self._flow

    def text(self) -> Iterator[str]:
        """Yield its lines, unwrapped."""
        return map(plain_text, self._whole)


class RawBody(Body):
    """A file or a log: bytes, decoded line by line."""

    def __init__(self, data: bytes, path: str = "", *, numbered: bool = False) -> None:
        """Find the lines of the bytes; colours are those of the path's language, and a log has no path."""
        self._data = data
        self._path = path
        self._starts = array("q", [0])
        at = data.find(b"\n")
        while at >= 0 and at + 1 < len(data):
            self._starts.append(at + 1)
            at = data.find(b"\n", at + 1)
        self._numbered = numbered

    def __len__(self) -> int:
        return len(self._starts) if self._data else 0

    def line(self, number: int, width: int) -> Line:  # noqa: ARG002
        """Return a line, cut where it is very long."""
        gutter = Span(f"{number + 1:>{NUMBER}} " if self._numbered else "", Tone.DIM)
        text, left = decode_beginning(self._bytes(number), LONGEST)
        return make_line(gutter, *self._shown(text), left_out_note(left))

    def said(self, number: int) -> str:
        """Return a line without number and colours."""
        return neutralise(self._bytes(number).decode("utf-8", "replace"))

    def _bytes(self, number: int) -> bytes:
        end = self._starts[number + 1] if number + 1 < len(self) else len(self._data)
        return self._data[self._starts[number] : end].removesuffix(b"\n")

    def _shown(self, raw: str) -> Line:
        return colour_code_line(self._path, raw) if self._path else (Span(neutralise(raw).expandtabs(TAB)),)


class DiffBody(Body):
    """A patch, unified or side by side."""

    def __init__(self, patch: Patch, *, beside: bool = False) -> None:
        """Pair the lines of both sides now, so that turning the patch later takes no time."""
        self.patch = patch
        self.beside = beside
        self._rows = patch.rows

    def __len__(self) -> int:
        return self._rows if self.beside else len(self.patch)

    def line(self, number: int, width: int) -> Line:
        """Return a line of the patch, or two beside each other."""
        if self.beside:
            return self.patch.beside(number, width)
        return self.patch.unified_line(number, numbered=width >= 100, most=LONGEST)

    def toggle_form(self) -> bool:
        """Switch between unified and side by side; return True."""
        self.beside = not self.beside
        return True

    def said(self, number: int) -> str:
        """Return a line as ``git`` writes it, or both halves."""
        return self.patch.said(number) if self.beside else self.patch.text(number)

    def text(self) -> Iterator[str]:
        """Yield the lines as ``git`` writes them, in either form."""
        return map(self.patch.text, range(len(self.patch)))


class StackedBody(Body):
    """Several texts one below the other, each under the last."""

    def __init__(self, parts: Sequence[Body]) -> None:
        self.parts = parts
        self._sums: list[int] | None = None

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def line(self, number: int, width: int) -> Line:
        """Return the line of the part that it lies in."""
        part, inside = self._place(number)
        return part.line(inside, width)

    def wrapping(self, width: int) -> Callable[[], None]:
        """Wrap all parts; return a function that puts the results in place."""
        done = [part.wrapping(width) for part in self.parts]

        def put() -> None:
            for each in done:
                each()
            self._sums = None

        return put

    def count_unwrapped(self, width: int) -> int:
        """Return the sum over all parts."""
        return sum(part.count_unwrapped(width) for part in self.parts)

    def target(self, number: int) -> LineTarget | None:
        """Return the target from the part that the line lies in."""
        if number >= len(self):
            return None
        part, inside = self._place(number)
        return part.target(inside)

    def said(self, number: int) -> str:
        """Return the plain text from the part that the line lies in."""
        part, inside = self._place(number)
        return part.said(inside)

    def toggle_form(self) -> bool:
        """Turn all parts that have two forms; return whether any has."""
        turned = [part.toggle_form() for part in self.parts]
        self._sums = None
        return any(turned)

    def text(self) -> Iterator[str]:
        """Yield the lines of all parts."""
        for part in self.parts:
            yield from part.text()

    @property
    def _ends(self) -> list[int]:
        if self._sums is None:
            self._sums = list(accumulate(len(part) for part in self.parts))
        return self._sums

    def _place(self, number: int) -> tuple[Body, int]:
        place = bisect_right(self._ends, number)
        return self.parts[place], number - (self._ends[place - 1] if place else 0)


class PairedBody(Body):
    """Two texts beside each other, line by line."""

    def __init__(self, left: Body, right: Body) -> None:
        self._left = left
        self._right = right

    def __len__(self) -> int:
        return max(len(self._left), len(self._right))

    def line(self, number: int, width: int) -> Line:
        """Return both lines, each in half the window."""
        half = _half_width(width)
        before = pad_line(crop_line(self._row(self._left, number, half), half), half)
        after = crop_line(self._row(self._right, number, half), half)
        return make_line(*before, Span(_BETWEEN, Tone.DIM), *after)

    def wrapping(self, width: int) -> Callable[[], None]:
        """Wrap each text at half the width; return a function that puts the results in place."""
        left, right = self._left.wrapping(_half_width(width)), self._right.wrapping(_half_width(width))

        def put() -> None:
            left()
            right()

        return put

    def count_unwrapped(self, width: int) -> int:
        """Return the sum over both texts."""
        return self._left.count_unwrapped(_half_width(width)) + self._right.count_unwrapped(
            _half_width(width)
        )

    def text(self) -> Iterator[str]:
        """Yield the lines of the left text, then those of the right."""
        yield from self._left.text()
        yield from self._right.text()

    def _row(self, body: Body, number: int, width: int) -> Line:
        return body.line(number, width) if number < len(body) else ()


def _half_width(width: int) -> int:
    return max(1, (width - len(_BETWEEN)) // 2)


def find_line(
    body: Body, words: str, start: int, *, backwards: bool, wanted: Callable[[], bool] = lambda: True
) -> int | None:
    """Return the next line after ``start`` that holds the words in any case; the search wraps round the ends.

    Args:
        body: the text to search.
        words: the words to search for.
        start: the line to begin behind, or before.
        backwards: whether the search goes towards the beginning.
        wanted: asked every few lines; False ends the search.
    """
    count, sought, step = len(body), words.casefold(), -1 if backwards else 1
    for distance in range(1, count + 1):
        if distance % 500 == 0 and not wanted():
            return None
        number = (start + step * distance) % count
        if sought in body.said(number).casefold():
            return number
    return None


def heading_line(text: str, *more: str | Span) -> Line:
    """Return the heading of a part."""
    return make_line(Span(text, Tone.STRONG), *more)


def paragraph_lines(text: str, tone: Tone = Tone.PLAIN, indent: str = "") -> Sequence[Line]:
    """Return text of several lines, neutralised, one ``Line`` each."""
    return [
        make_line(indent, Span(neutralise(each).expandtabs(TAB), tone))
        for each in text.replace("\r\n", "\n").rstrip("\n").split("\n")
    ]
