"""A comparison from the names of runs to its record, its picture and its table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dgm.archive.run import Run
from dgm.comparison.curves import CurveGroup, curve_csv, curve_picture
from dgm.comparison.grouping import VARIANT, Grouping, group
from dgm.comparison.naming import NamedRuns, find_runs
from dgm.comparison.notes import comparison_notes
from dgm.comparison.pairs import SeedPairs, TaskPairs, pair_seeds, pair_tasks
from dgm.comparison.record import comparison_record
from dgm.comparison.subjects import ComparedRun, check_comparable, read_subject
from dgm.errors import UserError


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Several runs on one suite: what each came to, and paired differences with intervals."""

    subjects: Sequence[ComparedRun]
    grouping: Grouping | None
    """None: each run is compared with the first one, task by task."""
    tasks: Sequence[TaskPairs]
    """Each run with the first, where there are no groups."""
    seeds: Sequence[SeedPairs]
    """Each group with the first, seed by seed."""
    notes: Sequence[str]
    """Notes on its limits: runs that are not over, settings that differ."""

    def record(self) -> dict[str, Any]:
        """Return the document that ``dgm compare --json`` prints."""
        return comparison_record(self.subjects, self.grouping, self.tasks, self.seeds, self.notes)

    def draw_curves(self) -> bytes:
        """Return the curves of the best agents as SVG."""
        about = "; ".join(str(subject.identity) for subject in self.subjects)
        return curve_picture(self._curve_groups()).file(about)

    def write_curves(self) -> tuple[bytes, int]:
        """Return the curves as CSV, and the number of rows."""
        return curve_csv(self._curve_groups(), grouped=self.grouping is not None)

    def _curve_groups(self) -> list[CurveGroup]:
        alone = {subject.name: [subject] for subject in self.subjects}
        groups = self.grouping.groups if self.grouping else alone
        return [CurveGroup(name, members) for name, members in groups.items()]


def compare_runs(names: Sequence[str], group_by: str | None = None) -> RunComparison:
    """Compare runs.

    Args:
        names: of runs, of sweeps (all their runs), or patterns such as ``policies-*``.
        group_by: a setting, such as ``policy``: pair runs of the same seed by it. None: the variants of sweeps that
            have several, else no groups.

    Raises:
        UserError: a name stands for no run, the runs are of different suites, or cannot be grouped so.
        ArchiveCorrupt: one is damaged.
    """
    named = find_runs(names)
    subjects = _read_subjects(named)
    check_comparable(subjects)
    grouping = _choose_grouping(named, subjects, group_by)
    return RunComparison(
        subjects=subjects,
        grouping=grouping,
        tasks=[] if grouping else pair_tasks(subjects),
        seeds=pair_seeds(grouping) if grouping else [],
        notes=comparison_notes(named, subjects, grouping),
    )


def _read_subjects(named: NamedRuns) -> Sequence[ComparedRun]:
    if not named.runs:
        raise UserError(f"none of these runs was begun yet: {', '.join(named.not_begun)}")
    subjects = []
    for each in named.runs:
        with Run.open(each.folder) as run:
            subjects.append(read_subject(run, each.variant))
    return subjects


def _choose_grouping(named: NamedRuns, subjects: Sequence[ComparedRun], by: str | None) -> Grouping | None:
    """Return the requested groups; by default, the variants of sweeps that have several."""
    if by is None:
        variants = {each.variant for each in named.runs}
        if None in variants or len(variants) < 2:
            return None
        by = VARIANT
    return group(subjects, by)
