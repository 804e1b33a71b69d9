"""``agents.git``: an agent is a commit, its parents are the commit's parents, its ref is ``agents/<id>``.

Git runs only to read, on object ids, with no configuration except the one given here. No hook, filter, attribute, text
conversion or submodule of an agent's tree takes effect on the host.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dgm.archive.durable import write_durably
from dgm.archive.git_process import GitObjects, environment, run_git
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
from dgm.domain import ActionId, AgentId, CommitId, Entry, Snapshot
from dgm.errors import ArchiveCorrupt

if TYPE_CHECKING:
    import git

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


class AgentRepository:
    """The bare repository of a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

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
        return {ActionId(action): commit for action, commit in self._read_refs("waiting")}

    @property
    def _waiting(self) -> Path:
        return self._folder / "refs" / "heads" / "waiting"

    def source(self, commit: CommitId) -> Snapshot:
        """Return an agent's source, byte for byte.

        Raises:
            ArchiveCorrupt: the commit, or an object in it, is missing or damaged.
        """
        with GitObjects(self._folder) as objects:
            return dict(read_files(objects, objects.tree_of(commit)))

    def tree_of(self, commit: CommitId) -> str:
        """Return the id of the commit's content; equal for agents with equal source."""
        with GitObjects(self._folder) as objects:
            return objects.tree_of(commit)

    def trees_of(self, commits: Iterable[CommitId]) -> Iterator[str]:
        """Yield ``tree_of`` for many commits in order, using one process."""
        with GitObjects(self._folder) as objects:
            for commit in commits:
                yield objects.tree_of(commit)

    def diff(self, before: CommitId, after: CommitId) -> bytes:
        """Return the patch from one agent's source to another's, including binary files."""
        return run_git(self._folder, *_DIFF, before, after)

    def fsck(self) -> None:
        """Check every object.

        Raises:
            ArchiveCorrupt: git finds a fault; the message has the first one.
        """
        run_git(self._folder, "fsck", "--full", "--no-dangling", "--no-progress")

    def refs(self) -> Mapping[AgentId, CommitId]:
        """Return the commits that the refs ``agents/<id>`` point at."""
        return {AgentId(agent): commit for agent, commit in self._read_refs("agents")}

    def _read_refs(self, kind: str) -> Iterator[tuple[int, CommitId]]:
        wanted = "--format=%(refname:lstrip=3) %(objectname)"
        lines = run_git(self._folder, "for-each-ref", wanted, f"refs/heads/{kind}")
        pairs = (line.split() for line in lines.decode().splitlines())
        return ((int(number), CommitId(commit)) for number, commit in pairs)

    def handle(self) -> "git.Repo":
        """Return the repository as a GitPython object, for histories and blames; close it after use."""
        import git

        repository = git.Repo(self._folder)
        repository.git.update_environment(**environment())
        return repository


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
        with GitObjects(folder) as objects:
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
    """
    waiting = [("", root)]
    while waiting:
        prefix, tree = waiting.pop()
        for name, (mode, object_) in parse_tree(objects.get(tree, "tree")).items():
            if seen is not None:
                if object_ in seen:
                    continue
                seen.add(object_)
            if mode == 0o40000:
                waiting.append((f"{prefix}{name}/", object_))
            else:
                yield prefix + name, Entry(objects.get(object_, "blob"), mode)
