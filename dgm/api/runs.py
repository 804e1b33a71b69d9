"""All runs of an archive, for programs."""

from pathlib import Path

from dgm.views.run_list import RunListView


def runs(folder: str | Path | None = None) -> RunListView:
    """Return all runs; the one that wrote its last event most recently comes first.

    A damaged run is a row with a ``problem`` and hides no other.

    Args:
        folder: where runs are kept; None: ``$DGM_ARCHIVE`` and ``./archive``.

    Raises:
        UserError: there is no such folder.
    """
    return RunListView.load(None if folder is None else Path(folder))
