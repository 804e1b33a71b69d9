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
from dgm.show.diffs import Patch
from dgm.show.safe import Side, cells, fit, neutral
from dgm.show.spans import Line, Span, Tone, cropped, line, plain
from dgm.tui.wrapping import wrapped

LONGEST = 2_000
"""Characters of a line of a file or a log that are shown; the line says how many more there are."""
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

    def reflow(self, width: int) -> None:
        """The window has so many cells from now on; there may be more or fewer lines then."""

    def widest(self) -> int:
        """Cells of the longest line, about; 0 where lines are made to fit."""
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
        self._widest = max((sum(cells(span.text) for span in each) for each in lines), default=0)

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, number: int, width: int) -> Line:  # noqa: ARG002
        """As it is."""
        return self._lines[number]

    def widest(self) -> int:
        """Cells of the longest."""
        return self._widest

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
        self._width = 0
        self._shown: list[Line] = []
        self._first = array("q")
        self.reflow(80)

    def __len__(self) -> int:
        return len(self._shown)

    def line(self, number: int, width: int) -> Line:  # noqa: ARG002
        """A row of a line."""
        return self._shown[number]

    def reflow(self, width: int) -> None:
        """Wraps anew."""
        if width == self._width:
            return
        self._width = width
        self._shown, self._first = [], array("q")
        for each in self._whole:
            self._first.append(len(self._shown))
            self._shown += wrapped(each, width)

    def target(self, number: int) -> Target | None:
        """That of the line which the row belongs to."""
        return self._targets.get(bisect_right(self._first, number) - 1)

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
        ends = [*self._starts[1:], len(data)]
        longest = max(end - start for start, end in zip(self._starts, ends, strict=True))
        self._widest = min(longest, LONGEST) + 40 + (NUMBER + 1) * numbered

    def __len__(self) -> int:
        return len(self._starts) if self._data else 0

    def line(self, number: int, width: int) -> Line:  # noqa: ARG002
        """A line, cut where it is very long."""
        gutter = Span(f"{number + 1:>{NUMBER}} " if self._numbered else "", Tone.DIM)
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self) else len(self._data)
        raw = self._data[start : min(end, start + 4 * LONGEST)].removesuffix(b"\n").decode("utf-8", "replace")
        left = max(0, end - start - len(raw[:LONGEST].encode("utf-8", "replace")) - 1)
        more = Span(f" … {left:,} bytes more" if len(raw) > LONGEST else "", Tone.WARN)
        return line(gutter, *self._shown(raw[:LONGEST]), more)

    def said(self, number: int) -> str:
        """Without number and colours."""
        end = self._starts[number + 1] if number + 1 < len(self) else len(self._data)
        return neutral(self._data[self._starts[number] : end].removesuffix(b"\n").decode("utf-8", "replace"))

    def widest(self) -> int:
        """From the bytes of its longest line."""
        return self._widest

    def _shown(self, raw: str) -> Line:
        return coloured(self._path, raw) if self._path else (Span(neutral(raw).expandtabs(TAB)),)


class Diff(Body):
    """A patch, one below the other or side by side."""

    def __init__(self, patch: Patch, *, beside: bool = False) -> None:
        self.patch = patch
        self.beside = beside

    def __len__(self) -> int:
        return self.patch.rows if self.beside else len(self.patch)

    def line(self, number: int, width: int) -> Line:
        """A line of the patch, or two beside each other."""
        if self.beside:
            return self.patch.beside(number, width)
        return cropped(self.patch.unified(number, numbered=width >= 100), LONGEST)

    def widest(self) -> int:
        """Nobody has measured all of its lines."""
        return 0 if self.beside else LONGEST

    def turned(self) -> bool:
        """Side by side, and back."""
        self.beside = not self.beside
        return True

    def said(self, number: int) -> str:
        """A line as ``git`` writes it, or both halves."""
        return plain(self.patch.beside(number, LONGEST)) if self.beside else self.patch.text(number)

    def text(self) -> Iterator[str]:
        """As ``git`` writes it, in either form."""
        return map(self.patch.text, range(len(self.patch)))


class Stack(Body):
    """Several texts one below the other, each under the last."""

    def __init__(self, parts: Sequence[Body]) -> None:
        self.parts = parts
        self._ends: list[int] = []
        self._measure()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def line(self, number: int, width: int) -> Line:
        """Of the part that it lies in."""
        part, inside = self._place(number)
        return part.line(inside, width)

    def reflow(self, width: int) -> None:
        """Passes it on."""
        for part in self.parts:
            part.reflow(width)
        self._measure()

    def widest(self) -> int:
        """That of its widest part."""
        return max((part.widest() for part in self.parts), default=0)

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
        self._measure()
        return any(turned)

    def text(self) -> Iterator[str]:
        """All of it."""
        for part in self.parts:
            yield from part.text()

    def _measure(self) -> None:
        self._ends = list(accumulate(len(part) for part in self.parts))

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
        half = max(1, (width - len(_BETWEEN)) // 2)
        before = cropped(self._half(self._left, number, half), half)
        blanks = half - sum(cells(span.text) for span in before)
        after = cropped(self._half(self._right, number, half), half)
        return line(*before, Span(" " * blanks), Span(_BETWEEN, Tone.DIM), *after)

    def reflow(self, width: int) -> None:
        """Each is wrapped at half of it."""
        half = max(1, (width - len(_BETWEEN)) // 2)
        self._left.reflow(half)
        self._right.reflow(half)

    def text(self) -> Iterator[str]:
        """One after the other."""
        yield from self._left.text()
        yield from self._right.text()

    def _half(self, body: Body, number: int, width: int) -> Line:
        return body.line(number, width) if number < len(body) else ()


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
