"""The known lines of a file: the present ones, and the base lines without the current candidate."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A difference from the base: base lines ``first`` … ``first + removed - 1`` were replaced by ``added`` lines."""

    first: int
    removed: int
    added: int


class FileView:
    """The lines of one file that the conversation has shown.

    Attributes:
        path: as the model names it, relative to the repository.
        lines: number (from 1) to text, in the file's present state.
        base: the same before any edit of this conversation.
        total: number of lines in the present file; ``None`` until a listing of its length was seen.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: dict[int, str] = {}
        self.base: dict[int, str] = {}
        self.total: int | None = None
        self.shift = 0

    def copy(self) -> "FileView":
        """Return an independent copy to try edits on."""
        other = FileView(self.path)
        other.lines, other.base = dict(self.lines), dict(self.base)
        other.total, other.shift = self.total, self.shift
        return other

    @property
    def complete(self) -> bool:
        """Whether every line was seen."""
        return self.total is not None and len(self.lines) >= self.total

    @property
    def text(self) -> str:
        """The known lines, joined; a hole is silently left out (see ``complete``)."""
        return "".join(self.lines[number] + "\n" for number in sorted(self.lines))

    def first_gap(self) -> tuple[int, int] | None:
        """Return the first gap in the known lines, as line numbers; ``None`` if there is none.

        The end of the gap is 0 if the file's length is not known.
        """
        first = 1
        while first in self.lines:
            first += 1
        if self.total is not None and first > self.total:
            return None
        after = [number for number in self.lines if number > first]
        return first, (min(after) - 1 if after else self.total or 0)

    def see(self, shown: Mapping[int, str], total: int | None) -> None:
        """Take in numbered lines of the present file; forget all earlier lines if one contradicts them."""
        if any(self.lines.get(number, text) != text for number, text in shown.items()):
            self.forget()
        span = self.span()
        self.lines.update(shown)
        for number, text in shown.items():
            at = _to_base(number, span)
            if at is not None:
                self.base.setdefault(at, text)
        if total is not None:
            self.total = max(total, max(self.lines, default=0))

    def forget(self) -> None:
        """Discard everything known of the file."""
        self.lines, self.base, self.total, self.shift = {}, {}, None, 0

    def replace(self, old: str, new: str) -> None:
        """Apply an edit that succeeded; forget the file if the old text does not occur exactly once."""
        known = self.text
        if known.count(old) != 1:
            self.forget()
            return
        numbers = sorted(self.lines)
        start = known[: known.index(old)].count("\n")
        touched = old.count("\n") + (0 if old.endswith("\n") else 1)
        block = numbers[start : start + touched]
        before = "".join(self.lines[number] + "\n" for number in block)
        after = before.replace(old, new, 1)
        rows = after.split("\n")
        self.splice(block[0], block[-1], rows if rows[-1] else rows[:-1])

    def splice(self, first: int, last: int, new: list[str]) -> None:
        """Replace lines ``first`` to ``last`` with ``new``."""
        shift = len(new) - (last - first + 1)
        moved = {n + (shift if n > last else 0): t for n, t in self.lines.items() if n < first or n > last}
        moved.update({first + index: text for index, text in enumerate(new)})
        self.lines = moved
        self.shift += shift
        if self.total is not None:
            self.total += shift

    def span(self) -> Span | None:
        """Return the difference between the file and its base as one span; ``None`` if they are equal."""
        shift = self.shift
        if self.lines == self.base:
            return None
        low = [n for n in sorted(self.base) if self.lines.get(n) != self.base[n]]
        high = [n for n in sorted(self.base, reverse=True) if self.lines.get(n + shift) != self.base[n]]
        if not low or not high:
            first = low[0] if low else max(self.base, default=0) + 1
            return Span(first, 0, shift) if shift else None
        first, last = low[0], max(high[0], low[0] - 1)
        last = max(last, first - 1 - min(shift, 0))
        return Span(first, last - first + 1, last - first + 1 + shift)


def _to_base(number: int, span: Span | None) -> int | None:
    """Return the base line of a present line, or ``None`` for a line that an edit added."""
    if span is None or number < span.first:
        return number
    if number >= span.first + span.added:
        return number - span.added + span.removed
    return None
