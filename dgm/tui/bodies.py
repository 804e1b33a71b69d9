"""Texts that are looked at line by line: what a ``TextView`` shows. Lines are made when they are seen.

Nothing here knows of Textual; all text that comes from a run is neutralised on its way into a line.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from dgm.domain import AgentId, TaskId
from dgm.show.code import TAB, coloured
from dgm.show.diffs import SEEN, Patch, left_out
from dgm.show.safe import Side, beginning, cells, fit, neutral
from dgm.show.spans import Line, Span, Tone, cropped, line, plain
from dgm.tui.wrapping import Flow

LONGEST = SEEN
"""Characters of a line of a file or a log that are shown; the line says how many bytes more there are."""
NUMBER = 5
"""Cells of a line's number."""
_BETWEEN = " │ "


class Target(NamedTuple):
    """What a line leads to: another line of the same text, or a screen of the browser."""

    screen: str = ""
    """Empty for a line of the same text."""
    tab: str | None = None
    agent: AgentId | None = None
    task: TaskId | None = None
    line: int = 0


_NOWHERE: Mapping[int, Target] = MappingProxyType({})


class Body:
    """Lines, numbered from 0; a subclass says how many there are and what each is."""

    def __len__(self) -> int:
        raise NotImplementedError

    def line(self, number: int, width: int) -> Line:
        """One line, for a window of so many cells; it may be longer."""
        raise NotImplementedError

    def wrapping(self, width: int) -> Callable[[], None]:  # noqa: ARG002
        """Wraps long lines at so many cells; the result is in place when what is returned has been called.

        It may be called on another thread than the one that draws, which calls what is returned.
        """
        return lambda: None

    def reflow(self, width: int) -> None:
        """The window has so many cells from now on; there may be more or fewer lines then."""
        self.wrapping(width)()

    def unwrapped(self, width: int) -> int:  # noqa: ARG002
        """Characters that ``wrapping`` would have to go through."""
        return 0

    def target(self, number: int) -> Target | None:  # noqa: ARG002
        """What the line leads to."""
        return None

    def turned(self) -> bool:
        """Shows it in its other form, if it has two; whether it has."""
        return False

    def said(self, number: int) -> str:
        """One line as plain text, for whoever searches."""
        return plain(self.line(number, LONGEST))

    def text(self) -> Iterator[str]:
        """All lines as plain text."""
        return map(self.said, range(len(self)))


class Lines(Body):
    """Lines that are there already; those that are longer than the window are cut."""

    def __init__(self, lines: Sequence[Line], targets: Mapping[int, Target] = _NOWHERE) -> None:
        self._lines = lines
        self._targets = targets

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, number: int, width: int) -> Line:  # noqa: ARG002
        """As it is."""
        return self._lines[number]

    def target(self, number: int) -> Target | None:
        """As it was given."""
        return self._targets.get(number)


class Missing(Lines):
    """Stands where something should be that cannot be read: what, and why."""

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why
        said = (Span("not there: ", Tone.BAD), Span(neutral(what).replace("\n", " "), Tone.STRONG))
        reasons = [line("  ", neutral(each).expandtabs(TAB)) for each in why.split("\n")]
        super().__init__([(), said, (), *reasons])


class Prose(Body):
    """Lines of any length that are wrapped at the window's width."""

    def __init__(self, lines: Sequence[Line], targets: Mapping[int, Target] = _NOWHERE) -> None:
        """Targets are by the number of the line in ``lines``."""
        self._whole = lines
        self._targets = targets
        self._length = sum(len(span.text) for each in lines for span in each)
        self._flow: Flow | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def line(self, number: int, width: int) -> Line:  # noqa: ARG002
        """A row of a line."""
        return self._rows.row(self._whole, number)

    def wrapping(self, width: int) -> Callable[[], None]:
        """Where each row begins."""
        if self._flow is not None and self._flow.width == width:
            return lambda: None
        flow = Flow(self._whole, width)

        def put() -> None:
            self._flow = flow

        return put

    def unwrapped(self, width: int) -> int:
        """All of it, if it is wrapped at another width."""
        return 0 if self._flow is not None and self._flow.width == width else self._length

    def target(self, number: int) -> Target | None:
        """That of the line which the row belongs to."""
        return self._targets.get(self._rows.line_of(number))

    @property
    def _rows(self) -> Flow:
        """What nobody has said a width for is wrapped at 80."""
        if self._flow is None:
            self._flow = Flow(self._whole, 80)
        return self._flow

    def text(self) -> Iterator[str]:
        """Its lines, unwrapped."""
        return map(plain, self._whole)


class Raw(Body):
    """A file or a log: bytes, decoded line by line."""

    def __init__(self, data: bytes, path: str = "", *, numbered: bool = False) -> None:
        """Colours are those of the path's language; a log has no path."""
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
        """A line, cut where it is very long."""
        gutter = Span(f"{number + 1:>{NUMBER}} " if self._numbered else "", Tone.DIM)
        text, left = beginning(self._bytes(number), LONGEST)
        return line(gutter, *self._shown(text), left_out(left))

    def said(self, number: int) -> str:
        """Without number and colours."""
        return neutral(self._bytes(number).decode("utf-8", "replace"))

    def _bytes(self, number: int) -> bytes:
        end = self._starts[number + 1] if number + 1 < len(self) else len(self._data)
        return self._data[self._starts[number] : end].removesuffix(b"\n")

    def _shown(self, raw: str) -> Line:
        return coloured(self._path, raw) if self._path else (Span(neutral(raw).expandtabs(TAB)),)


class Diff(Body):
    """A patch, one below the other or side by side."""

    def __init__(self, patch: Patch, *, beside: bool = False) -> None:
        """Pairs the lines of both sides, so that nobody who turns it has to wait."""
        self.patch = patch
        self.beside = beside
        self._rows = patch.rows

    def __len__(self) -> int:
        return self._rows if self.beside else len(self.patch)

    def line(self, number: int, width: int) -> Line:
        """A line of the patch, or two beside each other."""
        if self.beside:
            return self.patch.beside(number, width)
        return self.patch.unified(number, numbered=width >= 100, most=LONGEST)

    def turned(self) -> bool:
        """Side by side, and back."""
        self.beside = not self.beside
        return True

    def said(self, number: int) -> str:
        """A line as ``git`` writes it, or both halves."""
        return self.patch.said(number) if self.beside else self.patch.text(number)

    def text(self) -> Iterator[str]:
        """As ``git`` writes it, in either form."""
        return map(self.patch.text, range(len(self.patch)))


class Stack(Body):
    """Several texts one below the other, each under the last."""

    def __init__(self, parts: Sequence[Body]) -> None:
        self.parts = parts
        self._sums: list[int] | None = None

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def line(self, number: int, width: int) -> Line:
        """Of the part that it lies in."""
        part, inside = self._place(number)
        return part.line(inside, width)

    def wrapping(self, width: int) -> Callable[[], None]:
        """All of its parts."""
        done = [part.wrapping(width) for part in self.parts]

        def put() -> None:
            for each in done:
                each()
            self._sums = None

        return put

    def unwrapped(self, width: int) -> int:
        """Of all its parts."""
        return sum(part.unwrapped(width) for part in self.parts)

    def target(self, number: int) -> Target | None:
        """Of the part that the line lies in."""
        if number >= len(self):
            return None
        part, inside = self._place(number)
        return part.target(inside)

    def said(self, number: int) -> str:
        """Of the part that the line lies in."""
        part, inside = self._place(number)
        return part.said(inside)

    def turned(self) -> bool:
        """Turns all that can be."""
        turned = [part.turned() for part in self.parts]
        self._sums = None
        return any(turned)

    def text(self) -> Iterator[str]:
        """All of it."""
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


class Pair(Body):
    """Two texts beside each other, line by line."""

    def __init__(self, left: Body, right: Body) -> None:
        self._left = left
        self._right = right

    def __len__(self) -> int:
        return max(len(self._left), len(self._right))

    def line(self, number: int, width: int) -> Line:
        """Half the window for each."""
        half = _half(width)
        before = cropped(self._row(self._left, number, half), half)
        blanks = half - sum(cells(span.text) for span in before)
        after = cropped(self._row(self._right, number, half), half)
        return line(*before, Span(" " * blanks), Span(_BETWEEN, Tone.DIM), *after)

    def wrapping(self, width: int) -> Callable[[], None]:
        """Each at half of it."""
        left, right = self._left.wrapping(_half(width)), self._right.wrapping(_half(width))

        def put() -> None:
            left()
            right()

        return put

    def unwrapped(self, width: int) -> int:
        """Of both."""
        return self._left.unwrapped(_half(width)) + self._right.unwrapped(_half(width))

    def text(self) -> Iterator[str]:
        """One after the other."""
        yield from self._left.text()
        yield from self._right.text()

    def _row(self, body: Body, number: int, width: int) -> Line:
        return body.line(number, width) if number < len(body) else ()


def _half(width: int) -> int:
    return max(1, (width - len(_BETWEEN)) // 2)


def found(
    body: Body, words: str, start: int, *, backwards: bool, wanted: Callable[[], bool] = lambda: True
) -> int | None:
    """The next line after ``start`` that holds the words, whatever their case; round the ends.

    Args:
        body: where to look.
        words: what to look for.
        start: the line to begin behind, or before.
        backwards: the way to go.
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


def heading(text: str, *more: str | Span) -> Line:
    """The heading of a part."""
    return line(Span(text, Tone.STRONG), *more)


def fact(name: str, *text: str | Span, width: int = 11) -> Line:
    """A name in its column, and what is so named."""
    return line(Span(fit(name, width, Side.LEFT), Tone.KEY), *text)


def paragraphs(text: str, tone: Tone = Tone.PLAIN, indent: str = "") -> Sequence[Line]:
    """Text of several lines, neutralised, a line each."""
    return [
        line(indent, Span(neutral(each).expandtabs(TAB), tone))
        for each in text.replace("\r\n", "\n").rstrip("\n").split("\n")
    ]
