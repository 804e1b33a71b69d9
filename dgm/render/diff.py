"""A patch as files and lines: parsed once, neutralised, for the terminal, the browser and the report."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from itertools import zip_longest
from typing import NamedTuple

from dgm.render.safe import neutralise

TAB = 4
"""Cells between tab stops."""
_hunk = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_escape = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


class LineKind(StrEnum):
    """The kind of a patch line."""

    HEAD = auto()
    """Names, modes and digests of a file."""
    HUNK = auto()
    SAME = auto()
    ADDED = auto()
    REMOVED = auto()
    NOTE = auto()
    """A file ends without a line break, or its content is binary."""


class DiffLine(NamedTuple):
    """One line of a patch."""

    kind: LineKind
    text: str
    """Neutralised, with its sign; tabs are expanded."""
    old: int | None = None
    """Number of the line before the change."""
    new: int | None = None
    """Number of the line after the change."""


@dataclass(slots=True)
class DiffFile:
    """The changes of one file."""

    path: str
    """Path after the change, or before it if the file is gone; neutralised."""
    lines: list[DiffLine] = field(default_factory=list)
    added: int = 0
    removed: int = 0
    binary: bool = False


def parse_diff(patch: str) -> Sequence[DiffFile]:
    """Parse what ``git diff`` writes. Any text is accepted; lines before the first file are a file without a path."""
    files: list[DiffFile] = []
    old = new = old_left = new_left = 0
    for line in patch.removesuffix("\n").split("\n"):
        if not files and line and not line.startswith("diff --git "):
            files.append(DiffFile(""))
        if (old_left > 0 or new_left > 0) and files:
            sign = line[:1]
            if sign == "\\":
                files[-1].lines.append(_line(LineKind.NOTE, line))
                continue
            in_old, in_new = sign != "+", sign != "-"
            kind = LineKind.ADDED if sign == "+" else LineKind.REMOVED if sign == "-" else LineKind.SAME
            files[-1].lines.append(_line(kind, line, old if in_old else None, new if in_new else None))
            files[-1].added += kind is LineKind.ADDED
            files[-1].removed += kind is LineKind.REMOVED
            old, old_left = old + in_old, old_left - in_old
            new, new_left = new + in_new, new_left - in_new
        elif line.startswith("diff --git "):
            files.append(DiffFile(neutralise(_header_path(line[11:])), [_line(LineKind.HEAD, line)]))
        elif not files:
            continue
        elif hunk := _hunk.match(line):
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            files[-1].lines.append(_line(LineKind.HUNK, line))
        else:
            _read_head(files[-1], line)
    return files


def side_by_side(file: DiffFile) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    """Yield the lines of a file in pairs, before and after the change; other lines stand on both sides."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in file.lines:
        if line.kind is LineKind.REMOVED and not added:
            removed.append(line)
        elif line.kind is LineKind.ADDED:
            added.append(line)
        else:
            yield from zip_longest(removed, added)
            removed, added = ([line], []) if line.kind is LineKind.REMOVED else ([], [])
            if line.kind is not LineKind.REMOVED:
                yield line, line
    yield from zip_longest(removed, added)


def _read_head(file: DiffFile, line: str) -> None:
    if line.startswith(("GIT binary patch", "Binary files ")):
        file.binary = True
    elif line.startswith(("--- ", "+++ ")) and not file.binary:
        path = _unquote(line[4:].rstrip("\t"))
        if path != "/dev/null":
            file.path = neutralise(path[2:])
    kind = LineKind.NOTE if file.binary or line.startswith("\\") else LineKind.HEAD
    file.lines.append(_line(kind, line))


def _line(kind: LineKind, text: str, old: int | None = None, new: int | None = None) -> DiffLine:
    # The sign takes no part in where tabs stop.
    sign = text[:1] if (old or new) and text[:1] in ("+", "-", " ") else ""
    signed = sign + neutralise(text[len(sign) :]).expandtabs(TAB)
    return DiffLine(kind, signed, old, new)


def _header_path(names: str) -> str:
    """Return the path in ``a/PATH b/PATH``, which may contain blanks."""
    if names.startswith('"'):
        return _unquote(names[: names.index('"', 1) + 1] if names.count('"') > 1 else names)[2:]
    return names[2 : len(names) // 2]


def _unquote(name: str) -> str:
    """Return a path without the quotes and escapes that git uses for unusual characters."""
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name
    pieces, end = bytearray(), 1
    for match in _escape.finditer(name, 1, len(name) - 1):
        pieces += name[end : match.start()].encode("utf-8", "replace")
        code = match[1]
        pieces.append(int(code, 8) & 0xFF if code.isdigit() else _ESCAPED[code])
        end = match.end()
    pieces += name[end:-1].encode("utf-8", "replace")
    return pieces.decode("utf-8", "replace")
