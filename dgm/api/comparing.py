"""Comparisons of several runs, from a program (``dgm compare``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgm.api.results import Results
from dgm.archive.durable import write_durably
from dgm.blocking import in_python
from dgm.comparison.comparing import RunComparison, compare_runs
from dgm.errors import UserError
from dgm.report.targets import check_file

Named = str | Path | Results
"""A run by its name, its path or opened; the name of a sweep; or a pattern such as ``policies-*``."""


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A comparison of several runs, in pairs."""

    found: RunComparison = field(repr=False)
    record: Mapping[str, Any] = field(repr=False)
    """The document that ``dgm compare --json`` prints."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes on its limits: runs that are not over, settings that differ."""
        return self.found.notes

    def save(self, file: str | Path) -> Path:
        """Write the curves of the best agents as a picture (``.svg``) or a table (``.csv``), and return the path.

        Raises:
            UserError: the name ends otherwise, or the file cannot be written.
        """
        target = Path(file)
        with in_python():
            check_file(target, "file")
        if target.suffix == ".svg":
            write_durably(target, self.found.draw_curves())
        elif target.suffix == ".csv":
            write_durably(target, self.found.write_curves()[0])
        else:
            raise UserError(f"{target}: curves are written as .svg or .csv")
        return target


def compare(runs: Named | Sequence[Named], *, group_by: str | None = None) -> ComparisonView:
    """Compare runs: what each came to, paired differences with intervals, curves of the best agent.

    Without groups each run is compared with the first one task by task; with groups, each group with the first, seed
    by seed.

    Args:
        runs: one or several of names, paths, opened runs, sweeps (all their runs) and patterns.
        group_by: a setting, such as ``policy``; None: the variants of a sweep, if it has several.

    Raises:
        UserError: a name stands for no run, the runs are of different suites, or cannot be grouped so.
        ArchiveCorrupt: one is damaged.
    """
    named = [runs] if isinstance(runs, str | Path | Results) else runs
    with in_python():
        found = compare_runs(
            [str(each.folder if isinstance(each, Results) else each) for each in named], group_by
        )
    return ComparisonView(found, found.record())
