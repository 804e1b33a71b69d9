"""The expected rate of an agent that was chosen because its observed rate was the best."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dgm.domain import Tally

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POINTS = 48
"""Of the grid, in each of its two directions."""
ZOOMS = 5
FAINT = 18.0
"""Natural logarithms below its peak the posterior counts as nothing: 15 parts in a thousand million."""
NARROWEST = 1e-3
"""Least κ^-½ looked at: rates that scatter by less than a thousandth are equal here."""


def best_of_many(chosen: Tally, everyone: Iterable[Tally]) -> float:
    """Return the expected rate of an agent that was chosen from ``everyone`` for its tally; ``everyone`` includes it.

    The observed rate of the best agent is too high, because luck helped to choose it (the winner's curse). In the model
    the agents' true rates are draws from one Beta(μκ, (1 - μ)κ), and each tally is binomial given its rate. The result
    is the chosen agent's posterior mean (μκ + resolved) / (κ + n), averaged over the posterior of μ and κ given all
    tallies. A posterior mean needs no further correction for choosing, whatever the rule that chose.

    Source: B. Efron, "Tweedie's formula and selection bias", JASA 106 (2011), p. 1602. The model and the prior (uniform
    in μ and κ^-½) are from A. Gelman et al., Bayesian Data Analysis, 3rd ed. (2013), section 5.3, with κ at least 1 so
    that the prior is proper. With few agents, the likeliest κ alone could make them all alike; averaging over κ avoids
    that.

    The model assumes that rates scatter around one mean without order. An archive that gets better as it grows, or a
    few lineages far above the rest, breaks this assumption. Then the result is too low for the best agent, not too
    high. The model also assumes that each agent's tasks are a fair sample of the tasks.

    Raises:
        ValueError: nobody in ``everyone`` was evaluated.
    """
    import numpy as np

    counts = Counter((tally.resolved, tally.unresolved) for tally in everyone if tally.n)
    if not counts:
        raise ValueError("best_of_many: nobody was evaluated")
    resolved, unresolved = np.array(list(counts), dtype=np.float64).T
    mean, concentration, weight = _posterior(resolved, unresolved, np.array(list(counts.values())))
    expected = (mean * concentration + chosen.resolved) / (concentration + chosen.n)
    return float(np.sum(weight * expected))


def _posterior(
    resolved: "NDArray[np.float64]", unresolved: "NDArray[np.float64]", agents: "NDArray[np.int64]"
) -> "tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]":
    """Return a grid over the bulk of the posterior: μ, κ and the weight of each point; weights sum to 1."""
    import numpy as np

    low, high = np.array([0.0, NARROWEST]), np.array([1.0, 1.0])
    for _ in range(ZOOMS):
        step = (high - low) / POINTS
        mean, spread = (
            axis.ravel()
            for axis in np.meshgrid(
                *(low[:, None] + step[:, None] * (np.arange(POINTS) + 0.5)), indexing="ij"
            )
        )
        concentration = spread**-2
        height = _log_likelihood(
            mean * concentration, (1 - mean) * concentration, resolved, unresolved, agents
        )
        seen = height > height.max() - FAINT
        where = np.stack([mean, spread])[:, seen]
        low, high = np.maximum(low, where.min(1) - step), np.minimum(high, where.max(1) + step)
    weight = np.exp(height - height.max())
    return mean, concentration, weight / weight.sum()


def _log_likelihood(
    a: "NDArray[np.float64]",
    b: "NDArray[np.float64]",
    resolved: "NDArray[np.float64]",
    unresolved: "NDArray[np.float64]",
    agents: "NDArray[np.int64]",
) -> "NDArray[np.float64]":
    """Return the log likelihood of each Beta(a, b), up to a constant.

    It is the sum over tallies of ln B(a + r, b + u) - ln B(a, b).
    """
    from scipy.special import betaln

    found: NDArray[np.float64] = -betaln(a, b) * agents.sum()
    for r, u, count in zip(resolved, unresolved, agents, strict=True):
        found += count * betaln(a + r, b + u)
    return found
