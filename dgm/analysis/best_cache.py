"""Best agents of runs in the user's cache: a recommendation may take seconds, and changes with the log alone."""

import contextlib
import hashlib
from pathlib import Path

from pydantic import BaseModel

from dgm import __version__
from dgm.analysis.best import BestAgent, find_best
from dgm.archive.durable import write_durably
from dgm.archive.overview import Overview
from dgm.archive.run import Run
from dgm.errors import DgmError
from dgm.paths import cache_folder

MOST_EVENTS = 100_000
"""Length of a log, in events, up to which an unknown best agent is computed; this takes some seconds."""


class _Cached(BaseModel):
    """The content of a file of the cache."""

    key: str
    best: BestAgent


def find_cached_best(folder: Path, seen: Overview) -> BestAgent | None:
    """Return the best agent of a run, as of ``best_of``; None if it has none, or its log is too long to compute it.

    Args:
        folder: the run.
        seen: the overview that was read just now.

    Raises:
        DgmError: the run cannot be read.
    """
    if not seen.agents:
        return None
    place = _cache_file(seen)
    known = _read_cached(place, seen)
    if known is not None or seen.events > MOST_EVENTS:
        return known
    with Run.open(folder) as run:
        found = find_best(run)
        if place and run.tree.seq == seen.events:
            # A cache that cannot be written is no fault.
            with contextlib.suppress(DgmError, OSError):
                record = _Cached(key=_cache_key(seen), best=found)
                write_durably(place, record.model_dump_json().encode())
    return found


def _cache_file(seen: Overview) -> Path | None:
    if not seen.id:
        return None
    try:
        return cache_folder("best") / f"{hashlib.sha256(seen.id.encode()).hexdigest()[:32]}.json"
    except OSError:
        return None


def _cache_key(seen: Overview) -> str:
    # Two copies of a run that continued apart have the same id, but different times of their last events.
    return f"{__version__} {seen.events} {seen.last_at!r}"


def _read_cached(place: Path | None, seen: Overview) -> BestAgent | None:
    try:
        found = _Cached.model_validate_json(place.read_bytes()) if place else None
    except (OSError, ValueError):
        return None
    return found.best if found and found.key == _cache_key(seen) else None
