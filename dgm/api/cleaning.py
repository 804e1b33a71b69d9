"""Free disk space: remove whole runs, and what runs no longer need."""

from collections.abc import Callable, Mapping
from pathlib import Path

from dgm.archive.cleanup import (
    check_removable,
    clean_run,
    find_dead_drafts,
    remove_leftover,
    remove_run,
    run_bytes,
)
from dgm.archive.finding import archive_folders, find_runs_in, locate_run
from dgm.errors import UserError
from dgm.gateway.leftovers import find_dead_gateways
from dgm.views.machine import CleanedRun, CleaningView


def clean_runs() -> CleaningView:
    """Remove what no run needs, and what dead processes left beside the runs.

    Runs that are being written, and those that cannot be read, are left alone.
    """
    places = {place.resolve(): place for place in archive_folders()}.values()
    # Hidden entries are unfinished; the search for leftovers finds them.
    folders = [run for place in places for run in find_runs_in(place) if not run.name.startswith(".")]
    results = [clean_run(folder, delete=True) for folder in folders]
    runs = [
        CleanedRun(
            run=result.folder.name,
            folder=result.folder,
            bytes=sum(leftover.size_bytes for leftover in result.found),
            skipped=result.skipped,
        )
        for result in results
        if result.found or result.skipped
    ]
    beside = [*(left for place in places for left in find_dead_drafts(place)), *find_dead_gateways()]
    failed = []
    for left in beside:
        try:
            remove_leftover(left)
        except OSError as error:
            failed.append(f"{left.path}: {error.strerror}")
    total = sum(run.bytes for run in runs) + sum(left.size_bytes for left in beside)
    return CleaningView(bytes=total, runs=tuple(runs), failed=tuple(failed))


def remove_runs(*names: str, confirm: Callable[[Mapping[Path, int]], bool]) -> CleaningView:
    """Remove whole runs; files that are not dgm's stay, with their folder.

    Args:
        names: of the runs.
        confirm: is asked with the folders and their sizes in bytes.

    Raises:
        UserError: there is no such run, it is packed, or a process is writing it.
    """
    folders = list({folder.resolve(): folder for folder in map(_run_folder, names)}.values())
    for folder in folders:
        check_removable(folder)
    sizes = {folder: run_bytes(folder) for folder in folders}
    if not confirm(sizes):
        return CleaningView(bytes=0, runs=())
    removed = [
        CleanedRun(run=folder.name, folder=folder, bytes=size, kept=tuple(remove_run(folder)))
        for folder, size in sizes.items()
    ]
    return CleaningView(bytes=sum(sizes.values()), runs=tuple(removed))


def _run_folder(name: str) -> Path:
    path = locate_run(name)
    if not path.is_dir():
        raise UserError(f"{name}: is a packed run, which is one file; remove that file yourself")
    return path
