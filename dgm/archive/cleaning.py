"""Removal of whole runs and of files that runs no longer need, never while a process may write them."""

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.garbage import (
    Leftover,
    disk_bytes,
    find_leftovers,
    find_nested_runs,
    is_own_part,
    remove_leftover,
)
from dgm.archive.history import LIVING, state, writer
from dgm.archive.lock import error_of_write, keep_writers_out
from dgm.archive.run import Run
from dgm.errors import DgmError, UserError


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
