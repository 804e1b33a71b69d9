"""The parameters that all steps of a tree share, weighed on a grid by marginal likelihood.

They say how much of a gain children keep (ρ), how widely they scatter (q), and how far lines drift
apart (d).
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
    LEAST_SOUND,
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
PRIOR: Array = (
    np.maximum(-RETENTION_SLOPE * (1.0 - RHO), RETENTION_LEAST)
    - 0.5 * (np.log(Q / NOISE_CENTRE) / NOISE_SPREAD) ** 2
    - 0.5 * (np.log(DRIFT / DRIFT_CENTRE) / DRIFT_SPREAD) ** 2
)


class Facts(NamedTuple):
    """A tree and the evidence of its agents' verdicts; a parent's index is below its child's."""

    parents: Sequence[int]
    depths: Sequence[int]
    precisions: Sequence[float]
    etas: Sequence[float]
    sound: Sequence[float]
    """The chance that an agent's verdicts say anything of its parent."""


class Laws(NamedTuple):
    """The parameters that all steps of a tree share."""

    rho: float
    """Share of a gain over the seed that a child keeps."""
    q: float
    """Variance of a child's skill about what was expected of it."""
    drift: float
    """Variance of what is new in a child's drift."""


def step_at(laws: Laws, anchor: float, mean_drift: float) -> Step[float]:
    """Return the model's step for these parameters; gains are measured from the skill ``anchor``."""
    rho, q, drift = laws
    return Step(rho, q, (1.0 - rho) * anchor, (1.0 - DRIFT_KEPT) * mean_drift, drift)


def expected_before_data() -> Laws:
    """Return the parameters by the prior alone."""
    return _average(PRIOR)


def learned(facts: Facts, anchor: float, mean_drift: float) -> Laws:
    """Return the weighted median of ρ (interpolated), geometric mean of q and mean of d over the grid.

    The mean of ρ is not used: a remaining belief that most of a gain is lost can halve the worth of every line. The
    geometric mean of d is not used either. Verdicts seldom determine d, and a search that believes it small stays where
    the score is high, although descendants can gain less there.
    """
    step = Step(RHO, Q, (1.0 - RHO) * anchor, (1.0 - DRIFT_KEPT) * mean_drift, DRIFT)
    return _average(PRIOR + log_likelihood(facts, step, mean_drift))


def log_likelihood(facts: Facts, step: Step[Array], mean_drift: float) -> Array:
    """Return the log likelihood of the linearised verdicts, states integrated out, up to a constant.

    There is one value for each of the step's parameters. It is Σ r {½ HᵀQMH - ½ ln det(I + JQ) - ½ cᵀNc + (MH)ᵀc} over
    children, plus the root's ½ hᵀSh - ½ ln det S⁻¹ - ½ ln v - ½ μ̄²/v. Here v is the variance of the root's drift before
    data. The function makes one upward pass, one generation of the tree at a time.
    """
    order, parents, starts = _generations(facts)
    points = len(step.rho)
    info = np.zeros((5, len(order), points))
    info[0] = np.array(facts.precisions)[order, None]
    info[3] = np.array(facts.etas)[order, None]
    sound = np.array(facts.sound)
    sound = np.where(sound >= LEAST_SOUND, sound, 0.0)[order, None]
    total = np.zeros(points)
    for first, last in zip(starts[-2:0:-1], starts[:1:-1], strict=True):
        rows = slice(first, last)
        own: Information[Array] = tuple(info[:, rows])
        of = filtered(own, step)
        total += (sound[rows] * _terms(own, of, step)).sum(axis=0)
        above = parents[rows]
        heads = np.flatnonzero(np.diff(above, prepend=-1))
        for column, said in zip(info, message(of, step, sound[rows]), strict=True):
            column[above[heads]] += said if len(heads) == len(above) else np.add.reduceat(said, heads)
    return total + _root_term(info[:, 0], step, mean_drift)


def _generations(facts: Facts) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
    """Return the agents by generation, the place of each one's parent, and where generations start.

    Siblings stand side by side.
    """
    depths = np.array(facts.depths)
    parents = np.array(facts.parents)
    # Generations are the first key, so the parent's id is enough to put siblings side by side.
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


def _root_term(info: Array, step: Step[Array], mean_drift: float) -> Array:
    j11, j12, j22, h1, h2 = info
    variance = ROOT_DRIFT_SCALE * step.drift
    k11, k22 = j11 + 1.0 / ROOT_VARIANCE, j22 + 1.0 / variance
    h2 = h2 + mean_drift / variance
    det = k11 * k22 - j12 * j12
    term: Array = 0.5 * (k22 * h1 * h1 - 2.0 * j12 * h1 * h2 + k11 * h2 * h2) / det - 0.5 * np.log(det)
    term -= 0.5 * (np.log(variance) + mean_drift**2 / variance)
    return term


def _average(log_weights: Array) -> Laws:
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    by_share = weights.reshape(len(NOISES), len(RETENTIONS), len(DRIFT_VARIANCES)).sum(axis=(0, 2))
    middles = np.cumsum(by_share) - by_share / 2
    return Laws(
        float(np.interp(0.5, middles, RETENTIONS)),
        float(np.exp(weights @ np.log(Q))),
        float(weights @ DRIFT),
    )
