"""Unified diffs: print, read, reverse and apply them."""

import re
from dataclasses import dataclass, field

from .errors import PatchConflict, PatchSyntaxError
from .script import compare

_RANGE = re.compile(r"[-+](\d+)(?:,(\d+))?$")
NO_NEWLINE = "\\ No newline at end of file"


@dataclass
class Hunk:
    """One part of a diff; lines are counted from 0, rows begin with a blank, ``-`` or ``+``."""

    old_start: int
    new_start: int
    rows: list = field(default_factory=list)
    section: str = ""

    def old_lines(self):
        """Return what the hunk expects."""
        return [row[1:] for row in self.rows if row[0] != "+"]

    def new_lines(self):
        """Return what the hunk leaves behind."""
        return [row[1:] for row in self.rows if row[0] != "-"]

    def header(self):
        old = _range_text(self.old_start, len(self.old_lines()))
        new = _range_text(self.new_start, len(self.new_lines()))
        return f"@@ -{old} +{new} @@" + (f" {self.section}" if self.section else "")

    def reversed(self):
        """Return the hunk that takes this one back."""
        swapped = []
        for removed, added, kept in _groups(self.rows):
            swapped += ["-" + row[1:] for row in added]
            swapped += ["+" + row[1:] for row in removed]
            swapped += kept
        return Hunk(self.new_start, self.old_start, swapped, self.section)


@dataclass
class FilePatch:
    """The hunks for one file."""

    old_name: str
    new_name: str
    hunks: list = field(default_factory=list)

    def reversed(self):
        return FilePatch(self.new_name, self.old_name, [hunk.reversed() for hunk in self.hunks])

    def counts(self):
        """Return how many lines are added and removed."""
        rows = [row for hunk in self.hunks for row in hunk.rows]
        return sum(row[0] == "+" for row in rows), sum(row[0] == "-" for row in rows)

    def to_lines(self):
        lines = [f"--- {self.old_name}", f"+++ {self.new_name}"]
        for hunk in self.hunks:
            lines.append(hunk.header())
            lines.extend(hunk.rows)
        return lines


def _range_text(start, length):
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _groups(rows):
    """Yield the removed, the added and the kept rows of each change in turn."""
    removed, added, kept = [], [], []
    for row in rows:
        if kept and row[0] != " ":
            yield removed, added, kept
            removed, added, kept = [], [], []
        {"-": removed, "+": added, " ": kept}[row[0]].append(row)
    yield removed, added, kept


def unified(a, b, old_name="old", new_name="new", context=3, key=None):
    """Return the lines of a unified diff; none at all if nothing differs."""
    edits = compare(a, b, key)
    if not edits:
        return []
    patch = FilePatch(old_name, new_name)
    for cluster in _clusters(edits, context):
        patch.hunks.append(_hunk(a, b, cluster, context))
    return patch.to_lines()


def _clusters(edits, context):
    """Put edits together whose surroundings touch or overlap."""
    clusters = [[edits[0]]]
    for edit in edits[1:]:
        if edit.a_start - clusters[-1][-1].a_stop <= 2 * context:
            clusters[-1].append(edit)
        else:
            clusters.append([edit])
    return clusters


def _hunk(a, b, edits, context):
    first, last = edits[0], edits[-1]
    before = min(context, first.a_start)
    start = first.a_start - before
    rows, position = [], start
    for edit in edits:
        rows += [" " + line for line in a[position : edit.a_start]]
        rows += ["-" + line for line in a[edit.a_start : edit.a_stop]]
        rows += ["+" + line for line in b[edit.b_start : edit.b_stop]]
        position = edit.a_stop
    rows += [" " + line for line in a[last.a_stop : last.a_stop + context]]
    return Hunk(start, first.b_start - before, rows)


def parse_patch(text):
    """Read a unified diff of any number of files."""
    patches, lines, index = [], text.split("\n"), 0
    while index < len(lines):
        line = lines[index]
        if line.startswith("--- ") and index + 1 < len(lines) and lines[index + 1].startswith("+++ "):
            patches.append(FilePatch(_name(line), _name(lines[index + 1])))
            index += 2
        elif line.startswith("@@ "):
            if not patches:
                raise PatchSyntaxError(f"line {index + 1}: a hunk without a file")
            hunk, index = _parse_hunk(lines, index)
            patches[-1].hunks.append(hunk)
        else:
            index += 1
    return patches


def _name(line):
    """Return the file's name without the time that may follow a tab."""
    return line[4:].partition("\t")[0].rstrip()


def _parse_hunk(lines, index):
    head, closing, section = lines[index].partition(" @@")
    words = head.split()
    if not closing or len(words) < 3:
        raise PatchSyntaxError(f"line {index + 1}: cannot read {lines[index]!r}")
    (old_start, old_count), (new_start, new_count) = (_range(word, index) for word in words[1:3])
    hunk = Hunk(old_start, new_start, [], section.strip())
    index += 1
    while old_count > 0 or new_count > 0:
        row = lines[index] if index < len(lines) else None
        if row == "":
            row = " "
        if row is None or row[0] not in " +-\\":
            raise PatchSyntaxError(f"line {index + 1}: the hunk ends too early")
        index += 1
        if row == NO_NEWLINE:
            continue
        hunk.rows.append(row)
        old_count -= row[0] != "+"
        new_count -= row[0] != "-"
    return hunk, index


def _range(word, index):
    match = _RANGE.match(word)
    if match is None:
        raise PatchSyntaxError(f"line {index + 1}: cannot read the range {word!r}")
    start, count = int(match.group(1)), int(match.group(2) or 1)
    return (start - 1 if count else start), count


def apply_patch(lines, patch, search=50):
    """Return new lines with all hunks applied.

    A hunk whose lines have moved is looked for up to ``search`` lines away, the nearest place first, but never
    before the end of the hunk ahead of it.
    """
    result, position, drift = [], 0, 0
    for number, hunk in enumerate(patch.hunks, 1):
        expected = hunk.old_lines()
        at = _locate(lines, expected, hunk.old_start + drift, position, search)
        if at is None:
            raise PatchConflict(f"hunk {number} of {patch.new_name} does not fit near line {hunk.old_start + 1}")
        drift = at - hunk.old_start
        result += lines[position:at]
        result += hunk.new_lines()
        position = at + len(expected)
    return result + lines[position:]


def _locate(lines, expected, wanted, lowest, search):
    for distance in range(search + 1):
        for at in (wanted - distance, wanted + distance):
            if at >= lowest and at + len(expected) <= len(lines) and lines[at : at + len(expected)] == expected:
                return at
    return None
