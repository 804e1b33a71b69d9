"""Remove runs, and files that runs no longer need or that dead processes left, never while a process may write them.

A file that an event names, a file behind a link and a name that dgm does not create are never found.
"""

import contextlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.lock import STOP_FILE, error_of_write, keep_writers_out
from dgm.archive.repository import AgentRepository
from dgm.archive.run import INNER_RUNS, LIVING, Run, find_unborn, state, writer
from dgm.domain import CommitId
from dgm.errors import DgmError, UserError

OBJECT = "git objects that no agent needs"
FILE = "files that were not finished"
FOLDER = "folders that were not finished"
OLD_S = 3600.0
"""Age in seconds from which an unfinished folder is assumed to belong to a dead process."""
_UNFINISHED = re.compile(r"\.[0-9a-f]{12}|tmp_(obj|pack|idx|rev)_\w+")
_DRAFT = re.compile(r"\.(?P<run>.+)\.(new|[0-9a-f]{12})|\..+\.dgm\.[a-z0-9_]{8}")
_PARTS = frozenset(
    {
        "run.json",
        "run.db",
        "run.db-wal",
        "run.db-shm",
        "run.db-journal",
        "run.lock",
        "events.db",
        "events.db-wal",
        "events.db-shm",
        "events.lock",
        "agents.git",
    }
    | {
        "traces",
        *INNER_RUNS,
        "certificates",
        "approvals",
        "notes",
        "checks.json",
        "calls.json",
        "nodes.json",
        "live.json",
        STOP_FILE,
    }
)
"""Names of the parts of a run's folder, excluding the runs inside it."""
_PACKING = frozenset({"run", "pack"})


@dataclass(frozen=True, slots=True)
class Leftover:
    """One file or folder that nothing needs."""

    path: Path
    what: str
    size_bytes: int
    """Size on disk in bytes."""
    commits: tuple[CommitId, ...] = ()
    """For ``OBJECT``: the commits that the repository ``path`` must keep."""


def find_nested_runs(folder: Path) -> list[Path]:
    """Return the runs in a run's folder: its holdout evaluation, evaluations and live replays. Links are ignored."""
    return [path for path in sorted(folder.iterdir()) if _is_folder(path) and (path / "run.json").is_file()]


def is_own_part(path: Path) -> bool:
    """Return whether dgm creates this name in a run's folder: for a part, a nested run or an unfinished file."""
    if path.name in _PARTS or _UNFINISHED.fullmatch(path.name):
        return True
    return _is_folder(path) and (path / "run.json").is_file()


def find_leftovers(folder: Path) -> Sequence[Leftover]:
    """Find what one run no longer needs, excluding the runs in its folder; no process may write the run meanwhile.

    Raises:
        UserError, ArchiveCorrupt: the run cannot be read completely, so its needs are unknown.
    """
    with Run.open(folder) as run:
        commits = {agent.commit for agent in run.tree.agents}
        commits |= {child.commit for child in find_unborn(run).values()}
    return [
        *_find_unused_objects(folder / "agents.git", commits),
        *_find_unfinished_files(folder),
    ]


def find_dead_drafts(archive: Path) -> Iterator[Leftover]:
    """Yield folders of runs whose creation, packing, unpacking or removal died, once they are an hour old."""
    for path in sorted(archive.iterdir()) if archive.is_dir() else ():
        found = _DRAFT.fullmatch(path.name)
        if not found or not _is_folder(path):
            continue
        inside = list(path.iterdir())
        if not inside or not all(
            is_own_part(each) if found["run"] else each.name in _PACKING for each in inside
        ):
            continue
        size, newest = _measure_path(path)
        if time.time() - newest > OLD_S:
            yield Leftover(path, FOLDER, size)


def remove_leftover(left: Leftover) -> None:
    """Remove one leftover. A file that is gone, or was replaced by something else, is left alone.

    Raises:
        OSError: it cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError):
        if left.what == OBJECT:
            AgentRepository(left.path).remove_unneeded(left.commits)
        elif _is_folder(left.path):
            shutil.rmtree(left.path)
        elif stat.S_ISREG(left.path.lstat().st_mode):
            left.path.unlink()


@dataclass(frozen=True, slots=True)
class CleaningResult:
    """The removable files of one run, and the reason if the run was skipped or a file could not be removed."""

    folder: Path
    found: Sequence[Leftover] = ()
    skipped: str = ""
    """One line; empty if nothing was skipped."""


def clean_run(folder: Path, *, delete: bool) -> CleaningResult:
    """Find the files that a run and the runs in its folder no longer need; remove them if ``delete``."""
    try:
        if folder.is_symlink():
            raise UserError(f"a link; give the folder that it leads to: {folder.resolve()}")
        parts = [folder, *find_nested_runs(folder)]
        for part in parts:
            check_not_written(part)
        found = [left for part in parts for left in find_leftovers(part)]
        if delete and found:
            with _hold_all_locks(folder):
                # Search again: a process may have written meanwhile.
                found = [left for part in parts for left in find_leftovers(part)]
                for left in found:
                    remove_leftover(left)
    except (DgmError, OSError) as error:
        return CleaningResult(folder, skipped=str(error))
    return CleaningResult(folder, found)


def check_not_written(folder: Path) -> None:
    """Raise if a process writes the run, or may do so on another host.

    Raises:
        UserError: a process writes it, or may.
    """
    holder = writer(folder)
    if holder is None:
        return
    if holder.is_known:
        place = "" if holder.is_reachable else f" on {holder.host}"
        raise UserError(f"is being written by pid {holder.pid}{place}")
    with Run.open(folder) as run:
        is_alive = state(run) in LIVING
    if is_alive:
        raise UserError(
            f"may be running on {holder.host} (pid {holder.pid}); if it is a copy from there, delete "
            f"{folder / 'run.lock'} first"
        )


def check_removable(folder: Path) -> None:
    """Raise if a run must not be removed.

    Raises:
        UserError: it is a link, or a process writes it or a run in it, or may do so on another host.
    """
    if folder.is_symlink():
        raise UserError(f"{folder}: is a link to {folder.resolve()}; remove that, or the link by hand")
    for part in (folder, *find_nested_runs(folder)):
        try:
            check_not_written(part)
        except UserError as error:
            raise UserError(f"{part}: {error}") from error
        except DgmError:
            continue  # a damaged run may be removed; its lock decides


def remove_run(folder: Path) -> Sequence[str]:
    """Remove a run; return the names in its folder that are not dgm's. Those names and the folder stay.

    The run disappears at once. A process that dies during the removal leaves a hidden folder beside it.

    Raises:
        UserError: like ``check_removable``; or the folder is read-only.
        Infrastructure: the disk is failing.
    """
    check_removable(folder)
    kept = sorted(path.name for path in folder.iterdir() if not is_own_part(path))
    gone = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}")
    try:
        with _hold_all_locks(folder):
            if kept:
                gone.mkdir()
                parts = sorted(
                    filter(is_own_part, folder.iterdir()), key=lambda path: path.name != "run.json"
                )
                for part in parts:
                    part.rename(gone / part.name)
            else:
                folder.rename(gone)
            shutil.rmtree(gone)
    except OSError as error:
        if isinstance(error, DgmError):
            raise
        raise error_of_write(folder, error) from error
    return kept


def run_bytes(folder: Path) -> int:
    """Return the bytes that removing a run would free."""
    return sum(disk_bytes(path) for path in folder.iterdir() if is_own_part(path))


@contextmanager
def _hold_all_locks(folder: Path) -> Iterator[None]:
    with ExitStack() as held:
        for part in (folder, *find_nested_runs(folder)):
            held.enter_context(keep_writers_out(part / "run.lock"))
        yield


def disk_bytes(path: Path) -> int:
    """Return the disk space of a file, or of a folder with its contents, in bytes. Links are not followed."""
    return _measure_path(path)[0]


def _measure_path(path: Path) -> tuple[int, float]:
    """Return the disk space in bytes, and the time of the newest change."""
    total, newest, waiting = 0, 0.0, [path]
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):  # it disappeared meanwhile, or is unreadable
            found = place.lstat()
            total += found.st_blocks * 512
            newest = max(newest, found.st_mtime)
            if stat.S_ISDIR(found.st_mode):
                waiting += place.iterdir()
    return total, newest


def _find_unused_objects(repository: Path, commits: set[CommitId]) -> Iterator[Leftover]:
    sizes = AgentRepository(repository).find_unneeded(commits)
    if sizes:
        yield Leftover(repository, OBJECT, sum(sizes.values()), tuple(commits))


def _find_unfinished_files(folder: Path) -> Iterator[Leftover]:
    parts = filter(_is_folder, (folder / "approvals", folder / "agents.git"))
    inside = (Path(place) / name for part in parts for place, _, names in os.walk(part) for name in names)
    for path in sorted([*folder.iterdir(), *inside]):
        if _UNFINISHED.fullmatch(path.name) and _is_file(path):
            yield Leftover(path, FILE, disk_bytes(path))


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), path.parent.lstat().st_uid)
