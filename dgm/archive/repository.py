"""``agents.git``: every agent is a commit, its parents are the commit's parents, its ref is ``agents/<id>``.

A snapshot goes in by ``git fast-import`` and comes out by ``git cat-file``. No content of an agent's tree has a meaning
for git on the host.

``merge_snapshots`` merges two agents' sources, path by path, against a common ancestor's. Git runs on three files with
names of our own in a scratch folder, so no attribute or driver takes effect. Links are never followed and never merged.
The caller decides what a conflict means and who settles it. Renames are not detected: a rename is a removal and an
addition.
"""

import itertools
import re
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TypeVar

from dgm.archive.durable import make_folder, sync_folder, write_durably
from dgm.archive.git import (
    EMPTY,
    OBJECT,
    Objects,
    clean_environment,
    first_line,
    quote_name,
    read_files,
    run_git,
)
from dgm.archive.lock import error_of_write
from dgm.archive.snapshots import LINK, storable
from dgm.domain import ActionId, AgentId, CommitId, Entry, Snapshot
from dgm.errors import ArchiveCorrupt, Infrastructure

_DIFF = (
    "diff-tree",
    "-r",
    "-p",
    "--binary",
    "--full-index",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
)
_APPLY = ("apply", "--cached", "--whitespace=nowarn", "-")
_MESSAGE = b"An agent of dgm\n"
_SIGNATURES = b"author dgm <dgm@localhost> 0 +0000\ncommitter dgm <dgm@localhost> 0 +0000"
_PARENTS = (b"from", *itertools.repeat(b"merge", 15))
_MOST_PACKS = 20
"""Each commit is a pack; more of them are put together, because git searches all of them."""
_REF = re.compile(r"refs/heads/\w+/([0-9]{1,9}) ([0-9a-f]{40})")


class AgentRepository:
    """The bare repository of a run."""

    def __init__(self, folder: Path, below: Path | None = None) -> None:
        """Use the repository in ``folder``, and read what it lacks from the ``agents.git`` ``below``."""
        self._folder = folder
        self._below = below
        self._writing = threading.Lock()

    @classmethod
    def create(cls, folder: Path) -> "AgentRepository":
        """Make an empty repository."""
        make_repository(folder)
        return cls(folder)

    def commit(self, files: Snapshot, parents: Sequence[CommitId]) -> CommitId:
        """Store an agent's source durably; equal content with equal parents gives the same id everywhere.

        Entries in a ``.git`` (in any spelling) are dropped, because git cannot hold them.

        Raises:
            UserError: a name is invalid in a folder, or is both a file and a folder; or git is not installed.
            Infrastructure: the disk is full or failing.
        """
        objects, packs = (
            Objects(self._folder, self._below, error=Infrastructure),
            self._folder / "objects" / "pack",
        )
        with self._writing:
            (commit,) = _import_commits(objects, [(storable(files), parents)])
            sync_folder(packs)
            if self._below is None and len(list(packs.glob("*.pack"))) > _MOST_PACKS:
                objects.run("repack", "-d", "-n", "-q", "--geometric=2")
        return commit

    def name(self, agent: AgentId, commit: CommitId) -> None:
        """Point ``refs/heads/agents/<id>`` at a commit, durably.

        Call this before appending the event that names the agent.
        """
        write_durably(self._folder / "refs" / "heads" / "agents" / str(agent), f"{commit}\n".encode())

    def name_waiting(self, action: ActionId, commit: CommitId) -> None:
        """Point ``waiting/<action>`` at the commit of a child that is not an agent yet, durably."""
        write_durably(self._waiting / str(action), f"{commit}\n".encode())

    def forget_waiting(self, action: ActionId) -> None:
        """Remove the ref that ``name_waiting`` made, if it exists.

        Raises:
            UserError: the folder is read-only.
            Infrastructure: the disk is failing.
        """
        path = self._waiting / str(action)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise error_of_write(path, error) from error

    @property
    def _waiting(self) -> Path:
        return self._folder / "refs" / "heads" / "waiting"

    def refs(self) -> Mapping[AgentId, CommitId]:
        """Return the commits that the refs ``agents/<id>`` point at."""
        return {AgentId(agent): commit for agent, commit in self._read_refs("agents").items()}

    def waiting_refs(self) -> Mapping[ActionId, CommitId]:
        """Return the commits that the refs ``waiting/<action>`` point at."""
        return {ActionId(action): commit for action, commit in self._read_refs("waiting").items()}

    def _read_refs(self, kind: str) -> Mapping[int, CommitId]:
        words = ["for-each-ref", "--format=%(refname) %(objectname)", f"refs/heads/{kind}/"]
        done = run_git(self._folder, clean_environment() | {"GIT_COMMON_DIR": "."}, words)
        if done.returncode:
            raise ArchiveCorrupt(f"{self._folder}: git for-each-ref: {first_line(done.stderr)}")
        refs = filter(None, map(_REF.fullmatch, done.stdout.decode("ascii", "replace").splitlines()))
        return dict(sorted((int(ref[1]), CommitId(ref[2])) for ref in refs))

    def source(self, commit: CommitId) -> Snapshot:
        """Return an agent's source, byte for byte.

        Raises:
            ArchiveCorrupt: the commit, or an object in it, is missing or damaged.
        """
        with self.objects() as objects:
            return dict(read_files(objects, objects.tree_of(commit)))

    def tree_of(self, commit: CommitId) -> str:
        """Return the id of the commit's content; equal for agents with equal source."""
        with self.objects() as objects:
            return objects.tree_of(commit)

    def trees_of(self, commits: Iterable[CommitId]) -> Iterator[str]:
        """Yield ``tree_of`` for many commits in order, using one process."""
        with self.objects() as objects:
            for commit in commits:
                yield objects.tree_of(commit)

    def objects(self) -> Objects:
        """Return the objects, for many calls."""
        return Objects(self._folder, self._below)

    def diff(self, before: CommitId, after: CommitId) -> bytes:
        """Return the patch from one agent's source to another's, including binary files.

        Raises:
            ArchiveCorrupt: a commit, or an object in it, is missing or damaged.
        """
        return self.objects().run(*_DIFF, *map(check_commit, (before, after)))

    def fsck(self) -> None:
        """Check every object.

        Raises:
            ArchiveCorrupt: git finds a fault; the message has the first one.
        """
        commits = {*self._read_refs("agents").values(), *self._read_refs("waiting").values()}
        self.objects().run("fsck", "--full", "--no-dangling", "--no-progress", *sorted(commits))

    def pack_objects(self, ids: Iterable[str], *options: str) -> bytes:
        """Return a pack of these commits or trees and all that they need; raises like ``fsck``."""
        data = "".join(f"{check_commit(object_id)}\n" for object_id in ids).encode()
        # To a file, git would write it into agents.git first, and rename it, which fails on another disk.
        return self.objects().run("pack-objects", "--revs", "--quiet", "--stdout", *options, data=data)

    def find_unneeded(self, commits: Iterable[CommitId]) -> Mapping[str, int]:
        """Return the objects that no ref and none of these commits needs → bytes on disk; raises like ``fsck``."""
        objects = self.objects()
        stored = objects.run(
            "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objectsize:disk)"
        )
        heads = "".join(f"{commit}\n" for commit in self._needed(commits)).encode()
        needed = objects.run("rev-list", "--objects", "--no-object-names", "--stdin", data=heads)
        sizes = dict(line.split() for line in stored.decode().splitlines())
        return {name: int(sizes[name]) for name in sizes.keys() - {*needed.decode().split()}}

    def remove_unneeded(self, commits: Iterable[CommitId]) -> None:
        """Remove what ``find_unneeded`` returns: pack the rest, and remove all other files; raises like ``fsck``."""
        packs = self._folder.absolute() / "objects" / "pack"
        heads = "".join(f"{commit}\n" for commit in self._needed(commits)).encode()
        pack = self.objects().run("pack-objects", "--revs", "--quiet", str(packs / "pack"), data=heads)
        sync_folder(packs)
        for path in [*packs.iterdir(), *packs.parent.glob("[0-9a-f][0-9a-f]/*")]:
            if pack.decode().strip() not in path.name:
                path.unlink()

    def _needed(self, commits: Iterable[CommitId]) -> list[CommitId]:
        # A commit that an event names counts even if its ref is lost.
        return sorted({*commits, *self.refs().values(), *self.waiting_refs().values()})


def make_repository(folder: Path) -> None:
    """Make an empty bare repository whose HEAD is the seed."""
    for part in ("objects/pack", "refs/heads/agents"):
        make_folder(folder / part)
    for name in ("config", "HEAD"):
        write_durably(folder / name, (EMPTY / name).read_bytes())


def check_commit(commit: str) -> CommitId:
    """Return the id of an object, which is no option of git.

    Raises:
        ArchiveCorrupt: it is something else.
    """
    if not OBJECT.fullmatch(commit):
        raise ArchiveCorrupt(f"{commit[:60]!r} is not a commit (40 hexadecimal digits)")
    return CommitId(commit)


def _import_commits(
    objects: Objects, commits: Sequence[tuple[Snapshot, Sequence[CommitId]]], *options: str
) -> Sequence[CommitId]:
    """Store commits whose ids depend only on their files and parents; return the ids."""
    lines = []
    for mark, (files, parents) in enumerate(commits, 1):
        lines += [
            b"commit refs/heads/new",
            b"mark :%d" % mark,
            _SIGNATURES,
            b"data %d\n%b" % (len(_MESSAGE), _MESSAGE),
        ]
        lines += [b"%b %b" % (word, parent.encode()) for word, parent in zip(_PARENTS, parents, strict=False)]
        lines += [b"deleteall"]
        for name, entry in files.items():
            head = b"M %o inline %b\ndata %d" % (entry.mode, quote_name(name), len(entry.data))
            lines += [head, entry.data]
        # The reset leaves no ref, and no parent for the next commit.
        lines += [b"", b"get-mark :%d" % mark, b"reset refs/heads/new", b""]
    output = objects.run(*options, "fast-import", "--quiet", data=b"\n".join(lines))
    return [CommitId(name) for name in output.decode().split()]


def patch(before: Snapshot, after: Snapshot) -> bytes:
    """Return the patch between two snapshots, including binary files; empty if they are equal.

    Entries in a ``.git`` are left out. No archive is needed.

    Raises:
        UserError: a name is invalid in a folder, or git is not installed.
    """
    with _scratch_commits(before, after) as (scratch, commits):
        return scratch.run(*_DIFF, *commits) if commits else b""


def applying_patch(before: Snapshot, after: Snapshot) -> bytes:
    """Return the ``patch`` between two snapshots after checking that applying it to the first gives the second.

    Raises:
        ArchiveCorrupt: the patch does not apply, or gives a different result; one line.
        UserError: a name is invalid in a folder, or git is not installed.
    """
    with _scratch_commits(before, after) as (scratch, commits):
        if not commits:
            return b""
        diff = scratch.run(*_DIFF, *commits)
        if _apply(scratch, commits[0], diff) != scratch.tree_of(commits[1]):
            raise ArchiveCorrupt("it gives another source")
    return diff


def apply_patch(files: Snapshot, patch: bytes) -> Snapshot:
    """Return a snapshot with a patch applied, byte for byte. Git's attributes and configuration are ignored.

    Raises:
        ArchiveCorrupt: the patch does not apply; one line.
        UserError: a name is invalid in a folder, or git is not installed.
    """
    with scratch_objects() as scratch:
        (commit,) = _import_commits(scratch, [(storable(files), ())], "-c", "core.fsync=none")
        return dict(read_files(scratch, _apply(scratch, commit, patch)))


def _apply(scratch: Objects, commit: CommitId, patch: bytes, *options: str) -> str:
    """Return the tree that a patch makes of a commit's."""
    scratch.run("read-tree", commit)
    try:
        scratch.run(*_APPLY[:-1], *options, _APPLY[-1], data=patch)
    except ArchiveCorrupt as error:
        raise ArchiveCorrupt(str(error).removeprefix("git apply: ")) from error
    return scratch.run("write-tree").decode().strip()


@contextmanager
def scratch_objects() -> Iterator[Objects]:
    """Yield a temporary repository without any object."""
    with tempfile.TemporaryDirectory(prefix="dgm-") as name:
        (Path(name) / "objects").mkdir()
        (Path(name) / "HEAD").write_bytes((EMPTY / "HEAD").read_bytes())
        # Its errors become recorded reasons, which must not differ between runs.
        with Objects(
            Path(name), error=lambda text: ArchiveCorrupt(text.removeprefix(f"{name}: "))
        ) as objects:
            yield objects


@contextmanager
def _scratch_commits(before: Snapshot, after: Snapshot) -> Iterator[tuple[Objects, Sequence[CommitId]]]:
    """Yield a temporary repository with a commit for each snapshot, or none if both are equal.

    The commits lack the files that are equal in both.
    """
    old, new = storable(before), storable(after)
    sides = [
        {name: entry for name, entry in old.items() if new.get(name) != entry},
        {name: entry for name, entry in new.items() if old.get(name) != entry},
    ]
    with scratch_objects() as scratch:
        commits = [(side, ()) for side in sides]
        yield scratch, _import_commits(scratch, commits, "-c", "core.fsync=none") if any(sides) else ()


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


def find_common(ours: Snapshot, theirs: Snapshot) -> Snapshot:
    """Return the lines that files of the same path share: the ``base`` for two programs without a common ancestor.

    Git makes the ancestor of a file that two branches added in the same way (``git-merge-one-file``).

    Raises:
        Infrastructure, UserError: as ``merge_snapshots``.
    """
    both = ours.keys() & theirs.keys()
    first, second = ({path: side[path] for path in both} for side in (ours, theirs))
    with _scratch_commits(first, second) as (scratch, commits):
        if not commits:
            return first
        tree = _apply(scratch, commits[0], scratch.run(*_DIFF, *commits), "--no-add")
        return {**first, **dict(read_files(scratch, tree))}


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
