"""Free disk space: remove whole runs, and what runs no longer need."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dgm.archive.cleaning import check_removable, clean_run, remove_run, run_bytes
from dgm.archive.finding import archive_folders, find_runs_in, locate_run
from dgm.archive.garbage import Leftover, find_dead_drafts, remove_leftover
from dgm.errors import UserError
from dgm.gateway.leftovers import find_dead_gateways


class LeftoverSum(BaseModel):
    """Leftovers of one kind."""

    model_config = ConfigDict(frozen=True)
    what: str
    """The kind, such as ``traces that no event names``."""
    count: int
    bytes: int


class CleanedRun(BaseModel):
    """One run, cleaned or removed."""

    model_config = ConfigDict(frozen=True)
    run: str
    folder: str
    bytes: int
    """Space that is freed, or would be."""
    leftovers: tuple[LeftoverSum, ...] = ()
    """What the run no longer needs."""
    left_alone: str | None = None
    """The reason if the run was not cleaned."""
    kept: tuple[str, ...] = ()
    """Names of the user's own files in the folder of a removed run; they stay, with the folder."""


class Cleanup(BaseModel):
    """What was removed, or would be."""

    model_config = ConfigDict(frozen=True)
    deleted: bool
    bytes: int
    """Space that is freed, or would be."""
    runs: tuple[CleanedRun, ...]
    beside: tuple[LeftoverSum, ...] = ()
    """Unfinished folders of runs, and folders of dead gateways."""
    failed: tuple[str, ...] = ()
    """A reason for each thing beside the runs that could not be removed."""

    @property
    def exit_code(self) -> int:
        """1 if something could not be removed."""
        return 1 if self.failed else 0


def clean(*runs: str | Path, whole: bool = False, delete: bool = False) -> Cleanup:
    """Find what runs no longer need, and remove it with ``delete``.

    That is what processes left that died or were stopped: traces that no event names, git objects that no agent needs,
    unfinished files. Runs that are being written, and those that cannot be read, are left alone.

    Args:
        runs: Names or folders of runs; without any, all runs and what lies beside them.
        whole: Take these runs themselves; files in their folders that are not dgm's stay.
        delete: Remove it; without this it is only shown.

    Raises:
        UserError: there is no such run, it is packed, or a run to be removed is being written.
    """
    folders = list({folder.resolve(): folder for folder in map(_run_folder, runs)}.values())
    if whole:
        return _remove(folders, delete)
    places = {place.resolve(): place for place in archive_folders()}.values()
    beside: list[Leftover] = []
    if not runs:
        # Hidden entries are unfinished; the search for leftovers finds them.
        folders = [run for place in places for run in find_runs_in(place) if not run.name.startswith(".")]
        beside = [*(left for place in places for left in find_dead_drafts(place)), *find_dead_gateways()]
    cleaned = []
    for result in (clean_run(folder, delete=delete) for folder in folders):
        sums = _sum_by_kind(result.found)
        cleaned.append(
            CleanedRun(
                run=result.folder.name,
                folder=str(result.folder),
                bytes=sum(kind.bytes for kind in sums),
                leftovers=sums,
                left_alone=result.skipped or None,
            )
        )
    sums, failed = _sum_by_kind(beside), []
    for left in beside if delete else ():
        try:
            remove_leftover(left)
        except OSError as error:
            failed.append(f"{left.path}: {error.strerror}")
    total = sum(run.bytes for run in cleaned) + sum(kind.bytes for kind in sums)
    return Cleanup(deleted=delete, bytes=total, runs=tuple(cleaned), beside=sums, failed=tuple(failed))


def _remove(folders: Sequence[Path], delete: bool) -> Cleanup:
    if not folders:
        raise UserError("name the runs that are to be removed", argument="whole")
    for folder in folders:
        check_removable(folder)
    removed = [
        CleanedRun(
            run=folder.name,
            folder=str(folder),
            bytes=run_bytes(folder),
            kept=tuple(remove_run(folder)) if delete else (),
        )
        for folder in folders
    ]
    return Cleanup(deleted=delete, bytes=sum(run.bytes for run in removed), runs=tuple(removed))


def _sum_by_kind(leftovers: Sequence[Leftover]) -> tuple[LeftoverSum, ...]:
    kinds: dict[str, list[int]] = {}
    for left in leftovers:
        kinds.setdefault(left.what, []).append(left.size_bytes)
    return tuple(LeftoverSum(what=what, count=len(sizes), bytes=sum(sizes)) for what, sizes in kinds.items())


def _run_folder(name: str | Path) -> Path:
    path = locate_run(str(name))
    if not path.is_dir():
        raise UserError(f"{name}: is a packed run, which is one file; remove that file yourself")
    return path
