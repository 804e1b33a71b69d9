"""All runs of an archive, for programs (``dgm list``)."""

from pathlib import Path

from dgm.analysis.run_list import find_all_runs, row_record
from dgm.api.arguments import path_of
from dgm.api.records import Records, records_of


def runs(folder: str | Path | None = None, *, sizes: bool = False) -> Records:
    """Return a row for each run; the one that wrote its last event most recently comes first.

    A row holds what ``dgm list --json`` prints of a run: name, folder, state, age, best agent, spend, budget left. A
    damaged run is a row with a ``problem`` and hides no other.

    Args:
        folder: where runs are kept; None: ``$DGM_ARCHIVE`` and ``./archive``.
        sizes: add up the disk space of each run in bytes, which looks at every file.

    Raises:
        UserError: there is no such folder.
    """
    found = find_all_runs(path_of(folder), sizes=sizes)
    return records_of([row_record(row) for row in found.rows])
