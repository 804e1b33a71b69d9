"""A repository's history, read by git alone: its first-parent steps, and its files at a commit."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from dgm.archive.git_process import environment
from dgm.domain import Entry, Snapshot
from dgm.errors import Infrastructure, UserError
from dgm.processes import run_apart

GIT_S = 600.0
_RECORD, _FIELD = b"\x1e", b"\x1f"
_FORMAT = "%x1e%H%x1f%P%x1f%ct%x1f%B%x1f"
_MODES = {b"100644": 0o100644, b"100755": 0o100755, b"120000": 0o120000}
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


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
        return datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d")


class History:
    """A git repository on this machine; nothing in it is run or changed."""

    def __init__(self, folder: Path) -> None:
        """Open the repository of a folder, or a bare one.

        Raises:
            UserError: git finds no repository there, or it has no commit.
        """
        self.folder = folder
        if not folder.is_dir():
            raise UserError(f"{folder}: not a folder; name a git repository (dgm benchmark mine REPO)")
        self.head = self._git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()

    def _git(self, *arguments: str, given: bytes = b"") -> bytes:
        command = ["git", "-C", str(self.folder.absolute()), *arguments]
        try:
            done = run_apart(command, cwd=self.folder, env=environment(), timeout_s=GIT_S, given=given)
        except subprocess.TimeoutExpired as error:
            raise Infrastructure(
                f"git {arguments[0]} on {self.folder} took more than {GIT_S:.0f} s"
            ) from error
        except FileNotFoundError as error:
            raise UserError("git is not installed; install it with your system's package manager") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise UserError(
                f"{self.folder}: no git repository with a commit: {said or 'it has no commit yet'}"
            )
        return done.stdout

    def units(self, since: str = "") -> Sequence[Unit]:
        """Return the first-parent steps, the newest first.

        Args:
            since: the earliest moment, as git reads it; empty: all.
        """
        words = ["log", "--first-parent", "--diff-merges=first-parent", "--numstat", "--no-renames", "-z"]
        words += [f"--format=tformat:{_FORMAT}", *([f"--since={since}"] if since else []), self.head, "--"]
        return [_parse_unit(record) for record in self._git(*words).split(_RECORD)[1:]]

    def branch_messages(self, unit: Unit) -> str:
        """Return the messages of the commits that a merge brings, the oldest first."""
        if not unit.merge:
            return ""
        found = self._git(
            "log", "--no-merges", "--reverse", "--format=%B", f"{unit.parent}..{unit.commit}", "--"
        )
        return found.decode("utf-8", "replace").strip()

    def files(self, commit: str) -> Snapshot:
        """Return all files at a commit, sorted by name; submodules are left out."""
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", _check(commit)).split(b"\0")
        rows = []
        for line in filter(None, listed):
            about, _, name = line.partition(b"\t")
            mode, _, object_ = about.split()
            if mode in _MODES:
                rows.append((os.fsdecode(name), _MODES[mode], object_.decode()))
        blobs = self._blobs([object_ for _, _, object_ in rows])
        return {name: Entry(blobs[object_], mode) for name, mode, object_ in sorted(rows)}

    def _blobs(self, objects: Sequence[str]) -> Mapping[str, bytes]:
        wanted = [each for each in dict.fromkeys(objects) if each not in self._kept]
        answer = self._git("cat-file", "--batch", given="".join(f"{each}\n" for each in wanted).encode())
        position = 0
        for _ in wanted:
            end = answer.index(b"\n", position)
            name, _, size = answer[position:end].split()
            self._kept[name.decode()] = answer[end + 1 : end + 1 + int(size)]
            position = end + 2 + int(size)
        return self._kept

    @cached_property
    def _kept(self) -> dict[str, bytes]:
        """Blobs that were read: most files are the same in most commits."""
        return {}

    def file(self, commit: str, path: str) -> bytes | None:
        """Return one file at a commit; None if there is none."""
        found = self._git("ls-tree", "-z", "--full-tree", _check(commit), "--", f":(literal,top){path}")
        words = found.partition(b"\t")[0].split()
        return self._blobs([words[2].decode()])[words[2].decode()] if words and words[1] == b"blob" else None


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
