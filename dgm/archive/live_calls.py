"""The model calls of a run that are open now, in a file beside the log for other processes."""

from dataclasses import asdict, dataclass
from pathlib import Path

from dgm.archive.live_file import remove_live_file, write_live_file
from dgm.bounded_reading import read_json
from dgm.errors import ArchiveCorrupt

FILE = "calls.json"
_LAST = 1e11
"""Largest time that is read, in Unix seconds."""


@dataclass(frozen=True, slots=True)
class LiveCalls:
    """The open calls of one moment."""

    under_way: int
    """Number of calls that their model is working on."""
    waiting: int
    """Number of calls that wait: for the budget, for a place at the provider, or for the next try."""
    oldest_wait: float | None
    """Unix time since which the oldest of them waits; None if none does."""


def write_live_calls(folder: Path, calls: LiveCalls) -> None:
    """Put the calls into the run's folder, in one step.

    Raises:
        OSError: the folder cannot be written.
    """
    write_live_file(folder / FILE, asdict(calls))


def read_live_calls(folder: Path) -> LiveCalls | None:
    """Return the calls in a run's folder; None if there are none that can be read."""
    try:
        record = read_json(folder / FILE)
        since = record["oldest_wait"]
        oldest = None if since is None else float(since)
        if oldest is not None and not 0.0 <= oldest <= _LAST:
            return None
        return LiveCalls(int(record["under_way"]), int(record["waiting"]), oldest)
    except (OSError, ArchiveCorrupt, ValueError, KeyError, TypeError):
        return None


def remove_live_calls(folder: Path) -> None:
    """Remove the file where there is one and the folder can be written."""
    remove_live_file(folder / FILE)
