"""Inference from a tally on the rate behind it: intervals, and quantiles of its posterior."""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from dgm.domain import Tally

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NORMAL_975 = 1.959963984540054
"""The normal quantile that gives two-sided 95 %."""


def wilson(tally: Tally, z: float = NORMAL_975) -> tuple[float, float]:
    """Return the score interval for a rate; (0, 1) where nothing was evaluated.

    With p = resolved / n: (p + z²/2n ± z √(p(1 - p)/n + z²/4n²)) / (1 + z²/n). Source: E. B. Wilson, "Probable
    inference, the law of succession, and statistical inference", JASA 22 (1927), p. 209. The coverage is close to the
    nominal on average over rates. Single rates may be covered less often (``clopper_pearson`` never covers less).
    """
    n = tally.n
    if not n:
        return 0.0, 1.0
    centre = (tally.resolved + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(tally.resolved * tally.unresolved / n + z * z / 4)
    low = 0.0 if tally.resolved == 0 else max(0.0, centre - half)
    high = 1.0 if tally.unresolved == 0 else min(1.0, centre + half)
    return low, high


def clopper_pearson(tally: Tally, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval for a rate, which covers every rate at least as often as it says.

    Its ends are the α/2-quantile of Beta(resolved, unresolved + 1) and the (1 - α/2)-quantile of
    Beta(resolved + 1, unresolved), where α = 1 - ``confidence``. It is (0, 1) where nothing was evaluated. Source:
    C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
    Biometrika 26 (1934), p. 404.

    Raises:
        ValueError: ``confidence`` is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"clopper_pearson: confidence {confidence} is not between 0 and 1")
    tail = (1 - confidence) / 2
    resolved, unresolved = tally.resolved, tally.unresolved
    low = beta_quantile(tail, resolved, unresolved + 1) if resolved else 0.0
    high = beta_quantile(1 - tail, resolved + 1, unresolved) if unresolved else 1.0
    return low, high


def lower_bound(tally: Tally, q: float = 0.01) -> float:
    """Return the rate that an agent exceeds with probability 1 - ``q``, from a uniform prior.

    This is the ``q``-quantile of Beta(1 + resolved, 1 + unresolved); arXiv:2510.21614, section 3, takes q = 1 %.
    """
    return beta_quantile(q, 1 + tally.resolved, 1 + tally.unresolved)


def lower_bounds(
    resolved: "NDArray[np.int64]", unresolved: "NDArray[np.int64]", q: float = 0.01
) -> "NDArray[np.float64]":
    """Return ``lower_bound`` of many tallies at once; all arrays have the same shape. A tally takes about 1 µs.

    Raises:
        ValueError: ``q`` is not between 0 and 1, or a count is negative.
    """
    import numpy as np
    from scipy.special import betaincinv

    if not 0 < q < 1 or (resolved < 0).any() or (unresolved < 0).any():
        raise ValueError(f"lower_bounds: wants 0 < q < 1 and counts from 0, not q = {q}")
    return np.asarray(betaincinv(1.0 + resolved, 1.0 + unresolved, q), dtype=np.float64)


@lru_cache(maxsize=65_536)
def beta_quantile(q: float, a: float, b: float) -> float:
    """Return the ``q``-quantile of Beta(a, b): the x at which the regularised incomplete beta I_x(a, b) is ``q``.

    Newton's method, kept inside a shrinking bracket, on the function of NIST DLMF 8.17. Without scipy, because
    ``scipy.special`` takes longer to import than a command that needs one bound takes in all.

    Raises:
        ValueError: an argument is out of range: ``0 < q < 1``, ``a`` and ``b`` above 0.
    """
    if not 0 < q < 1 or not a > 0 or not b > 0:
        raise ValueError(f"beta_quantile({q}, {a}, {b}): wants 0 < q < 1 and parameters above 0")
    low, high, x = 0.0, 1.0, a / (a + b)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    for _ in range(200):
        density = math.exp(scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))
        excess = _regularised_beta(x, a, b, density) - q
        low, high = (low, x) if excess > 0 else (x, high)
        step = x - excess / density if density else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - x) <= 1e-15 * x:
            return following
        x = following
    return x


def _regularised_beta(x: float, a: float, b: float, density: float) -> float:
    """Return I_x(a, b) by the continued fraction NIST DLMF 8.17.22; ``density`` is that of Beta(a, b) at x."""
    front = density * x * (1 - x)
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1 - front * _beta_fraction(1 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Evaluate the continued fraction by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value
