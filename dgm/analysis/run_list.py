"""All runs below a folder, each as one row; an unreadable run is a row that says so and hides no other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.analysis.best import BestAgent
from dgm.analysis.best_cache import find_cached_best
from dgm.analysis.budget_use import BudgetTotals, BudgetUse, compute_budget_uses
from dgm.analysis.summary import tally_record
from dgm.archive.container import SUFFIX
from dgm.archive.finding import archive_folders
from dgm.archive.garbage import disk_bytes
from dgm.archive.overview import Overview, read_overview
from dgm.errors import ArchiveCorrupt, DgmError, UserError
from dgm.paths import NOT_RUNS, SWEEP_FILE

SCHEMA = 1
"""Version of the JSON document that lists runs."""
KINDS = ("evaluation", "simulation", "replay")
"""Keys of a run's configuration that mark it as something else than a search."""
_BROKEN = (DgmError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors that reading a file not written by dgm can cause."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run, a packed run, or a folder that should be one."""

    folder: Path
    state: str
    """The state as in ``dgm status``; or ``packed``, ``sweep``, ``not a run``, ``damaged`` or ``unreadable``."""
    problem: str = ""
    """Why something could not be read; empty if all could."""
    seen: Overview | None = None
    """None if the run could not be read."""
    best: BestAgent | None = None
    size_bytes: int | None = None
    """Bytes on disk; None if not asked for."""

    @property
    def name(self) -> str:
        """Name of the run, as typed in commands."""
        return self.folder.name

    @property
    def kind(self) -> str:
        """``search``, or another kind of run from ``KINDS``."""
        found = [kind for kind in KINDS if self.seen is not None and kind in self.seen.config]
        return found[0] if found else "search"

    @property
    def elsewhere(self) -> str:
        """The other host or container whose process writes the run, or may; empty if there is none."""
        holder = self.seen.writer if self.seen else None
        return "" if holder is None or holder.is_reachable else holder.host

    @property
    def pid(self) -> int | None:
        """Id of the process that writes the run, if it can be seen from here; None if there is none."""
        holder = self.seen.writer if self.seen else None
        return holder.pid if holder is not None and holder.is_reachable else None

    @property
    def never_written_here(self) -> bool:
        """Whether no process has written the run at this place: it was unpacked, or copied without its lock."""
        return self.seen is not None and not (self.folder / "events.lock").exists()

    @property
    def budget(self) -> list[BudgetUse]:
        """The use of each limit."""
        seen = self.seen
        if seen is None:
            return []
        taken = seen.evaluations + seen.budget.expansion_cost * seen.expansions
        return list(
            compute_budget_uses(
                seen.budget, BudgetTotals(taken, seen.agents, seen.usd, seen.tokens, seen.seconds)
            )
        )


@dataclass(frozen=True, slots=True)
class RunList:
    """Runs of one or more folders; the one that wrote its last event most recently comes first."""

    folders: Sequence[Path]
    rows: Sequence[RunRow]


def find_all_runs(folder: Path | None = None, *, sizes: bool = False) -> RunList:
    """Return all runs of a folder.

    Args:
        folder: where runs are kept; None: all folders in which runs are looked for.
        sizes: whether the disk space of each is added up, which looks at every file.

    Raises:
        UserError: there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give one that holds runs, or none for your archive")
    places = [folder] if folder else archive_folders()
    folders = list({place.resolve(): place for place in places}.values())
    rows = [row for place in folders for row in list_runs(place, sizes=sizes)]
    rows.sort(key=lambda row: row.seen.last_at if row.seen else 0.0, reverse=True)
    return RunList(folders, rows)


def list_runs(folder: Path, *, sizes: bool = False) -> Iterator[RunRow]:
    """Read every run directly below a folder, in the order of names; skip hidden folders.

    Args:
        folder: where runs are kept.
        sizes: whether the disk space of each is added up, which looks at every file.
    """
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in NOT_RUNS:
            continue
        if path.is_dir():
            yield read_row(path, disk_bytes(path) if sizes else None)
        elif path.suffix == SUFFIX:
            yield RunRow(path, "packed", size_bytes=disk_bytes(path) if sizes else None)


def read_row(folder: Path, size_bytes: int | None = None) -> RunRow:
    """Read one run."""
    if not (folder / "run.json").exists():
        if (folder / SWEEP_FILE).is_file():
            return RunRow(folder, "sweep", size_bytes=size_bytes)
        return RunRow(folder, "not a run", "it has no run.json", size_bytes=size_bytes)
    try:
        seen = read_overview(folder)
    except ArchiveCorrupt as error:
        return RunRow(folder, "damaged", str(error), size_bytes=size_bytes)
    except _BROKEN as error:
        said = str(error) if isinstance(error, DgmError | OSError) else f"{folder}: {error!r}"
        return RunRow(folder, "unreadable", said, size_bytes=size_bytes)
    try:
        best, problem = find_cached_best(folder, seen), ""
    except _BROKEN as error:
        best, problem = None, str(error) if isinstance(error, DgmError) else repr(error)
    return RunRow(folder, seen.state, problem, seen, best, size_bytes)


def row_record(row: RunRow) -> dict[str, Any]:
    """Return a row as JSON; unreadable values are null."""
    seen, best = row.seen, row.best
    settings = seen.config.get("settings") if seen else None
    settings = settings if isinstance(settings, dict) else {}
    policy = settings.get("policy")
    return {
        "run": row.name,
        "folder": str(row.folder),
        "kind": row.kind if seen else None,
        "state": row.state,
        "problem": row.problem or None,
        "pid": row.pid,
        "host": row.elsewhere or None,
        "written_here": not row.never_written_here if seen else None,
        "waiting": seen.waiting if seen else None,
        "created": (seen.created or None) if seen else None,
        "last_event_at": (seen.last_at or None) if seen else None,
        "events": seen.events if seen else None,
        "benchmark": settings.get("benchmark"),
        "policy": policy.get("name") if isinstance(policy, dict) else None,
        "seed": settings.get("seed"),
        "agents": seen.agents if seen else None,
        "evaluations": seen.evaluations if seen else None,
        "best": {
            "agent": best.agent,
            "own": tally_record(best.own),
            "lower_bound": round(best.lower_bound, 6),
        }
        if best
        else None,
        "spend": {"usd": round(seen.usd, 6), "tokens": seen.tokens} if seen else None,
        "seconds": round(seen.seconds, 1) if seen else None,
        "budget": {
            use.name: {"limit": use.limit, "used": round(use.used, 6), "left": round(use.left, 6)}
            for use in row.budget
        }
        if seen
        else None,
        "bytes": row.size_bytes,
    }
