"""Paired differences: between two runs over the same tasks, between two groups of runs over the same seeds."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from dgm.comparison.grouping import Grouping, PairKey
from dgm.comparison.subjects import ComparedRun
from dgm.domain import TaskId, Verdict
from dgm.evaluation.exam import Comparison, compare_verdicts
from dgm.report.curve import CurvePoint
from dgm.stats import paired_bootstrap

SEARCH, HOLDOUT = "search tasks", "holdout tasks"
FEW = 6
"""Number of pairs below which an interval is rough, and says so."""


@dataclass(frozen=True, slots=True)
class TaskPairs:
    """The recommended agents of two runs on the tasks that both have a verdict on."""

    first: ComparedRun
    second: ComparedRun
    tasks: str
    """``SEARCH`` or ``HOLDOUT``."""
    found: Comparison


@dataclass(frozen=True, slots=True)
class SeedPairs:
    """A measure of two groups of runs, pair by pair."""

    measure: str
    first: str
    """The group whose values are subtracted."""
    second: str
    pairs: Mapping[PairKey, tuple[float, float]]
    """Map from the common settings of a pair to the first's and the second's value; empty without a pair."""
    mean: float | None
    """Mean of the second's values minus the first's; None without a pair."""
    interval: tuple[float, float] | None
    """The 95 % interval by the bootstrap over pairs; None with fewer than two."""


def pair_tasks(subjects: Sequence[ComparedRun]) -> Sequence[TaskPairs]:
    """Compare each run with the first, task by task; on the holdout tasks where both were examined on them."""
    first = subjects[0]
    found = []
    for second in subjects[1:]:
        if first.holdout is not None and second.holdout is not None:
            found.append(TaskPairs(first, second, HOLDOUT, _compare_verdicts(first.holdout, second.holdout)))
        found.append(TaskPairs(first, second, SEARCH, _compare_verdicts(first.search, second.search)))
    return found


def pair_seeds(grouping: Grouping) -> Sequence[SeedPairs]:
    """Compare each group of runs with the first, pair by pair, in each measure that some pair has."""
    names = list(grouping.groups)
    least = common_evaluations([each for members in grouping.groups.values() for each in members])
    measures: dict[str, Callable[[ComparedRun], float | None]] = {"holdout rate": _holdout_rate}
    if least:
        measures[f"lower bound at {least} evaluations"] = lambda each: point_at(each.curve, least).lower
        measures[f"rate on search tasks at {least} evaluations"] = lambda each: (
            point_at(each.curve, least).raw
        )
    found = []
    for second in names[1:]:
        for measure, value in measures.items():
            pairs = _pair_values(grouping, names[0], second, value)
            if pairs or measure != "holdout rate":
                found.append(_make_seed_pairs(measure, names[0], second, pairs))
    return found


def common_evaluations(subjects: Sequence[ComparedRun]) -> int:
    """Return the largest number of evaluations that every run with any has reached; 0 where none has any."""
    return min((each.curve[-1].evaluations for each in subjects if each.curve), default=0)


def point_at(curve: Sequence[CurvePoint], evaluations: int) -> CurvePoint:
    """Return the best agent after ``evaluations``; the first one known where there was none yet."""
    return curve[max(0, bisect_right(curve, evaluations, key=lambda point: point.evaluations) - 1)]


def _compare_verdicts(
    one: Mapping[TaskId, Verdict | None], two: Mapping[TaskId, Verdict | None]
) -> Comparison:
    return compare_verdicts([(task, verdict, two.get(task)) for task, verdict in one.items()])


def _holdout_rate(subject: ComparedRun) -> float | None:
    tally = subject.holdout_tally
    return tally.rate if tally else None


def _pair_values(
    grouping: Grouping, first: str, second: str, value: Callable[[ComparedRun], float | None]
) -> Mapping[PairKey, tuple[float, float]]:
    sides = [
        {
            grouping.keys[each.name]: found
            for each in grouping.groups[name]
            if each.curve and (found := value(each)) is not None
        }
        for name in (first, second)
    ]
    return {key: (one, sides[1][key]) for key, one in sides[0].items() if key in sides[1]}


def _make_seed_pairs(
    measure: str, first: str, second: str, pairs: Mapping[PairKey, tuple[float, float]]
) -> SeedPairs:
    differences = [two - one for one, two in pairs.values()]
    mean = fmean(differences) if differences else None
    interval = paired_bootstrap(differences) if len(differences) > 1 else None
    return SeedPairs(measure, first, second, pairs, mean, interval)
