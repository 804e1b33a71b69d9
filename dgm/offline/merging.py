"""Conflicts of a merge, found by their markers in a text and settled.

Only lines between the markers count. Both sides' lines are merged with the ancestor's again, first by line, then by
word:

* If both sides only add, both are kept, the first side's before the second's.
* From two numbers, the one farther from the ancestor's is kept.
* In any other case, and if the result would not be Python, the first side's lines are kept.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from dgm.offline.edits.source import MAX_SOURCE_CHARACTERS, lines_of, parse

_BEGIN = re.compile(r"<{7,}(?= )")
_WORD = re.compile(r"\d+(?:\.\d+)?|\w+|\s+|[^\w\s]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OPEN = ("(", "[", "{", ",")

Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class ConflictSides:
    """The lines of one conflict by side, with their line ends."""

    ours: Words
    base: Words
    theirs: Words


@dataclass(frozen=True, slots=True)
class Settlement:
    """The edit that settles all conflicts of a file: ``old``, which occurs once, spans all of them."""

    path: str
    old: str
    new: str
    ours: str
    """Replacement to use if ``new`` fails: the first side of every conflict."""


def settlements(files: Mapping[str, str]) -> list[Settlement]:
    """Return a settlement for each file with conflicts, in order of path."""
    found = [_settlement(path, files[path]) for path in sorted(files)]
    return [one for one in found if one is not None]


def _settlement(path: str, text: str) -> Settlement | None:
    pieces = list(_pieces(lines_of(text)))
    marked = [n for n, piece in enumerate(pieces) if isinstance(piece, _Conflict)]
    if not marked:
        return None
    first, last = marked[0], marked[-1] + 1

    def joined(way: int) -> str:
        return "".join(
            piece.ways[way] if isinstance(piece, _Conflict) else piece for piece in pieces[first:last]
        )

    head, tail = "".join(map(str, pieces[:first])), "".join(map(str, pieces[last:]))
    ours = joined(_OURS)
    new = next((made for way in (_BOTH, _LINES) if _sound(path, head + (made := joined(way)) + tail)), ours)
    return Settlement(path, joined(_AS_IT_IS), new, ours)


_AS_IT_IS, _OURS, _LINES, _BOTH = range(4)


@dataclass(frozen=True, slots=True)
class _Conflict:
    """A conflict in four forms: unchanged, the first side, merged by lines, merged by words."""

    ways: tuple[str, str, str, str]


def _sound(path: str, text: str) -> bool:
    """Return whether this text could be the file: a Python file must parse, unless it is too long to check."""
    return not path.endswith(".py") or len(text) > MAX_SOURCE_CHARACTERS or parse(text) is not None


def _pieces(lines: Words) -> Iterator[str | _Conflict]:
    at = 0
    while at < len(lines):
        found = _place(lines, at)
        if found is None:
            yield lines[at]
            at += 1
            continue
        place, end = found
        ours, whole = "".join(place.ours), "".join(lines[at:end])
        by_line = "".join(merge_words(place.base, place.ours, place.theirs))
        by_word = "".join(merge_words(*(_words(side) for side in (place.base, place.ours, place.theirs))))
        whole_lines = _only_lines(place)
        yield _Conflict((whole, ours, by_line, by_line if whole_lines else by_word))
        at = end


def _only_lines(place: ConflictSides) -> bool:
    """Return whether each side only adds or removes whole lines."""
    return all(
        kind in ("equal", "insert", "delete")
        for side in (place.ours, place.theirs)
        for kind, *_ in SequenceMatcher(None, place.base, side, autojunk=False).get_opcodes()
    )


def _words(lines: Words) -> Words:
    return _WORD.findall("".join(lines))


def _place(lines: Words, at: int) -> tuple[ConflictSides, int] | None:
    """Return the conflict that begins at a line, and the number of the line after it."""
    begins = _BEGIN.match(lines[at])
    if begins is None:
        return None
    size = len(begins[0])
    sides: list[list[str]] = [[]]
    marks = ["|" * size + " ", "=" * size, ">" * size + " "]
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if line.rstrip("\r\n") == marks[0] or (marks[0].endswith(" ") and line.startswith(marks[0])):
            marks.pop(0)
            if not marks:
                ours, base, theirs = sides
                return ConflictSides(ours, base, theirs), number + 1
            sides.append([])
        else:
            sides[-1].append(line)
    return None


def merge_words(base: Words, ours: Words, theirs: Words) -> list[str]:
    """Merge two sequences, given their common ancestor."""
    result: list[str] = []
    for before, first, second in _chunks(base, ours, theirs):
        result += _choose_side(before, first, second, result[-1] if result else "")
    return result


def _choose_side(before: Words, first: Words, second: Words, after: str) -> Words:
    if first in (before, second):
        return second
    if second == before:
        return first
    if not before:
        return [*first, *_joint(first, second, after), *second]
    if all(len(side) == 1 and _NUMBER.fullmatch(side[0]) for side in (before, first, second)):
        was = float(before[0])
        return max(first, second, key=lambda side: abs(float(side[0]) - was))
    return first


def _joint(first: Words, second: Words, after: str) -> Words:
    """Return the separator between two additions: items of a list on one line need a comma."""
    ends, begins = first[-1], second[0]
    if "\n" in ends or begins.isspace() or ends.isspace() or begins == "," or after.strip() not in _OPEN:
        return []
    return [" "] if ends == "," else [", "]


def _chunks(base: Words, ours: Words, theirs: Words) -> Iterator[tuple[Words, Words, Words]]:
    """Yield stretches in which all three agree, and the stretches between them."""
    at_base = at_ours = at_theirs = 0
    for start, in_ours, in_theirs, length in [
        *_find_agreements(base, ours, theirs),
        (len(base), len(ours), len(theirs), 0),
    ]:
        if start > at_base or in_ours > at_ours or in_theirs > at_theirs:
            yield base[at_base:start], ours[at_ours:in_ours], theirs[at_theirs:in_theirs]
        if length:
            same = base[start : start + length]
            yield same, same, same
        at_base, at_ours, at_theirs = start + length, in_ours + length, in_theirs + length


def _find_agreements(base: Words, ours: Words, theirs: Words) -> Iterator[tuple[int, int, int, int]]:
    """Yield stretches of the base unchanged in both sides: start in the base, starts in both sides, length."""
    first = _matches(base, ours)
    second = _matches(base, theirs)
    number = 0
    while number < len(base):
        if number not in first or number not in second:
            number += 1
            continue
        length = 1
        while (
            first.get(number + length) == first[number] + length
            and second.get(number + length) == second[number] + length
        ):
            length += 1
        yield number, first[number], second[number], length
        number += length


def _matches(base: Words, side: Words) -> dict[int, int]:
    blocks = SequenceMatcher(None, base, side, autojunk=False).get_matching_blocks()
    return {block.a + n: block.b + n for block in blocks for n in range(block.size)}
