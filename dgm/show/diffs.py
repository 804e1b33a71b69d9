"""A patch as lines, parsed once and drawn when seen: a hundred thousand lines take a fraction of a second."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from dgm.show.code import TAB, colour_code_line
from dgm.show.safe import Side, decode_beginning, fit, neutralise
from dgm.show.spans import Line, Span, Tone, crop_line, make_line, pad_line

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@").match
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
NUMBER = 5
"""Cells of a line's number."""
SEEN = 2_000
"""Maximum characters of a line that are read where only a window of it is seen."""
_BETWEEN = " │ "


class LineKind(IntEnum):
    """The kind of a patch line."""

    HEAD = 0
    """A line of a file's head: its names, modes and digests."""
    HUNK = 1
    SAME = 2
    ADDED = 3
    REMOVED = 4
    NOTE = 5
    """The note that a file ends without a line break."""
    BINARY = 6
    """The content of a file that is no text."""


_TONES = {
    LineKind.HEAD: Tone.STRONG,
    LineKind.HUNK: Tone.HUNK,
    LineKind.ADDED: Tone.ADDED,
    LineKind.REMOVED: Tone.REMOVED,
    LineKind.NOTE: Tone.DIM,
    LineKind.BINARY: Tone.DIM,
}


@dataclass(slots=True)
class ChangedFile:
    """One file of a patch."""

    path: str
    """The path after the change, or before it if the file is gone; not neutralised."""
    line: int
    """Line of the patch where the file begins, from 0."""
    added: int = 0
    removed: int = 0
    binary: bool = False


class Patch:
    """The patch that ``git diff-tree -p`` writes; lines are numbered from 0.

    The bytes stay unchanged. A line is decoded (invalid UTF-8 is replaced) and neutralised when it is asked for.
    """

    def __init__(self, data: bytes) -> None:
        """Parse the bytes. Any bytes are accepted; without a patch in them they are one long head."""
        self._data = data
        self._starts = array("q")
        self._kinds = array("b")
        self._old = array("q")
        self._new = array("q")
        self.files: list[ChangedFile] = []
        self._parse()
        self._pairs: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._kinds)

    def kind(self, number: int) -> LineKind:
        """Return the kind of a line."""
        return LineKind(self._kinds[number])

    def numbers(self, number: int) -> tuple[int, int]:
        """Return a line's numbers in the file before and after the change, from 1; 0 where it is not there."""
        return self._old[number], self._new[number]

    def text(self, number: int) -> str:
        """Return a whole line as it is written in the patch, neutralised, tabs expanded."""
        sign, text, _ = self._parts(number, None)
        return sign + text

    def file_at(self, number: int) -> ChangedFile | None:
        """Return the file that a line belongs to; None before the first file."""
        place = bisect_right(self.files, number, key=lambda file: file.line)
        return self.files[place - 1] if place else None

    def unified_line(self, number: int, *, numbered: bool = False, most: int | None = None) -> Line:
        """Return a line with its sign in front; unchanged text is in the colours of its language.

        Args:
            number: of the line.
            numbered: whether the numbers in both files stand before it.
            most: characters after which the line is cut and says how much more there is; None for all of it.
        """
        kind, (sign, text, left) = self.kind(number), self._parts(number, most)
        gutter = Span(self._gutter_text(number) if numbered else "", Tone.DIM)
        if kind is LineKind.SAME:
            return make_line(gutter, " ", *self._code(number, kind, text), left_out_note(left))
        return make_line(gutter, Span(sign + text, _TONES[kind]), left_out_note(left))

    def lines(self) -> Iterator[Line]:
        """Yield all lines, each as ``unified`` returns it."""
        return (self.unified_line(number) for number in range(len(self)))

    @property
    def rows(self) -> int:
        """Number of rows side by side."""
        return len(self._row_pairs())

    def beside(self, row: int, width: int) -> Line:
        """Return a row of the patch side by side: before the change on the left, after it on the right.

        Args:
            row: from 0 to ``rows`` - 1.
            width: cells of both sides together.
        """
        left, right = self._row_pairs()[row]
        if self.kind(max(left, right)) in (LineKind.HEAD, LineKind.HUNK, LineKind.NOTE, LineKind.BINARY):
            return crop_line(self.unified_line(max(left, right), most=SEEN), width)
        half = max(0, width - len(_BETWEEN)) // 2
        before = self._half_row(left, self._old, half) if left >= 0 else (Span(" " * half),)
        after = self._half_row(right, self._new, half) if right >= 0 else ()
        return make_line(*before, Span(_BETWEEN, Tone.DIM), *after)

    def said(self, row: int) -> str:
        """Return both sides of a row as plain text, uncut."""
        return " ".join(self.text(number) for number in dict.fromkeys(self._row_pairs()[row]) if number >= 0)

    def row_of(self, number: int) -> int:
        """Return the row side by side in which a line stands."""
        return next(row for row, pair in enumerate(self._row_pairs()) if number in pair)

    def _half_row(self, number: int, numbers: Sequence[int], width: int) -> Line:
        kind, (sign, text, left) = self.kind(number), self._parts(number, SEEN)
        gutter = Span(
            fit(str(numbers[number]), NUMBER, Side.RIGHT) + " " + (sign or " "), _TONES.get(kind, Tone.DIM)
        )
        shown = make_line(gutter, *self._code(number, kind, text), left_out_note(left))
        return pad_line(crop_line(shown, width), width)

    def _parts(self, number: int, most: int | None) -> tuple[str, str, int]:
        """Return a line's sign, its text behind the sign, neutralised, and the number of bytes left out.

        Only lines of files have a sign, unless somebody has written such a line without one. The sign takes
        no part in
        where tabs stop.
        """
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self) else len(self._data)
        end -= end > start and self._data[end - 1] == _NEWLINE
        signed = start < end and self._kinds[number] in _OF_FILES and self._data[start] in _SIGNS
        raw = self._data[start + signed : end]
        text, left = (raw.decode("utf-8", "replace"), 0) if most is None else decode_beginning(raw, most)
        return chr(self._data[start]) if signed else "", neutralise(text).expandtabs(TAB), left

    def _code(self, number: int, kind: LineKind, text: str) -> Line:
        if kind is not LineKind.SAME:
            return (Span(text, _TONES[kind]),)
        file = self.file_at(number)
        return colour_code_line(file.path if file else "", text)

    def _gutter_text(self, number: int) -> str:
        shown = (fit(str(each) if each else "", NUMBER, Side.RIGHT) for each in self.numbers(number))
        return " ".join(shown) + " "

    def _row_pairs(self) -> list[tuple[int, int]]:
        if not self._pairs and len(self):
            self._pairs = list(_pair_lines(self._kinds))
        return self._pairs

    def _parse(self) -> None:
        start, old, new, old_left, new_left, binary = 0, 0, 0, 0, 0, False
        data, end = self._data, len(self._data)
        while start < end:
            after = data.find(b"\n", start) + 1 or end
            sign = data[start]
            was_old, was_new = 0, 0
            if old_left > 0 or new_left > 0:
                if sign == _PLUS:
                    kind, was_new = LineKind.ADDED, new
                elif sign == _MINUS:
                    kind, was_old = LineKind.REMOVED, old
                elif sign == _BACKSLASH:
                    kind = LineKind.NOTE
                else:
                    kind, was_old, was_new = LineKind.SAME, old, new
                old, old_left = old + bool(was_old), old_left - bool(was_old)
                new, new_left = new + bool(was_new), new_left - bool(was_new)
                self._count(kind)
            elif sign == _AT and (hunk := _HUNK(data, start)):
                kind = LineKind.HUNK
                old, new = int(hunk[1]), int(hunk[3])
                old_left = 1 if hunk[2] is None else int(hunk[2])
                new_left = 1 if hunk[4] is None else int(hunk[4])
            else:
                kind, binary = self._head(data[start:after].rstrip(b"\n"), binary)
            self._starts.append(start)
            self._kinds.append(kind)
            self._old.append(was_old)
            self._new.append(was_new)
            start = after

    def _count(self, kind: LineKind) -> None:
        if self.files:
            self.files[-1].added += kind is LineKind.ADDED
            self.files[-1].removed += kind is LineKind.REMOVED

    def _head(self, raw: bytes, binary: bool) -> tuple[LineKind, bool]:
        """Return the kind of a line outside of hunks, and whether the content of a binary file has begun."""
        if raw.startswith(b"diff --git "):
            self.files.append(ChangedFile(_parse_header_path(_decode_line(raw[11:])), len(self)))
            return LineKind.HEAD, False
        if raw.startswith(b"\\"):
            return LineKind.NOTE, binary
        if self.files and raw.startswith((b"GIT binary patch", b"Binary files ")):
            self.files[-1].binary = True
            return LineKind.HEAD, True
        if self.files and raw.startswith((b"--- ", b"+++ ")) and not binary:
            name = _unquote_path(_decode_line(raw[4:]).rstrip("\t"))
            if name != "/dev/null":
                self.files[-1].path = name[2:]
        return (LineKind.BINARY if binary else LineKind.HEAD), binary


_PLUS, _MINUS, _BACKSLASH, _AT, _NEWLINE = b"+-\\@\n"
_SIGNS = b"+- "
_OF_FILES = (LineKind.SAME, LineKind.ADDED, LineKind.REMOVED)


def left_out_note(count: int) -> Span:
    """Return the note at the end of a cut line; empty if nothing was cut."""
    return Span(f" … {count:,} bytes more" if count else "", Tone.WARN)


def _decode_line(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _parse_header_path(names: str) -> str:
    """Return the path in ``a/PATH b/PATH``, which may hold blanks."""
    if names.startswith('"'):
        return _unquote_path(names[: names.index('"', 1) + 1] if names.count('"') > 1 else names)[2:]
    return names[2 : len(names) // 2]


def _unquote_path(name: str) -> str:
    """Return a path without the quotes and escapes that git uses for unusual characters."""
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name
    pieces, end = bytearray(), 0
    for found in _ESCAPE.finditer(name, 1, len(name) - 1):
        pieces += name[max(end, 1) : found.start()].encode("utf-8", "replace")
        code = found[1]
        pieces.append(int(code, 8) & 0xFF if code.isdigit() else _ESCAPED[code])
        end = found.end()
    pieces += name[max(end, 1) : -1].encode("utf-8", "replace")
    return pieces.decode("utf-8", "replace")


def _pair_lines(kinds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the lines that stand side by side; -1 where one side is empty."""
    number = 0
    while number < len(kinds):
        if kinds[number] not in (LineKind.ADDED, LineKind.REMOVED):
            yield number, number
            number += 1
            continue
        end = number
        while end < len(kinds) and kinds[end] in (LineKind.ADDED, LineKind.REMOVED, LineKind.NOTE):
            end += 1
        block = range(number, end)
        removed = [one for one in block if kinds[one] == LineKind.REMOVED]
        added = [one for one in block if kinds[one] == LineKind.ADDED]
        for place in range(max(len(removed), len(added))):
            yield (
                removed[place] if place < len(removed) else -1,
                added[place] if place < len(added) else -1,
            )
        yield from ((one, one) for one in block if kinds[one] == LineKind.NOTE)
        number = end
