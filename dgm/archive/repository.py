"""``agents.git``: an agent is a commit, its parents are the commit's parents, its ref is ``agents/<id>``.

Git runs only to read, on object ids, with no configuration except dgm's. No hook, filter, attribute, text conversion or
submodule of an agent's tree takes effect on the host. The folder may come from a stranger: refs are read here, and
git sees its objects only.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dgm.archive.durable import write_durably
from dgm.archive.git_process import GitObjects, ObjectFolder, run_git
from dgm.archive.lock import error_of_write
from dgm.archive.objects import (
    durable_writer,
    keep_differing_files,
    make_repository,
    object_id,
    parse_tree,
    put_commit,
    put_tree,
    scratch_writer,
    storable,
)
from dgm.archive.snapshots import FILE, LINK, MAX_BYTES, MAX_FILES, PROGRAM
from dgm.bounded_reading import read_file
from dgm.domain import COMMIT, ActionId, AgentId, CommitId, Entry, Snapshot
from dgm.errors import ArchiveCorrupt

_DIFF = (
    "diff-tree",
    "-r",
    "-p",
    "--binary",
    "--full-index",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--end-of-options",
)
_FOLDER = 0o40000
_PACKED = re.compile(r"([0-9a-f]{40}) refs/heads/(agents|waiting)/([0-9]{1,9})")


class AgentRepository:
    """The bare repository of a run."""

    def __init__(self, folder: Path, below: Path | None = None) -> None:
        """Use the repository in ``folder``, and read what it lacks from the ``agents.git`` ``below``."""
        self._folder = folder
        self._objects = ObjectFolder(folder, below)

    @classmethod
    def create(cls, folder: Path) -> "AgentRepository":
        """Make an empty repository."""
        make_repository(folder)
        return cls(folder)

    def commit(self, files: Snapshot, parents: Sequence[CommitId]) -> CommitId:
        """Store an agent's source durably; equal content with equal parents gives the same id everywhere.

        Entries in a ``.git`` (in any spelling) are dropped, because git cannot hold them.

        Raises:
            Infrastructure: the disk is full or failing.
        """
        put = durable_writer(self._folder / "objects")
        return put_commit(put_tree(storable(files), put), parents, put)

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

    def waiting_refs(self) -> Mapping[ActionId, CommitId]:
        """Return the commits that the refs ``waiting/<action>`` point at."""
        return {ActionId(action): commit for action, commit in self._read_refs("waiting").items()}

    @property
    def _waiting(self) -> Path:
        return self._folder / "refs" / "heads" / "waiting"

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

    def objects(self) -> GitObjects:
        """Return a process that reads many objects; ``with`` ends it."""
        return GitObjects(self._objects)

    def diff(self, before: CommitId, after: CommitId) -> bytes:
        """Return the patch from one agent's source to another's, including binary files.

        Raises:
            ArchiveCorrupt: a commit, or an object in it, is missing, damaged or larger than an agent may be.
        """
        with self.objects() as objects:
            return patch(*_read_differing_files(objects, objects.tree_of(before), objects.tree_of(after)))

    def fsck(self) -> None:
        """Check every object.

        Raises:
            ArchiveCorrupt: git finds a fault; the message has the first one.
        """
        self._objects.run("fsck", "--full", "--no-dangling", "--no-progress", refs=self._all_refs())

    def find_prunable(self, kept: Iterable[CommitId]) -> Sequence[str]:
        """Return the ids of loose objects that no ref and none of these commits needs; raises like ``fsck``."""
        refs = self._all_refs()
        more = sorted({*kept} - {*refs.values()})
        lines = self._objects.run(
            "prune", "-n", "--expire=now", "--end-of-options", *more, refs=refs
        ).decode()
        return [line.split(" ", 1)[0] for line in lines.splitlines()]

    def pack_objects(self, commits: Iterable[CommitId], *options: str) -> bytes:
        """Return a pack of these commits and all that they need; raises like ``fsck``."""
        given = "".join(f"{_check_commit(commit)}\n" for commit in commits).encode()
        # To a file, git would write it into agents.git first, and rename it, which fails on another disk.
        return self._objects.run("pack-objects", "--revs", "--quiet", "--stdout", *options, given=given)

    def refs(self) -> Mapping[AgentId, CommitId]:
        """Return the commits that the refs ``agents/<id>`` point at.

        Raises:
            ArchiveCorrupt: a ref is a link, or names no commit.
        """
        return {AgentId(agent): commit for agent, commit in self._read_refs("agents").items()}

    def _all_refs(self) -> Mapping[str, CommitId]:
        return {
            f"{kind}/{number}": commit
            for kind in ("agents", "waiting")
            for number, commit in self._read_refs(kind).items()
        }

    def _read_refs(self, kind: str) -> Mapping[int, CommitId]:
        found: dict[int, CommitId] = {}
        with suppress(FileNotFoundError):
            for line in read_file(self._folder / "packed-refs").decode("ascii", "replace").splitlines():
                named = _PACKED.fullmatch(line)
                if named and named[2] == kind:
                    found[int(named[3])] = CommitId(named[1])
        folder = self._folder
        for part in ("refs", "heads", kind):
            folder = folder / part
            if folder.is_symlink():
                raise ArchiveCorrupt(f"{folder}: a link, which is not followed; put the folder itself there")
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.isascii() and entry.name.isdecimal() and len(entry.name) < 10:
                    commit = read_file(folder / entry.name, 100).decode("ascii", "replace").strip()
                    found[int(entry.name)] = _check_commit(commit, f"{folder / entry.name}: ")
        return dict(sorted(found.items()))


def _check_commit(commit: str, place: str = "") -> CommitId:
    if not COMMIT.fullmatch(commit):
        raise ArchiveCorrupt(f"{place}{commit[:60]!r} is not a commit (40 or 64 hexadecimal digits)")
    return CommitId(commit)


def tree_id(files: Snapshot) -> str:
    """Return the ``AgentRepository.tree_of`` of a snapshot without storing it."""
    return put_tree(storable(files), object_id)


def patch(before: Snapshot, after: Snapshot) -> bytes:
    """Return the patch between two snapshots, including binary files; empty if they are equal.

    Entries in a ``.git`` are left out. No archive is needed.

    Raises:
        UserError: a name is invalid in a folder, or git is not installed.
    """
    old, new = keep_differing_files(storable(before), storable(after))
    if not old and not new:
        return b""
    with scratch_repository() as folder:
        put = scratch_writer(folder / "objects")
        return run_git(folder, *_DIFF, put_tree(old, put), put_tree(new, put))


def applying_patch(before: Snapshot, after: Snapshot) -> bytes:
    """Return the ``patch`` between two snapshots after checking that applying it to the first gives the second.

    Raises:
        ArchiveCorrupt: the patch does not apply, or gives a different result; one line.
        UserError: a name is invalid in a folder, or git is not installed.
    """
    old, new = keep_differing_files(storable(before), storable(after))
    if not old and not new:
        return b""
    with scratch_repository() as folder:
        put = scratch_writer(folder / "objects")
        start, wanted = put_tree(old, put), put_tree(new, put)
        diff = run_git(folder, *_DIFF, start, wanted)
        run_git(folder, "read-tree", start)
        try:
            run_git(folder, "apply", "--cached", "--whitespace=nowarn", "-", given=diff)
        except ArchiveCorrupt as error:
            raise ArchiveCorrupt(str(error).partition(": ")[2]) from error
        if run_git(folder, "write-tree").decode().strip() != wanted:
            raise ArchiveCorrupt("it gives another source")
    return diff


def apply_patch(files: Snapshot, patch: bytes) -> Snapshot:
    """Return a snapshot with a patch applied, byte for byte. Git's attributes and configuration are ignored.

    Raises:
        ArchiveCorrupt: the patch does not apply; one line.
        UserError: a name is invalid in a folder, or git is not installed.
    """
    with scratch_repository() as folder:
        run_git(folder, "read-tree", put_tree(storable(files), scratch_writer(folder / "objects")))
        try:
            run_git(folder, "apply", "--cached", "--whitespace=nowarn", "-", given=patch)
        except ArchiveCorrupt as error:
            raise ArchiveCorrupt(str(error).partition(": git apply: ")[2] or str(error)) from error
        tree = run_git(folder, "write-tree").decode().strip()
        with GitObjects(ObjectFolder(folder)) as objects:
            return dict(read_files(objects, tree))


@contextmanager
def scratch_repository() -> Iterator[Path]:
    """Yield the folder of a temporary bare repository without any object."""
    with tempfile.TemporaryDirectory(prefix="dgm-") as name:
        folder = Path(name)
        for part in ("objects", "refs"):
            (folder / part).mkdir()
        (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
        yield folder


def read_files(objects: GitObjects, root: str, seen: set[str] | None = None) -> Iterator[tuple[str, Entry]]:
    """Yield the files of a tree, by name.

    Args:
        objects: the repository.
        root: the tree.
        seen: objects to leave out, with all below them; those that are read are added. None: every file is wanted.

    Raises:
        ArchiveCorrupt: an object is missing or damaged, or there is more than an agent may have.
    """
    reader = _SourceReader(objects, root)
    waiting = [("", root)]
    while waiting:
        prefix, tree = waiting.pop()
        for name, (mode, object_) in reader.read_tree(tree).items():
            if seen is not None:
                if object_ in seen:
                    continue
                seen.add(object_)
            reader.count(prefix + name)
            if mode == _FOLDER:
                waiting.append((f"{prefix}{name}/", object_))
            else:
                yield prefix + name, reader.read_entry(mode, object_)


def _read_differing_files(
    objects: GitObjects, before: str, after: str
) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """Return the files of two trees, without those that are the same in both."""
    reader = _SourceReader(objects, after)
    found: tuple[dict[str, Entry], dict[str, Entry]] = {}, {}
    waiting: list[tuple[str, Sequence[str | None]]] = [("", (before, after))]
    while waiting:
        prefix, trees = waiting.pop()
        entries = [reader.read_tree(tree) if tree else {} for tree in trees]
        for name in {**entries[0], **entries[1]}:
            both = [each.get(name) for each in entries]
            if both[0] == both[1]:
                continue
            reader.count(prefix + name)
            for files, one in zip(found, both, strict=True):
                if one and one[0] != _FOLDER:
                    files[prefix + name] = reader.read_entry(*one)
            below = [one[1] if one and one[0] == _FOLDER else None for one in both]
            if any(below):
                waiting.append((f"{prefix}{name}/", below))
    return found


class _SourceReader:
    """Reads the trees and files of one source, and bounds them: trees that name each other could have no end."""

    def __init__(self, objects: GitObjects, root: str) -> None:
        self._objects = objects
        self._root = root
        self._names, self._bytes = 2 * MAX_FILES, 2 * MAX_BYTES
        self._trees: dict[str, Mapping[str, tuple[int, str]]] = {}

    def read_tree(self, tree: str) -> Mapping[str, tuple[int, str]]:
        if tree not in self._trees:
            try:
                self._trees[tree] = parse_tree(self._objects.get(tree, "tree"))
            except ArchiveCorrupt:
                raise
            except ValueError as error:
                raise ArchiveCorrupt(f"tree {tree} is damaged ({error})") from error
        return self._trees[tree]

    def read_entry(self, mode: int, object_: str) -> Entry:
        if mode not in (FILE, PROGRAM, LINK):
            raise ArchiveCorrupt(f"object {object_} has the mode {mode:o}, which no file of an agent has")
        data = self._objects.get(object_, "blob")
        self._bytes -= len(data)
        self._check()
        return Entry(data, mode)

    def count(self, name: str) -> None:
        """Count one file or folder."""
        self._names -= 1
        self._bytes -= len(name)
        self._check()

    def _check(self) -> None:
        if self._names < 0 or self._bytes < 0:
            raise ArchiveCorrupt(f"tree {self._root} holds more than an agent may have ({MAX_BYTES} bytes)")
