"""The measures of a study: means over worlds, paired differences with intervals, and the evaluations a policy needs.

Every comparison is between trials in the same worlds. The mean of families is taken world by world, so that its
interval rests on independent values too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean

from pydantic import BaseModel, ConfigDict

from dgm.analysis.budgets import Reason
from dgm.simulation.policies import ORACLE
from dgm.simulation.study import Study
from dgm.simulation.trial import SHARES, Result, Trial
from dgm.stats import paired_bootstrap

EQUAL = 1e-9
"""Scores that differ by less are a tie."""
MEAN = "mean of families"
_FULL = (Reason.GOAL.value, Reason.NOTHING_LEFT.value, Reason.LIMIT.value)
"""How a trial ends whose measures are those of a whole search."""


class Standing(BaseModel):
    """The measures of one policy in a family, or in the mean of families."""

    model_config = ConfigDict(frozen=True)

    policy: str
    family: str
    worlds: int
    """Number of paired worlds."""
    final: float
    """Mean true score of the agent that is recommended at the end."""
    difference: float
    """Mean of the paired differences of the final score, to the reference's."""
    difference_low: float | None
    """Of its 95 % interval, over worlds; None with fewer than two."""
    difference_high: float | None
    won: float
    """Share of paired trials with a higher final score than the reference's; ties count half."""
    won_low: float | None
    """Of its 95 % interval, over worlds; None with fewer than two."""
    won_high: float | None
    higher: int
    """Paired trials with a higher final score than the reference's."""
    equal: int
    lower: int
    area: float
    """Under the anytime curve: the mean score of the recommended agent over the budget."""
    speed: float | None
    """Evaluations that the reference needs for a final quality, over those that this policy needs for it: for the
    reference's where this policy gets there, else for this policy's; None where the searches began with it. Read
    off the two mean curves; it is no mean over searches, some of which never get there."""
    regret: float
    """Against the highest true score in its own tree."""
    oracle_regret: float | None
    """Against the oracle; None where that was not tried."""
    stuck: float
    """Share of trials that ended at the root where the tree held better agents."""
    cut_short: float
    """Share of trials that ended because the infrastructure failed too often, with budget left."""
    agents: float
    expansions: float
    root: float
    """Mean true score of the agents that the searches began with."""
    curve: tuple[float, ...]
    """Mean score of the recommended agent at ``SHARES`` of the budget."""


Rows = Sequence[Sequence[Result]]
"""Per world: the results in each of the group's families."""


def standings(study: Study, results: Mapping[Trial, Result], reference: str) -> tuple[Standing, ...]:
    """Return the standing of every policy in every family, then in the mean of families where there are several."""
    groups: list[tuple[str, tuple[str, ...]]] = [(family, (family,)) for family in study.families]
    if len(study.families) > 1:
        groups.append((MEAN, study.families))

    def rows(policy: str, families: Sequence[str]) -> Rows:
        return [[results[study.trial(policy, f, world)] for f in families] for world in study.worlds]

    return tuple(
        _standing(
            (policy, name),
            study.budget,
            rows(policy, families),
            rows(reference, families),
            rows(ORACLE, families) if ORACLE in study.policies else [],
        )
        for name, families in groups
        for policy in study.policies
    )


def _standing(name: tuple[str, str], budget: int, own: Rows, other: Rows, oracle: Rows) -> Standing:
    mine, theirs, best = _all(own), _all(other), _all(oracle)
    final = fmean(result.final for result in mine)
    won = [
        [_won(a.final - b.final) for a, b in zip(*rows, strict=True)] for rows in zip(own, other, strict=True)
    ]
    share, share_low, share_high = _mean_interval([fmean(row) for row in won])
    difference, low, high = _mean_interval(
        [
            fmean(a.final - b.final for a, b in zip(*rows, strict=True))
            for rows in zip(own, other, strict=True)
        ]
    )
    counts = Counter(chain.from_iterable(won))
    return Standing(
        policy=name[0],
        family=name[1],
        worlds=len(own),
        final=final,
        difference=difference,
        difference_low=low,
        difference_high=high,
        won=share,
        won_low=share_low,
        won_high=share_high,
        higher=counts[1.0],
        equal=counts[0.5],
        lower=counts[0.0],
        area=fmean(result.area for result in mine),
        speed=_speed(_points(mine, budget), _points(theirs, budget)),
        regret=fmean(result.regret for result in mine),
        oracle_regret=fmean(result.final for result in best) - final if best else None,
        stuck=fmean(result.stuck for result in mine),
        cut_short=fmean(result.ended not in _FULL for result in mine),
        agents=fmean(result.agents for result in mine),
        expansions=fmean(result.expansions for result in mine),
        root=fmean(result.root for result in mine),
        curve=_mean_curve(mine),
    )


def _all(rows: Rows) -> list[Result]:
    return [result for row in rows for result in row]


def _won(difference: float) -> float:
    return 0.5 if abs(difference) < EQUAL else float(difference > 0)


def _mean_interval(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    low, high = paired_bootstrap(values) if len(values) > 1 else (None, None)
    return fmean(values), low, high


def _mean_curve(results: Sequence[Result]) -> tuple[float, ...]:
    return tuple(fmean(values) for values in zip(*(result.curve for result in results), strict=True))


def _points(results: Sequence[Result], budget: int) -> list[tuple[float, float]]:
    """Return the mean curve as points (evaluations, score), from the root on."""
    start = fmean(result.root for result in results)
    spent = (share * budget for share in SHARES)
    return [(0.0, start), *zip(spent, _mean_curve(results), strict=True)]


def _speed(own: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]]) -> float | None:
    for goal in (other[-1][1], own[-1][1]):
        mine, theirs = reached(own, goal), reached(other, goal)
        if mine and theirs:
            return theirs / mine
    return None


def reached(points: Sequence[tuple[float, float]], goal: float) -> float | None:
    """Return where a curve of straight lines first reaches ``goal``; None where it does not."""
    before = points[0]
    for point in points:
        if point[1] >= goal - EQUAL:
            rise = point[1] - before[1]
            share = (goal - before[1]) / rise if rise > EQUAL else 1.0
            return before[0] + share * (point[0] - before[0])
        before = point
    return None
