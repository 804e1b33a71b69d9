"""The measures of a study: means over seeds, paired differences with intervals, and the evaluations a policy needs.

Every comparison is between trials in the same worlds. A seed counts where both policies have a result in every family
of the group. The mean of families is taken seed by seed, so that its interval rests on independent values too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from dgm.analysis.budgets import Reason
from dgm.simulate.contenders import ORACLE
from dgm.simulate.study import Cell, Study
from dgm.simulate.trial import SHARES, Result, Trial
from dgm.stats import paired_bootstrap

EQUAL = 1e-9
"""Scores that differ by less are a tie."""
MEAN = "mean of families"
RESAMPLES = 999
"""Of seeds, for the interval of a speed."""
_FULL = (Reason.GOAL.value, Reason.NOTHING_LEFT.value, Reason.LIMIT.value)
"""How a trial ends whose measures are those of a whole search."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean of paired differences, with its 95 % interval."""

    mean: float
    low: float | None
    """None with fewer than two seeds."""
    high: float | None


@dataclass(frozen=True, slots=True)
class Pairs:
    """The numbers of paired trials with a higher, an equal and a lower final score than the reference's."""

    higher: int
    equal: int
    lower: int


@dataclass(frozen=True, slots=True)
class FamilyResult:
    """The measures of one policy in a family, or in the mean of families."""

    policy: str
    family: str
    seeds: int
    final: float
    """Mean true score of the agent that is recommended at the end."""
    difference: Difference
    """Of the final score, to the reference's."""
    won: float
    """Share of paired trials with a higher final score than the reference's; ties count half."""
    won_low: float | None
    """Of its 95 % interval, over seeds; None with fewer than two."""
    won_high: float | None
    pairs: Pairs
    area: float
    """Under the anytime curve."""
    area_difference: float
    speed: float | None
    """Evaluations that the reference needs for a final quality, over those that this policy needs for it: for the
    reference's where this policy gets there, else for this policy's; None where the searches began with it. Read
    off the two mean curves; it is no mean over searches, some of which never get there."""
    speed_low: float | None
    """Of its 95 % interval, by the percentile bootstrap over seeds; None where a draw of seeds has no speed."""
    speed_high: float | None
    evaluations_needed: float | None
    """For the reference's final quality, read off the two mean curves; None where this policy's never gets there, 0
    where the searches began with it."""
    regret: float
    """Against the highest true score in its own tree."""
    oracle_regret: float | None
    """Against the oracle of clade metaproductivity; None where that was not tried."""
    at_root: float
    """Share of trials that ended at the root."""
    stuck: float
    """Share of trials that ended at the root where the tree held better agents."""
    cut_short: float
    """Share of trials that ended because the infrastructure failed too often, with budget left."""
    agents: float
    expansions: float
    decision_ms: float
    root: float
    """Mean true score of the agents that the searches began with."""
    curve: tuple[float, ...]
    """Mean, at ``SHARES`` of the budget."""


Group = Mapping[int, Sequence[Result]]
"""Seed → the results in each of the group's families."""


def standings(
    study: Study, cell: Cell, results: Mapping[Trial, Result], reference: str
) -> Sequence[FamilyResult]:
    """Return the standing of every policy in every family, then in the mean of families where there are several.

    Policies without a seed in common with the reference are left out.
    """
    groups: list[tuple[str, tuple[str, ...]]] = [(family, (family,)) for family in study.families]
    if len(study.families) > 1:
        groups.append((MEAN, study.families))
    found: list[FamilyResult] = []
    for name, families in groups:
        by_policy = {
            policy: _group(study, cell, results, policy, families)
            for policy in dict.fromkeys((*study.policies, reference, ORACLE))
        }
        for policy in study.policies:
            common = [seed for seed in by_policy[policy] if seed in by_policy[reference]]
            if common:
                own, other = ([by_policy[who][seed] for seed in common] for who in (policy, reference))
                oracle = [by_policy[ORACLE][seed] for seed in common if seed in by_policy[ORACLE]]
                complete = oracle if len(oracle) == len(common) else []
                found.append(_standing((policy, name), cell.budget, own, other, complete))
    return found


def _group(
    study: Study, cell: Cell, results: Mapping[Trial, Result], policy: str, families: Sequence[str]
) -> Group:
    group: dict[int, Sequence[Result]] = {}
    for seed in study.seeds:
        found = [results.get(cell.trial(policy, family, seed)) for family in families]
        there = [result for result in found if result is not None]
        if len(there) == len(families):
            group[seed] = there
    return group


Rows = Sequence[Sequence[Result]]
"""Per seed: the results in each of the group's families."""


def _standing(name: tuple[str, str], budget: int, own: Rows, other: Rows, oracle: Rows) -> FamilyResult:
    mine, theirs, best = _all(own), _all(other), _all(oracle)
    final = fmean(result.final for result in mine)
    slowest, fastest = _speed_interval(own, other, budget)
    curve, other_curve = _points(mine, budget), _points(theirs, budget)
    won = [
        [_won(a.final - b.final) for a, b in zip(*rows, strict=True)] for rows in zip(own, other, strict=True)
    ]
    share, counts = _difference([fmean(row) for row in won]), Counter(chain.from_iterable(won))
    return FamilyResult(
        policy=name[0],
        family=name[1],
        seeds=len(own),
        final=final,
        difference=_difference(
            [_mean(row) - _mean(against) for row, against in zip(own, other, strict=True)]
        ),
        won=share.mean,
        won_low=share.low,
        won_high=share.high,
        pairs=Pairs(counts[1.0], counts[0.5], counts[0.0]),
        area=fmean(result.area for result in mine),
        area_difference=fmean(a.area - b.area for a, b in zip(mine, theirs, strict=True)),
        speed=_speed(curve, other_curve),
        speed_low=slowest,
        speed_high=fastest,
        evaluations_needed=reached(curve, other_curve[-1][1]),
        regret=fmean(result.regret for result in mine),
        oracle_regret=fmean(result.final for result in best) - final if best else None,
        at_root=fmean(result.recommended == 0 for result in mine),
        stuck=fmean(result.stuck for result in mine),
        cut_short=fmean(result.ended not in _FULL for result in mine),
        agents=fmean(result.agents for result in mine),
        expansions=fmean(result.expansions for result in mine),
        decision_ms=fmean(result.decision_ms for result in mine),
        root=fmean(result.root for result in mine),
        curve=mean_curve(mine),
    )


def _all(rows: Rows) -> list[Result]:
    return [result for row in rows for result in row]


def _mean(row: Sequence[Result]) -> float:
    return fmean(result.final for result in row)


def _won(difference: float) -> float:
    return 0.5 if abs(difference) < EQUAL else float(difference > 0)


def _difference(differences: Sequence[float]) -> Difference:
    mean = fmean(differences)
    if len(differences) < 2:
        return Difference(mean, None, None)
    return Difference(mean, *paired_bootstrap(differences))


def mean_curve(results: Iterable[Result]) -> tuple[float, ...]:
    """Return the mean of the results' curves, point by point, at ``SHARES`` of the budget."""
    return tuple(fmean(values) for values in zip(*(result.curve for result in results), strict=True))


def _points(results: Sequence[Result], budget: int) -> list[tuple[float, float]]:
    """Return the mean curve as points (evaluations, score), from the root on."""
    start = fmean(result.root for result in results)
    spent = (share * budget for share in SHARES)
    return [(0.0, start), *zip(spent, mean_curve(results), strict=True)]


def _speed_interval(own: Rows, other: Rows, budget: int) -> tuple[float | None, float | None]:
    seeds = len(own)
    if seeds < 2:
        return None, None
    draws = np.random.default_rng(0).multinomial(seeds, [1 / seeds] * seeds, size=RESAMPLES) / seeds
    spent = [x for x, _ in _points(own[0], budget)]
    curves = (draws @ _scores(rows, budget) for rows in (own, other))
    pairs = zip(*(each.tolist() for each in curves), strict=True)
    speeds = [
        _speed(list(zip(spent, mine, strict=True)), list(zip(spent, theirs, strict=True)))
        for mine, theirs in pairs
    ]
    found = [speed for speed in speeds if speed is not None]
    if len(found) < RESAMPLES:
        return None, None
    low, high = np.quantile(found, [0.025, 0.975]).tolist()
    return low, high


def _scores(rows: Rows, budget: int) -> NDArray[np.float64]:
    """Return each seed's mean curve; shape (seeds, points)."""
    return np.array([[score for _, score in _points(row, budget)] for row in rows])


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
