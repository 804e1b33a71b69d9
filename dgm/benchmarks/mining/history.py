"""A repository's history, read by git alone: its first-parent steps, and its files at a commit."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from dgm.archive.git import LocalRepository
from dgm.domain import CommitId, Snapshot
from dgm.errors import UserError

_RECORD, _FIELD = b"\x1e", b"\x1f"
_FORMAT = "%x1e%H%x1f%P%x1f%ct%x1f%B%x1f"
_LATEST = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
"""Latest day of a commit; a repository may claim any."""
MOST_BYTES = 2_000_000_000
"""Largest commit that is read."""
_VERSION = re.compile(r"^(?:[\w-]*[/v_-])?v?\d+(?:\.\d+)+[\w.+-]*$")


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file in a step."""

    path: str
    added: int
    """Number of lines; -1 for a binary file."""
    removed: int

    @property
    def lines(self) -> int:
        """Lines that were added or removed."""
        return max(0, self.added) + max(0, self.removed)


@dataclass(frozen=True, slots=True)
class Unit:
    """One step of the first-parent line: a commit, or a merge with all that it brings."""

    commit: CommitId
    parent: CommitId
    """Empty for the first commit."""
    time: int
    """When it was committed, in seconds since 1970."""
    message: str
    changes: tuple[FileChange, ...]
    merge: bool = False

    @property
    def title(self) -> str:
        """The first line of the message."""
        return self.message.strip().partition("\n")[0].strip()

    @property
    def day(self) -> str:
        """Its day in UTC, as ``2026-11-27``."""
        return datetime.fromtimestamp(min(self.time, _LATEST), UTC).strftime("%Y-%m-%d")


class History:
    """A git repository on this machine; nothing in it is run or changed."""

    def __init__(self, folder: Path) -> None:
        """Open the repository of a folder, or a bare one.

        Raises:
            UserError: there is no repository, or it has no commit.
        """
        self.folder = folder
        repository = LocalRepository.find(folder) if folder.is_dir() else None
        if repository is None:
            raise UserError(f"{folder}: no git repository; name one (dgm benchmark mine REPO)")
        self._repository = repository
        self.head = repository.head
        repository.tree_of(self.head)

    def units(self, since: str = "") -> Sequence[Unit]:
        """Return the first-parent steps, the newest first.

        Args:
            since: the earliest moment, as git reads it; empty: all.
        """
        words = ["log", "--first-parent", "--diff-merges=first-parent", "--numstat", "--no-renames", "-z"]
        words += [f"--format=tformat:{_FORMAT}", *([f"--since={since}"] if since else [])]
        return [
            _parse_unit(record) for record in self._repository.run(*words, self.head, "--").split(_RECORD)[1:]
        ]

    def branch_messages(self, unit: Unit) -> str:
        """Return the messages of the commits that a merge brings, the oldest first."""
        if not unit.merge:
            return ""
        words = ["log", "--no-merges", "--reverse", "--format=%B", f"{unit.parent}..{unit.commit}", "--"]
        return self._repository.run(*words).decode("utf-8", "replace").strip()

    def last_tag(self, commit: CommitId) -> str:
        """Return the last tag of a version before a commit, such as ``v1.2.3``; empty if there is none."""
        tags = self._version_tags
        if not tags:
            return ""
        log = self._repository.run("rev-list", "--max-count=20000", commit).decode().split()
        return next((tags[ancestor] for ancestor in log if ancestor in tags), "")

    @cached_property
    def _version_tags(self) -> Mapping[str, str]:
        """Commit → tag, of the tags that name a version."""
        return {commit: tag for tag, commit in self._repository.read_tags().items() if _VERSION.search(tag)}

    def files(self, commit: CommitId) -> Snapshot:
        """Return all files at a commit, sorted by name; submodules are left out."""
        return self._repository.files(commit, MOST_BYTES)

    def file(self, commit: CommitId, path: str) -> bytes | None:
        """Return one file at a commit; None if there is none."""
        try:
            return self._repository.get(f"{commit}:{path}", "blob")
        except UserError:
            return None


def _parse_unit(record: bytes) -> Unit:
    commit, parents, time, message, rest = record.split(_FIELD, 4)
    changes = []
    for line in rest.strip(b"\0\n").split(b"\0"):
        parts = line.strip(b"\n").split(b"\t", 2)
        if len(parts) == 3:
            added, removed = (-1 if each == b"-" else int(each) for each in parts[:2])
            changes.append(FileChange(os.fsdecode(parts[2]), added, removed))
    several = parents.decode().split()
    return Unit(
        CommitId(commit.decode()),
        CommitId(several[0] if several else ""),
        int(time),
        message.decode("utf-8", "replace"),
        tuple(sorted(changes, key=lambda change: change.path)),
        merge=len(several) > 1,
    )
