"""Runs as files, and their removal, from a program (``dgm archive``)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dgm.api.records import Records, records_of
from dgm.api.search import Evolution
from dgm.archive.finding import find_packed
from dgm.archive.unpacking import choose_folder
from dgm.archive.unpacking import unpack as unpack_run
from dgm.archive.verifying import verify_named
from dgm.blocking import in_python
from dgm.sessions.cleaning import clean_runs, find_removable


def unpack(file: str | Path, folder: str | Path | None = None) -> Evolution:
    """Make an ordinary run of a packed one, and open it; ``addresses`` says where its settings would send keys.

    Args:
        file: a ``.dgm`` file, by its path or its name under ``./archive`` or ``$DGM_ARCHIVE``.
        folder: a new one; None: under the run's own name where runs are kept.

    Raises:
        UserError: the folder exists, or the file is no packed run or is made by a newer dgm.
        ArchiveCorrupt: the file is damaged.
    """
    with in_python():
        found = find_packed(str(file))
        target = choose_folder(found) if folder is None else Path(folder)
        unpack_run(found, target)
        return Evolution.open(target)


def verify(name: str | Path) -> Mapping[str, int]:
    """Check every checksum, trace, commit and ref of a run or a packed run; return what was checked → how many.

    Args:
        name: as for ``open``.

    Raises:
        UserError: there is none.
        ArchiveCorrupt: the first thing wrong.
    """
    with in_python():
        return verify_named(str(name))


def clean(*names: str | Path, delete: bool = False) -> Mapping[str, Any]:
    """Find, or remove, what runs no longer need: what processes left that died or were stopped.

    Args:
        names: of runs, or paths; none: all runs, and what lies beside them.
        delete: remove it; nothing is removed without.

    Returns:
        The document that ``dgm archive gc --json`` prints: bytes, and what was found in each run.

    Raises:
        UserError: there is no such run, or it is packed.
    """
    with in_python():
        return clean_runs([str(name) for name in names], delete=delete).record()


def remove(*names: str | Path, dry_run: bool = False) -> Records:
    """Remove whole runs, without asking; files that are not dgm's stay, with their folder.

    Args:
        names: of runs, or paths.
        dry_run: only say what would be freed.

    Returns:
        A row for each run: its folder, its bytes on disk, and the names of what stays.

    Raises:
        UserError: there is no such run, it is packed, or a process is writing it; nothing is removed.
    """
    with in_python():
        found = find_removable([str(name) for name in names])
        return records_of([run.record([] if dry_run else run.remove()) for run in found])
