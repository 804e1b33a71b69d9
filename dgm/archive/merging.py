"""Three-way merge of two agents' sources, path by path, against a common ancestor's: snapshots as values.

Contents may be hostile. Git runs on three files with names of our own in a scratch folder, so no attribute or driver
takes effect. Links are never followed and never merged. The caller decides what a
conflict means and who settles it. Renames are not detected: a rename is a removal and an addition.
"""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import TypeVar

from dgm.archive.repository import scratch_objects
from dgm.archive.snapshots import LINK
from dgm.domain import Entry, Snapshot

LABELS = ("first parent", "ancestor", "second parent")
"""Labels after the conflict markers ``<<<<<<<``, ``|||||||`` and ``>>>>>>>``."""
_MARKER = 7
"""Usual length of a marker in characters; longer if a file already contains such lines."""
_LIKE_MARKERS = re.compile(rb"^([<|=>])\1{6,}(?=[ \r\n]|\Z)", re.MULTILINE)
_MOST_CONFLICTS = 127
"""Largest exit code of ``git merge-file`` after a successful merge; a larger one means that it failed."""
_T = TypeVar("_T")


class ConflictKind(StrEnum):
    """The reason why the two sides of a path could not be merged."""

    LINES = "lines"
    """Both sides changed the same lines: the file holds both versions and the ancestor's, between markers."""
    BINARY = "binary"
    """Both sides changed it, and it is not UTF-8 text."""
    REMOVED = "removed"
    """One side removed it and the other changed it."""
    KIND = "kind"
    """Both sides changed it, and it is or became a link, or the sides have different modes."""
    FOLDER = "folder"
    """One side has a file where the other has a folder."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One path that needs a decision. Except for ``LINES``, the first side's version is kept."""

    path: str
    clash: ConflictKind
    places: int = 0
    """For ``LINES``: number of places in conflict; 127 stands for 127 or more."""
    markers: tuple[bytes, ...] = ()
    """For ``LINES``: the four marker lines of a place. None of the three input files contains one of them."""


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of a merge."""

    files: Snapshot
    """The merged files, ordered by name."""
    conflicts: tuple[Conflict, ...]
    """The conflicts, ordered by path; empty if the two sides fit."""


def merge_snapshots(base: Snapshot, ours: Snapshot, theirs: Snapshot) -> MergeResult:
    """Merge the changes of ``ours`` and ``theirs`` relative to ``base``.

    If both sides agree on a path, or only one side changed, added or removed it, that decides. The others are merged by
    lines (``git merge-file --diff3``). For a file that both added, the ancestor's is taken as empty.

    Raises:
        Infrastructure: git fails, takes longer than two minutes, or the disk is full.
        UserError: git is not installed.
    """
    files: dict[str, Entry] = {}
    conflicts: dict[str, Conflict] = {}
    for path in sorted(base.keys() | ours.keys() | theirs.keys()):
        entry, conflict = _merge_path(path, base.get(path), ours.get(path), theirs.get(path))
        if entry is not None:
            files[path] = entry
        if conflict is not None:
            conflicts[path] = conflict
    # A path that one side removed and the other changed still needs its place.
    for path in _find_blocking_files(files.keys() | conflicts.keys()):
        # Each side alone is a tree, so one of the two paths is not from the first side.
        for name in [name for name in files if name == path or name.startswith(path + "/")]:
            if name not in ours:
                del files[name]
        conflicts[path] = Conflict(path, ConflictKind.FOLDER)
    return MergeResult(files, tuple(conflicts[path] for path in sorted(conflicts)))


def find_unsettled(conflicts: Sequence[Conflict], files: Snapshot) -> list[str]:
    """Return the paths merged with markers whose markers are still in ``files``."""
    return [
        conflict.path
        for conflict in conflicts
        if conflict.clash is ConflictKind.LINES and conflict.path in files
        if set(conflict.markers) & {line.rstrip(b"\r") for line in files[conflict.path].data.split(b"\n")}
    ]


def _merge_path(
    path: str, base: Entry | None, ours: Entry | None, theirs: Entry | None
) -> tuple[Entry | None, Conflict | None]:
    if theirs in (ours, base):
        return ours, None
    if ours == base:
        return theirs, None
    if ours is None or theirs is None:
        return ours, Conflict(path, ConflictKind.REMOVED)
    mode = _pick_changed(base.mode if base else None, ours.mode, theirs.mode)
    if mode is None or LINK in (base.mode if base else mode, ours.mode, theirs.mode):
        return ours, Conflict(path, ConflictKind.KIND)
    data = _pick_changed(base.data if base else None, ours.data, theirs.data)
    if data is not None:
        return Entry(data, mode), None
    before = base.data if base else b""
    if not all(_is_text(side) for side in (before, ours.data, theirs.data)):
        return Entry(ours.data, mode), Conflict(path, ConflictKind.BINARY)
    merged, places, markers = _merge_lines(before, ours.data, theirs.data)
    return Entry(merged, mode), Conflict(path, ConflictKind.LINES, places, markers) if places else None


def _pick_changed(base: _T | None, ours: _T, theirs: _T) -> _T | None:
    """Return the value that both sides have, or that only one changed; ``None`` if both changed it."""
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else None


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _merge_lines(base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, int, tuple[bytes, ...]]:
    """Return the merged text, the number of places in conflict (up to 127), and the markers of this text."""
    sizes = {len(marker[0]) for text in (base, ours, theirs) for marker in _LIKE_MARKERS.finditer(text)}
    size = next(size for size in count(_MARKER) if size not in sizes)
    labels = [word for label in LABELS for word in ("-L", label)]
    with scratch_objects() as scratch:
        for file, text in (("ours", ours), ("base", base), ("theirs", theirs)):
            (scratch.repository / file).write_bytes(text)
        words = [
            "merge-file",
            "-p",
            "-q",
            "--diff3",
            f"--marker-size={size}",
            *labels,
            "ours",
            "base",
            "theirs",
        ]
        merged = scratch.run(*words, highest_status=_MOST_CONFLICTS)
    first, ancestor, second = (b" " + label.encode() for label in LABELS)
    markers = (b"<" * size + first, b"|" * size + ancestor, b"=" * size, b">" * size + second)
    places = sum(line.rstrip(b"\r") == markers[0] for line in merged.split(b"\n"))
    return merged, min(places, _MOST_CONFLICTS), markers


def _find_blocking_files(files: AbstractSet[str]) -> list[str]:
    """Return files below which other files are to be placed."""
    folders = {
        "/".join(parts[:n]) for path in files for parts in [path.split("/")] for n in range(1, len(parts))
    }
    return sorted(folders & files)
