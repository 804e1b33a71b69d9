"""The statistics that decide and report: intervals for a rate, quantiles of its posterior, a paired test.

Pure Python on counts; exact where that is affordable, and fast enough to be asked about every agent at every
decision.
"""

import math
from functools import lru_cache

from dgm.domain import Tally

_CONVERGED = 1e-13


def wilson(tally: Tally, z: float = 1.959963984540054) -> tuple[float, float]:
    """The score interval for a rate; (0, 1) where nothing was evaluated.

    ``z`` is the normal quantile; its default gives 95 %. E. B. Wilson, "Probable inference, the law of
    succession, and statistical inference", JASA 22 (1927), p. 209.
    """
    n = tally.n
    if not n:
        return 0.0, 1.0
    centre = (tally.resolved + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(tally.resolved * tally.unresolved / n + z * z / 4)
    low = 0.0 if tally.resolved == 0 else max(0.0, centre - half)
    high = 1.0 if tally.unresolved == 0 else min(1.0, centre + half)
    return low, high


def lower_bound(tally: Tally, q: float = 0.01) -> float:
    """The rate that an agent exceeds with probability 1 - ``q``, from a uniform prior."""
    return beta_quantile(q, 1 + tally.resolved, 1 + tally.unresolved)


@lru_cache(maxsize=65_536)
def beta_quantile(q: float, a: int, b: int) -> float:
    """The ``q``-quantile of Beta(a, b), ``0 < q < 1``, for whole ``a`` and ``b`` from 1.

    Newton's method, kept inside a shrinking bracket, on the distribution function.

    Raises:
        ValueError: an argument is out of range.
    """
    if not 0 < q < 1 or a < 1 or b < 1:
        raise ValueError(f"beta_quantile({q}, {a}, {b}): wants 0 < q < 1 and whole numbers from 1")
    if a == 1:
        return -math.expm1(math.log1p(-q) / b)
    if b == 1:
        return math.exp(math.log(q) / a)
    low, high = 0.0, 1.0
    x = a / (a + b)
    for _ in range(200):
        error = beta_cdf(x, a, b) - q
        if error > 0:
            high = x
        else:
            low = x
        better = x - error / _density(x, a, b)
        if not low < better < high:
            better = (low + high) / 2
        if abs(better - x) <= _CONVERGED * x:
            return better
        x = better
    return x


def beta_cdf(x: float, a: int, b: int) -> float:
    """P(Beta(a, b) ≤ x) for whole ``a`` and ``b`` from 1 and ``0 < x < 1``.

    It is the binomial tail P(Bin(a + b - 1, x) ≥ a) (DLMF 8.17.5), summed from its largest term outwards.
    """
    n = a + b - 1
    odds = x / (1 - x)
    if a > (n + 1) * x:
        term = total = _binomial(a, n, x)
        for k in range(a, n):
            term *= (n - k) / (k + 1) * odds
            total += term
            if term < total * 1e-17:
                break
        return total
    term = total = _binomial(a - 1, n, x)
    for k in range(a - 1, 0, -1):
        term *= k / ((n - k + 1) * odds)
        total += term
        if term < total * 1e-17:
            break
    return 1 - total


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Two-sided p of the exact McNemar test: tasks that only one of two agents resolved, against a fair coin.

    Q. McNemar, Psychometrika 12 (1947), p. 153, with the binomial instead of its chi-squared approximation.
    """
    n = only_first + only_second
    fewer = min(only_first, only_second)
    if 2 * fewer + 1 >= n:
        return 1.0
    return min(1.0, 2 * beta_cdf(0.5, n - fewer, fewer + 1))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _binomial(k: int, n: int, x: float) -> float:
    return math.exp(_log_choose(n, k) + k * math.log(x) + (n - k) * math.log1p(-x))


def _density(x: float, a: int, b: int) -> float:
    # A floor keeps the Newton step finite where the density vanishes; the bracket takes over there.
    return max((a + b - 1) * _binomial(a - 1, a + b - 2, x), 1e-300)
