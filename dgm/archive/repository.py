"""``agents.git``: an agent is a commit, its parents are the commit's parents, its name is ``agents/<id>``.

Git itself is only ever run to read, on object ids, with no configuration but what is given here; no hook,
filter, attribute, text conversion or submodule of an agent's tree takes effect on the host.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dgm.archive.durable import write_durably
from dgm.archive.git_process import GitObjects, environment, run_git
from dgm.archive.lock import unwritable
from dgm.archive.objects import (
    changed,
    durable_writer,
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
        """Makes an empty one."""
        make_repository(folder)
        return cls(folder)

    def commit(self, files: Snapshot, parents: Sequence[CommitId]) -> CommitId:
        """Stores an agent's source, durably; equal content with equal parents gives the same id everywhere.

        Anything in a ``.git`` (in any spelling) is dropped, since git cannot hold it.

        Raises:
            Infrastructure: the disk is full or failing.
        """
        put = durable_writer(self._folder / "objects")
        return put_commit(put_tree(storable(files), put), parents, put)

    def name(self, agent: AgentId, commit: CommitId) -> None:
        """Points ``refs/heads/agents/<id>`` at a commit, durably, before the event that names the agent."""
        write_durably(self._folder / "refs" / "heads" / "agents" / str(agent), f"{commit}\n".encode())

    def name_waiting(self, action: ActionId, commit: CommitId) -> None:
        """Points ``waiting/<action>`` at the commit of a child that is no agent yet, durably."""
        write_durably(self._waiting / str(action), f"{commit}\n".encode())

    def forget_waiting(self, action: ActionId) -> None:
        """Removes what ``name_waiting`` made; nothing where it is gone.

        Raises:
            UserError: the folder is read-only.
            Infrastructure: the disk is failing.
        """
        path = self._waiting / str(action)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error

    def waiting_refs(self) -> Mapping[ActionId, CommitId]:
        """What ``waiting/<action>`` point at."""
        return {ActionId(action): commit for action, commit in self._refs("waiting")}

    @property
    def _waiting(self) -> Path:
        return self._folder / "refs" / "heads" / "waiting"

    def source(self, commit: CommitId) -> Snapshot:
        """An agent's source, byte for byte.

        Raises:
            ArchiveCorrupt: the commit, or something in it, is missing or damaged.
        """
        with GitObjects(self._folder) as objects:
            return dict(_files(objects, objects.tree_of(commit)))

    def tree_of(self, commit: CommitId) -> str:
        """The id of the commit's content; equal for agents with equal source."""
        with GitObjects(self._folder) as objects:
            return objects.tree_of(commit)

    def trees_of(self, commits: Iterable[CommitId]) -> Iterator[str]:
        """``tree_of`` for many commits, in their order, through one process."""
        with GitObjects(self._folder) as objects:
            for commit in commits:
                yield objects.tree_of(commit)

    def diff(self, before: CommitId, after: CommitId) -> bytes:
        """The patch from one agent's source to another's, binary files included."""
        return run_git(self._folder, *_DIFF, before, after)

    def fsck(self) -> None:
        """Checks every object.

        Raises:
            ArchiveCorrupt: the first thing that git finds wrong.
        """
        run_git(self._folder, "fsck", "--full", "--no-dangling", "--no-progress")

    def refs(self) -> Mapping[AgentId, CommitId]:
        """What ``agents/<id>`` point at."""
        return {AgentId(agent): commit for agent, commit in self._refs("agents")}

    def _refs(self, kind: str) -> Iterator[tuple[int, CommitId]]:
        wanted = "--format=%(refname:lstrip=3) %(objectname)"
        lines = run_git(self._folder, "for-each-ref", wanted, f"refs/heads/{kind}")
        pairs = (line.split() for line in lines.decode().splitlines())
        return ((int(number), CommitId(commit)) for number, commit in pairs)

    def parents_of(self, commit: CommitId) -> tuple[CommitId, ...]:
        """The parents that the commit itself names."""
        with GitObjects(self._folder) as objects:
            return objects.parents_of(commit)

    def handle(self) -> "git.Repo":
        """The repository as GitPython's object, for histories and blames; close it when done."""
        import git

        repository = git.Repo(self._folder)
        repository.git.update_environment(**environment())
        return repository


def tree_id(files: Snapshot) -> str:
    """What ``AgentRepository.tree_of`` would say of a snapshot, without storing it."""
    return put_tree(storable(files), object_id)


def patch(before: Snapshot, after: Snapshot) -> bytes:
    """The patch between two snapshots, binary files included; empty when they are equal.

    Anything in a ``.git`` is left out. Needs no archive.

    Raises:
        UserError: a name that cannot be in a folder, or git is not installed.
    """
    old, new = changed(storable(before), storable(after))
    if not old and not new:
        return b""
    with _scratch() as folder:
        put = scratch_writer(folder / "objects")
        return run_git(folder, *_DIFF, put_tree(old, put), put_tree(new, put))


def applying_patch(before: Snapshot, after: Snapshot) -> bytes:
    """The ``patch`` between two snapshots, once it was seen that it makes the one of the other.

    Raises:
        ArchiveCorrupt: it does not apply, or something else comes out; one line.
        UserError: a name that cannot be in a folder, or git is not installed.
    """
    old, new = changed(storable(before), storable(after))
    if not old and not new:
        return b""
    with _scratch() as folder:
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


def applied(files: Snapshot, patch: bytes) -> Snapshot:
    """Return a snapshot with a patch applied, byte for byte: git's attributes and configuration are ignored.

    Raises:
        ArchiveCorrupt: it does not apply; one line.
        UserError: a name that cannot be in a folder, or git is not installed.
    """
    with _scratch() as folder:
        run_git(folder, "read-tree", put_tree(storable(files), scratch_writer(folder / "objects")))
        try:
            run_git(folder, "apply", "--cached", "--whitespace=nowarn", "-", given=patch)
        except ArchiveCorrupt as error:
            raise ArchiveCorrupt(str(error).partition(": git apply: ")[2] or str(error)) from error
        tree = run_git(folder, "write-tree").decode().strip()
        with GitObjects(folder) as objects:
            return dict(_files(objects, tree))


@contextmanager
def _scratch() -> Iterator[Path]:
    """A repository that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="dgm-") as name:
        folder = Path(name)
        for part in ("objects", "refs"):
            (folder / part).mkdir()
        (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
        yield folder


def _files(objects: GitObjects, root: str) -> Iterator[tuple[str, Entry]]:
    waiting = [("", root)]
    while waiting:
        prefix, tree = waiting.pop()
        for name, (mode, object_) in parse_tree(objects.get(tree, "tree")).items():
            if mode == 0o40000:
                waiting.append((f"{prefix}{name}/", object_))
            else:
                yield prefix + name, Entry(objects.get(object_, "blob"), mode)
