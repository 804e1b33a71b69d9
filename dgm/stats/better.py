"""How probably one rate is higher than another, from the verdicts on both."""

from functools import lru_cache
from math import exp, fsum, lgamma, log

from dgm.domain import Tally


def chance_better(one: Tally, other: Tally) -> float:
    """Return P(X > Y) for X ~ Beta(1 + r, 1 + u) of ``one`` and Y likewise of ``other``.

    Both rates have a uniform prior. The sum is exact for whole parameters: with X ~ Beta(a, b) and Y ~ Beta(c, d),

        P(X > Y) = Σ_{i < a} B(c + i, b + d) / ((b + i) B(1 + i, b) B(c, d))

    Source: E. Miller, "Formulas for Bayesian A/B testing" (2015), his derivation. The function adds up the shortest of
    the sum's four mirror images.
    """
    return _chance(one.resolved, one.unresolved, other.resolved, other.unresolved)


JUDGED = 4
"""Verdicts of a child before it is compared with its parents; fewer where there are fewer tasks."""
DIGITS = 12
"""The last bits of a sum may differ between platforms; what is decided by it should not."""


@lru_cache(maxsize=65_536)
def _chance(resolved: int, unresolved: int, others_resolved: int, others_unresolved: int) -> float:
    a, b, c, d = 1 + resolved, 1 + unresolved, 1 + others_resolved, 1 + others_unresolved
    # P(X > Y) = 1 - P(Y > X), and 1 - X ~ Beta(b, a).
    found = {a: (a, b, c, d), d: (d, c, b, a)}
    mirrored = {c: (c, d, a, b), b: (b, a, d, c)}
    if min(found) <= min(mirrored):
        return round(min(1.0, _sum(*found[min(found)])), DIGITS)
    return round(max(0.0, 1.0 - _sum(*mirrored[min(mirrored)])), DIGITS)


def _sum(a: int, b: int, c: int, d: int) -> float:
    whole = _log_beta(c, d)
    return fsum(exp(_log_beta(c + i, b + d) - log(b + i) - _log_beta(1 + i, b) - whole) for i in range(a))


def _log_beta(a: int, b: int) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
