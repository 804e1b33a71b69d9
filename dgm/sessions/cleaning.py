"""Removal of whole runs, and of what runs no longer need."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.archive.cleaning import CleaningResult, check_removable, clean_run, remove_run, run_bytes
from dgm.archive.finding import archive_folders, find_runs_in, locate_run
from dgm.archive.garbage import Leftover, find_dead_drafts, remove_leftover
from dgm.errors import UserError
from dgm.gateway.leftovers import find_dead_gateways

SCHEMA = 1
"""Version of the JSON documents."""


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Parts of runs that are no longer needed, found or removed."""

    cleaned: Sequence[CleaningResult]
    """Run by run."""
    beside: Sequence[Leftover]
    """Unfinished folders of runs, and folders of dead gateways."""
    failed: Sequence[str]
    """A reason for each thing beside the runs that could not be removed."""
    deleted: bool

    @property
    def total_bytes(self) -> int:
        """The space that is freed, or would be."""
        places = (*(one.found for one in self.cleaned), self.beside)
        return sum(left.size_bytes for found in places for left in found)

    def record(self) -> dict[str, Any]:
        """Return the document that ``dgm archive gc --json`` prints."""
        runs = [
            {
                "run": one.folder.name,
                "folder": str(one.folder),
                "left_alone": one.skipped or None,
                "found": _kind_records(one.found),
            }
            for one in self.cleaned
        ]
        return {
            "schema": SCHEMA,
            "deleted": self.deleted,
            "bytes": self.total_bytes,
            "runs": runs,
            "beside": _kind_records(self.beside),
            "failed": list(self.failed),
        }


@dataclass(frozen=True, slots=True)
class RemovableRun:
    """A run that may be removed, because nobody writes it."""

    folder: Path
    size_bytes: int

    def remove(self) -> Sequence[str]:
        """Remove all that dgm put into the folder; return the names of what stays, which is not dgm's.

        Raises:
            UserError: a process has begun to write the run, or something cannot be removed.
        """
        return remove_run(self.folder)

    def record(self, kept: Sequence[str]) -> dict[str, Any]:
        """Return the run as JSON, with the names of what stays."""
        return {
            "run": self.folder.name,
            "folder": str(self.folder),
            "bytes": self.size_bytes,
            "kept": list(kept),
        }


def clean_runs(names: Sequence[str], *, delete: bool) -> Cleanup:
    """Find what runs no longer need, and remove it if ``delete``.

    Args:
        names: of runs; if empty, all runs, and what lies beside them.
        delete: whether it is removed.

    Raises:
        UserError: there is no such run, or it is packed.
    """
    folders = [_run_folder(name) for name in names] or _all_runs()
    cleaned = [clean_run(folder, delete=delete) for folder in folders]
    beside: list[Leftover] = []
    failed: list[str] = []
    if not names:
        places = {place.resolve(): place for place in archive_folders()}
        beside = [
            *(left for place in places.values() for left in find_dead_drafts(place)),
            *find_dead_gateways(),
        ]
        failed = list(_remove_leftovers(beside)) if delete else []
    return Cleanup(cleaned, beside, failed, delete)


def find_removable(names: Sequence[str]) -> Sequence[RemovableRun]:
    """Return runs, each once, with their size on disk.

    Raises:
        UserError: there is no such run, it is packed, or a process is writing it.
    """
    folders = list({folder.resolve(): folder for folder in map(_run_folder, names)}.values())
    for folder in folders:
        check_removable(folder)
    return [RemovableRun(folder, run_bytes(folder)) for folder in folders]


def sum_by_kind(found: Sequence[Leftover]) -> dict[str, tuple[int, int]]:
    """Return kind → how many things of it, and their bytes."""
    kinds: dict[str, tuple[int, int]] = {}
    for left in found:
        count, size = kinds.get(left.what, (0, 0))
        kinds[left.what] = count + 1, size + left.size_bytes
    return kinds


def _kind_records(found: Sequence[Leftover]) -> list[dict[str, Any]]:
    kinds = sum_by_kind(found).items()
    return [{"what": what, "count": count, "bytes": size} for what, (count, size) in kinds]


def _run_folder(name: str) -> Path:
    place = locate_run(name)
    if not place.is_dir():
        raise UserError(f"{name}: is a packed run, which is one file; remove that file yourself")
    return place


def _all_runs() -> list[Path]:
    places = {place.resolve(): place for place in archive_folders()}
    # Hidden entries are unfinished; the search for leftovers finds them.
    return [run for place in places.values() for run in find_runs_in(place) if not run.name.startswith(".")]


def _remove_leftovers(beside: Sequence[Leftover]) -> Iterator[str]:
    """Remove leftovers; yield a reason for each that could not be removed."""
    for left in beside:
        try:
            remove_leftover(left)
        except OSError as error:
            yield f"{left.path}: {error.strerror}"
