"""The work of one agent on one repository of the user's: outside of any search, with nothing recorded.

Files are read and written byte for byte. Git is asked only for the list of files (``LocalRepository``). No filter,
attribute or setting (``core.autocrlf``, ``core.fileMode``, LFS) changes the files that an agent sees or that are
written back.
"""

import asyncio
import logging
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dgm.archive.git import LocalRepository, find_top
from dgm.archive.repository import apply_patch, patch
from dgm.archive.snapshots import from_folder, from_names, write_folder
from dgm.config import Settings
from dgm.domain import Snapshot, Usage
from dgm.errors import AgentFault, ArchiveCorrupt, Infrastructure, UserError
from dgm.processes import StandstillWatch
from dgm.protocols import Job, JobKind, SandboxEngine, Work
from dgm.worker.session import UsageJournal, open_solver

LIMIT_BYTES = 100_000_000
_SUBMODULE = b"160000 "


@dataclass(frozen=True, slots=True)
class UserFiles:
    """The files of a repository that its owner would commit."""

    files: Snapshot
    absent: tuple[str, ...] = ()
    """Parts that the agent does not see, a sentence each."""


def user_files(repo: Path) -> UserFiles:
    """Read tracked files and new ones that git does not ignore, those of checked-out submodules included.

    A folder that is in no git repository, or that a repository around it ignores, is taken whole. One that git
    does not read, whatever the reason, never is: it may hold files that its owner would not show.

    Raises:
        UserError: it is too large to be copied, or git refuses to read it.
    """
    try:
        top = find_top(repo)
        if top is None:
            return UserFiles(from_folder(repo, limit_bytes=LIMIT_BYTES))
        names, absent = _list_files(repo)
        if not names and top != repo.resolve():
            return UserFiles(from_folder(repo, limit_bytes=LIMIT_BYTES))
        found = from_names(repo, _without_linked(repo, names), limit_bytes=LIMIT_BYTES)
        return UserFiles(found, tuple(absent))
    except AgentFault as error:
        raise UserError(f"{repo}: {error}; give a smaller folder") from error
    except OSError as error:
        raise UserError(f"{repo}: cannot be read: {error}") from error


def find_ignored_around(repo: Path, names: Iterable[str]) -> frozenset[str]:
    """Return those of ``names`` that rules outside of the folder ignore.

    These are ``.git/info/exclude``, the person's own excludes file, and ``.gitignore`` files of the folders
    around. The rules of the folder's own files are applied elsewhere, to the files as the agent left them.
    """
    base = find_top(repo)
    if base is None:
        return frozenset()
    # Git stops when it is asked about a file of a submodule.
    asked = [name for name in sorted(names) if not _is_in_submodule(repo, name)]
    query = b"".join(b"./" + os.fsencode(name) + b"\0" for name in asked)
    words = ["check-ignore", "--no-index", "--verbose", "-z", "--stdin"]
    fields = LocalRepository(base).run_on_files(*words, cwd=repo, data=query).split(b"\0")[:-1]
    ignored = set()
    for source, pattern, name in zip(fields[::4], fields[2::4], fields[3::4], strict=True):
        rules = (base / os.fsdecode(source)).resolve()
        inside = rules.name == ".gitignore" and rules.is_relative_to(repo.resolve())
        if not inside and not pattern.startswith(b"!"):
            ignored.add(os.fsdecode(name[2:]))
    return frozenset(ignored)


def write_back(repo: Path, patch: bytes, names: Iterable[str]) -> None:
    """Apply a patch to the person's files, all of it or nothing.

    Args:
        repo: the folder of which the agent had a copy.
        patch: the change.
        names: the files that it creates, changes or removes.

    Raises:
        UserError: it does not fit, because the files have changed meanwhile, or they cannot be written.
    """
    touched = sorted(set(names))
    try:
        before = from_names(repo, _without_linked(repo, touched))
        after = apply_patch(before, patch)
    except ArchiveCorrupt as error:
        raise UserError(f"{repo}: the change does not apply any more ({error})") from error
    except AgentFault as error:
        raise UserError(f"{repo}: {error}") from error
    changed = {name: entry for name, entry in after.items() if before.get(name) != entry}
    removed = [name for name in before if name not in after]
    modes = {name: (repo / name).stat().st_mode for name in changed if (repo / name).is_file()}
    try:
        _replace(repo, changed, removed, modes)
    except (UserError, Infrastructure, OSError) as error:
        # Leave nothing half-written: restore the files.
        with suppress(UserError, Infrastructure, OSError):
            _replace(repo, before, [name for name in changed if name not in before], modes)
        raise UserError(f"{repo}: the change cannot be written: {error}") from error


def apply_command(repo: Path, file: Path) -> str:
    """Return the command that applies a patch file to the folder."""
    import shlex

    top = find_top(repo)
    if top is None or top == repo.resolve():
        return shlex.join(["git", "-C", str(repo), "apply", str(file)])
    prefix = repo.resolve().relative_to(top).as_posix()
    return shlex.join(["git", "-C", str(top), "apply", f"--directory={prefix}/", str(file)])


def _replace(repo: Path, written: Snapshot, removed: Sequence[str], modes: dict[str, int]) -> None:
    # Remove first: a folder may replace a file.
    for name in removed:
        (repo / name).unlink(missing_ok=True)
        for parent in (repo / name).parents:
            if parent == repo or any(parent.iterdir()):
                break
            parent.rmdir()
    write_folder(written, repo)
    for name, mode in modes.items():
        if name in written and not (repo / name).is_symlink():
            executable = 0o111 & (mode | (mode & 0o444) >> 2) if written[name].mode & 0o100 else 0
            (repo / name).chmod((mode & 0o666) | executable)


def _without_linked(repo: Path, names: Iterable[str]) -> list[str]:
    """Return the names without those that lead through a link, which to git are no files of the repository."""
    real: dict[str, bool] = {"": True}
    for name in names:
        parent = name.rpartition("/")[0]
        if parent not in real:
            folders = [repo / parent, *list((repo / parent).parents)[: parent.count("/")]]
            real[parent] = not any(folder.is_symlink() for folder in folders)
    return [name for name in names if real[name.rpartition("/")[0]]]


def _list_files(repo: Path) -> tuple[list[str], list[str]]:
    """Return the files below a work tree as git lists them, and sentences on the parts left out."""
    git = LocalRepository(find_top(repo) or repo)
    listed = git.run_on_files(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".", cwd=repo
    )
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    staged = git.run_on_files("ls-files", "-z", "--stage", "--", ".", cwd=repo).split(b"\0")
    modules = sorted({os.fsdecode(row.partition(b"\t")[2]) for row in staged if row.startswith(_SUBMODULE)})
    absent = [
        f"{name} is a repository of its own: the agent does not see it"
        for name in names
        if name.endswith("/")
    ]
    for module in modules:
        if _without_linked(repo, [f"{module}/.git"]) and (repo / module / ".git").exists():
            below, more = _list_files(repo / module)
            names += [f"{module}/{name}" for name in below]
            absent += [f"{module}/{one}" for one in more]
        else:
            absent.append(f"the submodule {module} is not checked out: the agent does not see it")
    return [name for name in names if not name.endswith("/") and name not in modules], absent


def _is_in_submodule(repo: Path, name: str) -> bool:
    folders = Path(name).parents
    return any((repo / folder / ".git").exists() for folder in folders if folder != Path())


log = logging.getLogger(__name__)

WORKDIR = "/work/repo"


@dataclass(frozen=True, slots=True)
class SolveRequest:
    """A problem in a repository of the user's."""

    repository: Path
    """Only asked for its ignored files."""
    files: Snapshot
    problem: str
    time_limit_s: float


@dataclass(frozen=True, slots=True)
class SolveResult:
    """The agent's work, its usage and the changed files."""

    work: Work
    usage: Usage
    changed: tuple[str, ...]
    """Files that the patch creates, changes or removes."""


async def solve(
    source: Snapshot, request: SolveRequest, engine: SandboxEngine, settings: Settings, journal: UsageJournal
) -> SolveResult:
    """Let an agent work on a copy in a sandbox.

    Args:
        source: the agent's own folder.
        request: the problem.
        engine: of the sandbox.
        settings: models, prices and limits; ``limits.usd`` is the whole limit on its cost.
        journal: the usage is added here, whatever the result.

    Raises:
        AgentFault: the agent's result cannot be used.
        Infrastructure: the sandbox or the model failed.
    """
    async with (
        open_solver(engine, settings, journal, source=source, patch_bytes=LIMIT_BYTES) as bench,
        StandstillWatch() as watch,
    ):
        job = Job(
            JobKind.SOLVE,
            request.problem,
            source,
            request.files,
            bench.spec.image,
            WORKDIR,
            request.time_limit_s,
        )
        work = await bench.work(job)
        if work.completed.exit_code and (stopped := watch.find_standstill()):
            log.warning("%s: the agent may have lacked time or answers by that", stopped)
    return await asyncio.to_thread(_drop_ignored_files, work, request, journal.usage)


def _drop_ignored_files(work: Work, request: SolveRequest, usage: Usage) -> SolveResult:
    """Drop files that the user's own git ignores; the workbench has applied the repository's own rules."""
    before, after = request.files, work.workspace
    dropped = find_ignored_around(request.repository, [name for name in after if name not in before])
    if dropped:
        after = {name: entry for name, entry in after.items() if name not in dropped}
        work = replace(work, workspace=after, patch=patch(before, after))
    changed = (name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return SolveResult(work, usage, tuple(sorted(changed)))
