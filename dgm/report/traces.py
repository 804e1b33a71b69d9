"""The number of traces named by a run's events that are still in its folder."""

import os
from collections.abc import Sequence
from pathlib import Path

from dgm.archive.run import Run

_NAMED = """
SELECT DISTINCT trace.value FROM events, json_each(events.body, '$.traces') AS trace
WHERE kind IN ('task_graded', 'agent_born', 'agent_stillborn', 'child_proposed') AND seq <= ?
"""


def missing_traces(run: Run) -> Sequence[str]:
    """Return a sentence if traces are missing; their content is not read (``dgm archive verify`` reads it)."""
    named = {digest for (digest,) in run.store.query(_NAMED, (run.tree.seq,))}
    there = len(named & _list_present(run.folder / "traces"))
    if there == len(named):
        return []
    return [f"not there: traces of evaluations and of agents' making ({there:,} of {len(named):,} are)"]


def _list_present(folder: Path) -> set[str]:
    """Return the digests of the traces in the folder.

    One look at each folder is cheaper than one at each trace.
    """
    found: set[str] = set()
    try:
        parts = [part for part in os.scandir(folder) if part.is_dir()]
    except OSError:
        return found
    for part in parts:
        with os.scandir(part.path) as files:
            found.update(part.name + file.name.removesuffix(".z") for file in files)
    return found
