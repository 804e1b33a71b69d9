"""A repository's history, read by git alone: its first-parent steps, and its files at a commit."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from dgm.archive.local_repository import LocalRepository
from dgm.domain import Snapshot
from dgm.errors import UserError

_RECORD, _FIELD = b"\x1e", b"\x1f"
_FORMAT = "%x1e%H%x1f%P%x1f%ct%x1f%B%x1f"
_LATEST = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
"""Latest day of a commit; a repository may claim any."""
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
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

    commit: str
    parent: str
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
        repository.run("cat-file", "-e", f"{self.head}^{{commit}}")

    def units(self, since: str = "") -> Sequence[Unit]:
        """Return the first-parent steps, the newest first.

        Args:
            since: the earliest moment, as git reads it; empty: all.
        """
        words = ["log", "--first-parent", "--diff-merges=first-parent", "--numstat", "--no-renames", "-z"]
        words += [
            f"--format=tformat:{_FORMAT}",
            *([f"--since={_from_midnight(since)}"] if since else []),
            self.head,
            "--",
        ]
        return [_parse_unit(record) for record in self._repository.run(*words).split(_RECORD)[1:]]

    def branch_messages(self, unit: Unit) -> str:
        """Return the messages of the commits that a merge brings, the oldest first."""
        if not unit.merge:
            return ""
        found = self._repository.run(
            "log", "--no-merges", "--reverse", "--format=%B", f"{unit.parent}..{unit.commit}", "--"
        )
        return found.decode("utf-8", "replace").strip()

    def last_tag(self, commit: str) -> str:
        """Return the last tag of a version before a commit, such as ``v1.2.3``; empty if there is none."""
        tags = self._version_tags
        if not tags:
            return ""
        log = self._repository.run("rev-list", "--max-count=20000", _check(commit)).decode().split()
        return next((tags[each] for each in log if each in tags), "")

    @cached_property
    def _version_tags(self) -> dict[str, str]:
        """Commit → tag, of the tags that name a version."""
        common, ids = self._repository.common, dict[str, str]()
        packed = common / "packed-refs"
        for line in (
            packed.read_text(encoding="utf-8", errors="replace").splitlines() if packed.is_file() else ()
        ):
            if match := re.fullmatch(r"([0-9a-f]{40,64}) refs/tags/(\S+)", line):
                ids[match[2]] = match[1]
        for file in sorted((common / "refs" / "tags").rglob("*")):
            if file.is_file() and not file.is_symlink():
                name = file.relative_to(common / "refs" / "tags").as_posix()
                ids[name] = file.read_text(encoding="ascii", errors="replace")[:65].strip()
        names = [name for name, each in ids.items() if _VERSION.search(name) and _COMMIT.fullmatch(each)]
        asked = "".join(f"{ids[name]}^{{commit}}\n" for name in names).encode()
        answers = (
            self._repository.run("cat-file", "--batch-check=%(objectname)", given=asked).decode().splitlines()
        )
        return {
            answer: name for answer, name in zip(answers, names, strict=True) if _COMMIT.fullmatch(answer)
        }

    def files(self, commit: str) -> Snapshot:
        """Return all files at a commit, sorted by name; submodules are left out."""
        return self._repository.files(_check(commit))

    def file(self, commit: str, path: str) -> bytes | None:
        """Return one file at a commit; None if there is none."""
        found = self._repository.run(
            "ls-tree", "-z", "--full-tree", _check(commit), "--", f":(literal,top){path}"
        )
        words = found.partition(b"\t")[0].split()
        if not words or words[1] != b"blob":
            return None
        return self._repository.read_blobs([words[2].decode()])[words[2].decode()]


def _check(commit: str) -> str:
    assert _COMMIT.fullmatch(commit), commit
    return commit


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
        commit.decode(),
        several[0] if several else "",
        int(time),
        message.decode("utf-8", "replace"),
        tuple(sorted(changes, key=lambda change: change.path)),
        merge=len(several) > 1,
    )


def _from_midnight(since: str) -> str:
    """Return a day with its first moment: git takes the present time of day otherwise."""
    return f"{since} 00:00" if re.fullmatch(r"\d{4}-\d{2}-\d{2}", since) else since
