"""What all steps of a tree share, weighed by marginal likelihood.

How much of a gain children keep (ρ), how widely they scatter (q) and how far lines drift apart (d) are weighed on a
grid; what an edit does on the mean (μ̄) is integrated out at each of its points.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dgm.policies.lineage.constants import (
    DRIFT_CENTRE,
    DRIFT_KEPT,
    DRIFT_SPREAD,
    DRIFT_VARIANCES,
    HANDED_OUT_NOISE_CENTRE,
    HANDED_OUT_NOISE_SPREAD,
    HANDED_OUT_RETENTION_LEAST,
    LEAST_SOUND,
    MEAN_DRIFT,
    MEAN_DRIFT_SPREAD,
    NOISE_CENTRE,
    NOISE_SPREAD,
    NOISES,
    RETENTION_LEAST,
    RETENTION_SLOPE,
    RETENTIONS,
    ROOT_DRIFT_SCALE,
    ROOT_VARIANCE,
)
from dgm.policies.lineage.steps import Filtered, Information, Step, filtered, message

Array = NDArray[np.float64]

RHO, Q, DRIFT = (grid.ravel() for grid in np.meshgrid(RETENTIONS, NOISES, DRIFT_VARIANCES))


def belief(retention_least: float, noise_centre: float, noise_spread: float) -> Array:
    """Log prior of each point of the grid, up to a constant."""
    return (
        np.maximum(-RETENTION_SLOPE * (1.0 - RHO), retention_least)
        - 0.5 * (np.log(Q / noise_centre) / noise_spread) ** 2
        - 0.5 * (np.log(DRIFT / DRIFT_CENTRE) / DRIFT_SPREAD) ** 2
    )


SEARCHING = belief(RETENTION_LEAST, NOISE_CENTRE, NOISE_SPREAD)
"""What is believed before data where a search decides."""
HANDING_OUT = belief(HANDED_OUT_RETENTION_LEAST, HANDED_OUT_NOISE_CENTRE, HANDED_OUT_NOISE_SPREAD)
"""Where an agent is handed out."""


class Facts(NamedTuple):
    """A tree and what its agents' verdicts say; a parent's index is below its child's."""

    parents: Sequence[int]
    depths: Sequence[int]
    precisions: Sequence[float]
    etas: Sequence[float]
    sound: Sequence[float]
    """The chance that an agent's verdicts say anything of its parent."""


class Laws(NamedTuple):
    """What all steps of a tree share."""

    rho: float
    """Share of a gain over the seed that a child keeps."""
    q: float
    """Variance of a child's skill about what was expected of it."""
    drift: float
    """Variance of what is new in a child's drift."""
    mean_drift: float
    """What every step adds on the mean."""


def step_at(laws: Laws, anchor: float) -> Step[float]:
    """The model's step for these parameters; gains are measured from the skill ``anchor``."""
    rho, q, drift, mean_drift = laws
    return Step(rho, q, (1.0 - rho) * anchor, (1.0 - DRIFT_KEPT) * mean_drift, drift)


def expected_before_data(prior: Array = SEARCHING) -> Laws:
    """By the prior alone."""
    return _average(prior, np.full_like(prior, MEAN_DRIFT))


def learned(facts: Facts, anchor: float, prior: Array = SEARCHING) -> Laws:
    """Over the grid the weighted median of ρ (interpolated), geometric mean of q, and means of d and μ̄.

    Not the mean of ρ: what is left of the belief that most of a gain is lost can halve the worth of every line. Not
    the geometric mean of d: verdicts seldom tell it, and a search that takes it for small stays where the score is high
    although what descendants can gain is less there.

    The likelihood is the exponential of a parabola in μ̄, which three of its values give; with the prior
    N(-0.05, 0.1²) it is integrated exactly. If μ̄ stood still in this, edits that harm a little on the mean would be
    taken for lost gains (a small ρ): the best children lie above what is expected of them, and their own children
    below.
    """
    means = MEAN_DRIFT + MEAN_DRIFT_SPREAD * np.array([-1.0, 0.0, 1.0])
    step = Step(RHO, Q, (1.0 - RHO) * anchor, (1.0 - DRIFT_KEPT) * means[:, None], DRIFT)
    low, middle, high = log_likelihood(facts, step, means)
    # In units of the prior's spread: middle + slope z - bend z² / 2, and the prior's - z² / 2.
    slope = (high - low) / 2.0
    precision = 1.0 + np.maximum(2.0 * middle - high - low, 0.0)
    evidence = middle + 0.5 * slope**2 / precision - 0.5 * np.log(precision)
    return _average(prior + evidence, MEAN_DRIFT + MEAN_DRIFT_SPREAD * slope / precision)


def log_likelihood(facts: Facts, step: Step[Array], means: Array) -> Array:
    """Of the linearised verdicts, states integrated out, up to a constant.

    Σ r {½ HᵀQMH - ½ ln det(I + JQ) - ½ cᵀNc + (MH)ᵀc} over children, and the root's ½ hᵀSh - ½ ln det S⁻¹ - ½ ln v -
    ½ μ̄²/v with v the variance of its drift before data. One upward pass, a generation of the tree at a time.

    Args:
        facts: the tree.
        step: its parameters, arrays of shape (points,); ``c2`` of shape (means, 1), as it follows ``means``.
        means: values of the mean drift, shape (means,).

    Returns:
        Shape (means, points).
    """
    order, parents, starts = _generations(facts)
    points = len(step.rho)
    # Precisions do not depend on the mean drift, so they have no axis for it.
    precise = np.zeros((3, 1, len(order), points))
    towards = np.zeros((2, len(means), len(order), points))
    precise[0] = np.array(facts.precisions)[order, None]
    towards[0] = np.array(facts.etas)[order, None]
    info = (*precise, *towards)
    sound = np.array(facts.sound)
    sound = np.where(sound >= LEAST_SOUND, sound, 0.0)[order, None]
    step = step._replace(c2=step.c2[:, None])
    total = np.zeros((len(means), points))
    for first, last in zip(starts[-2:0:-1], starts[:1:-1], strict=True):
        own: Information[Array] = tuple(column[:, first:last] for column in info)
        of = filtered(own, step)
        total += (sound[first:last] * _terms(own, of, step)).sum(axis=1)
        above = parents[first:last]
        heads = np.flatnonzero(np.diff(above, prepend=-1))
        for column, said in zip(info, message(of, step, sound[first:last]), strict=True):
            column[:, above[heads]] += (
                said if len(heads) == len(above) else np.add.reduceat(said, heads, axis=1)
            )
    return total + _root_term([column[:, 0] for column in info], step, means[:, None])


def _generations(facts: Facts) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
    """Agents by generation, siblings side by side; where each one's parent stands; where generations start."""
    depths = np.array(facts.depths)
    parents = np.array(facts.parents)
    # Sorted by generation, an agent's place is found before its children's: siblings need only their parent's id.
    order = np.lexsort((parents, depths))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    starts = np.searchsorted(depths[order], np.arange(depths.max() + 2))
    return order, place[parents[order]], starts.tolist()


def _terms(info: Information[Array], of: Filtered[Array], step: Step[Array]) -> Array:
    _, _, _, h1, h2 = info
    det, n11, n12, n22, m1, m2 = of
    _, q, c1, c2, drift, _ = step
    shift1 = c1 * (m1 - 0.5 * c1 * n11 - c2 * n12)
    shift2 = c2 * (m2 - 0.5 * c2 * n22)
    terms: Array = 0.5 * (h1 * q * m1 + h2 * drift * m2 - np.log(det)) + shift1 + shift2
    return terms


def _root_term(info: Sequence[Array], step: Step[Array], mean_drift: Array) -> Array:
    j11, j12, j22, h1, h2 = info
    variance = ROOT_DRIFT_SCALE * step.drift
    k11, k22 = j11 + 1.0 / ROOT_VARIANCE, j22 + 1.0 / variance
    h2 = h2 + mean_drift / variance
    det = k11 * k22 - j12 * j12
    term: Array = 0.5 * (k22 * h1 * h1 - 2.0 * j12 * h1 * h2 + k11 * h2 * h2) / det - 0.5 * np.log(det)
    term -= 0.5 * (np.log(variance) + mean_drift**2 / variance)
    return term


def _average(log_weights: Array, mean_drifts: Array) -> Laws:
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    by_share = weights.reshape(len(NOISES), len(RETENTIONS), len(DRIFT_VARIANCES)).sum(axis=(0, 2))
    middles = np.cumsum(by_share) - by_share / 2
    return Laws(
        float(np.interp(0.5, middles, RETENTIONS)),
        float(np.exp(weights @ np.log(Q))),
        float(weights @ DRIFT),
        float(weights @ mean_drifts),
    )
