"""Two agents on the same tasks: is one better, could the tasks have shown it, and by how much."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isclose, isfinite, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from dgm.stats.rates import NORMAL_975

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUNDING = 1e-9
"""Relative: a p-value that equals the level but for rounding counts as reaching it."""
TINY = 1e-12
"""Differences closer than this are equal: BCa has no interval for values that differ by rounding alone."""
RESAMPLES = 9_999
DRAWS_AT_ONCE = 10_000_000
"""Numbers that the bootstrap holds in memory."""
DIP = 50
"""Power falls a little now and then as tasks are added, never for as many as this in a row."""
FAR = 6.0
"""A binomial count of n trials is further than this times √n from its mean with a probability below 1e-31 (W.
Hoeffding, JASA 58 (1963), p. 13, theorem 1)."""
MOST_TASKS = 2**20
"""No suite is near this; a search for more would take minutes."""


@dataclass(frozen=True, slots=True)
class McNemar:
    """How surprising the tasks that only one of two agents resolved would be, if both agents were equally good."""

    p: float
    """Exact, two-sided: never rejects more often than its level, in small samples far less often."""
    mid_p: float
    """Counts half of what is as likely as the observation: close to its level, rarely above it."""


def mcnemar(only_first: int, only_second: int) -> McNemar:
    """Return the exact McNemar test and its mid-p, from the numbers of tasks that only one of two agents resolved.

    With n = ``only_first`` + ``only_second``, f the smaller of the two and X ~ Bin(n, ½): p = min(1, 2 P(X ≤ f)) and
    mid-p = P(X ≤ f) + P(X < f). Source: Q. McNemar, Psychometrika 12 (1947), p. 153, with the binomial instead of its
    chi-squared approximation. M. W. Fagerland, S. Lydersen and P. Laake, BMC Medical Research Methodology 13:91 (2013),
    recommend the mid-p.

    Raises:
        ValueError: a number is negative.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"mcnemar({only_first}, {only_second}): wants numbers from 0")
    from scipy.special import bdtr

    n, fewer = only_first + only_second, min(only_first, only_second)
    at_most = float(bdtr(float(fewer), n, 0.5))
    below = float(bdtr(fewer - 1.0, n, 0.5)) if fewer else 0.0
    return McNemar(min(1.0, 2 * at_most), at_most + below)


def mcnemar_power(tasks: int, gain: float, loss: float, alpha: float = 0.05) -> float:
    """Return the probability that the exact two-sided McNemar test on ``tasks`` tasks gives p ≤ ``alpha``.

    ``gain`` is the probability that only the second agent resolves a task, ``loss`` that only the first does. The
    number of such tasks is K ~ Bin(tasks, gain + loss); G ~ Bin(K, gain / (gain + loss)) of them are gains. The
    probability of the K and G that the test rejects is summed over all K. Source: S. W. Duffy, "Asymptotic and exact
    power for the McNemar test and its analogue with R controls per case", Biometrics 40 (1984), p. 1005.

    Raises:
        ValueError: ``tasks`` is negative, or ``gain``, ``loss`` and their sum are not probabilities.
    """
    _check(gain, loss, alpha)
    if tasks < 0:
        raise ValueError(f"mcnemar_power: wants tasks from 0, not {tasks}")
    return _mixed(tasks, gain + loss, _rejected(tasks, gain, loss, alpha, tasks))


def tasks_needed(gain: float, loss: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return the fewest tasks with which ``mcnemar_power`` is at least ``power``.

    The search doubles and halves, then steps downwards, because the power of a test on counts is not quite monotone.

    Raises:
        ValueError: ``gain`` equals ``loss``, so that no number of tasks has power; ``MOST_TASKS`` are too few to show
            the difference; ``power`` is not between 0 and 1; or a case of ``mcnemar_power``.
    """
    _check(gain, loss, alpha)
    if gain == loss or not 0 < power < 1:
        raise ValueError(f"tasks_needed: no number of tasks has power {power} for gain {gain}, loss {loss}")
    high = 1
    while mcnemar_power(high, gain, loss, alpha) < power:
        high *= 2
        if high > MOST_TASKS:
            raise ValueError(f"tasks_needed: {MOST_TASKS} tasks are too few for gain {gain}, loss {loss}")
    rejected, low = _rejected(high, gain, loss, alpha, fewest=high // 2 - DIP), high // 2
    while high - low > 1:
        middle = (low + high) // 2
        found = _mixed(middle, gain + loss, rejected)
        low, high = (low, middle) if found >= power else (middle, high)
    for fewer in range(high - 1, 0, -1):
        if _mixed(fewer, gain + loss, rejected) >= power:
            high = fewer
        elif high - fewer > DIP:
            break
    return high


def paired_bootstrap(
    differences: Sequence[float], confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Return the bootstrap interval for the mean of paired differences, bias-corrected and accelerated (BCa).

    Source: B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987), p. 171. The result is that of
    ``scipy.stats.bootstrap``, which takes a second to import. The bootstrap resamples pairs, so they must be
    independent of one another. The same ``seed`` gives the same interval. If all differences are equal except for
    rounding, the ends are the least and the largest of them: the sample shows no spread, but this is no proof that
    there is none.

    Raises:
        ValueError: there are fewer than two differences, or one is not finite, or ``confidence`` is not between 0
            and 1.
    """
    if len(differences) < 2 or not 0 < confidence < 1:
        raise ValueError(
            f"paired_bootstrap: wants two differences or more, not {len(differences)}, "
            f"and a confidence between 0 and 1, not {confidence}"
        )
    if not all(map(isfinite, differences)):
        raise ValueError("paired_bootstrap: wants finite differences")
    least, most = float(min(differences)), float(max(differences))
    if isclose(least, most, rel_tol=ROUNDING, abs_tol=TINY):
        return least, most
    import numpy as np

    values, normal = np.asarray(differences, dtype=np.float64), NormalDist()
    n, rng = len(values), np.random.default_rng(seed)
    batch = max(1, DRAWS_AT_ONCE // n)
    sizes = [min(batch, RESAMPLES - done) for done in range(0, RESAMPLES, batch)]
    means = np.concatenate([values[rng.integers(0, n, (size, n))].mean(axis=1) for size in sizes])
    # Equations 2.3 and 6.6: bias by the median, acceleration by the jackknife.
    mean = values.mean()
    bias = normal.inv_cdf(
        (np.count_nonzero(means < mean) + np.count_nonzero(means <= mean)) / (2 * RESAMPLES)
    )
    jackknife = (values.sum() - values) / (n - 1)
    spread = (n - 1) * (jackknife.mean() - jackknife)
    acceleration = np.sum(spread**3 / n**3) / (6 * np.sum(spread**2 / n**2) ** 1.5)
    tail = normal.inv_cdf((1 - confidence) / 2)
    shifts = (bias + (bias + z) / (1 - acceleration * (bias + z)) for z in (tail, -tail))
    low, high = np.percentile(means, [100 * normal.cdf(shift) for shift in shifts])
    return float(low), float(high)


def sign_flip(differences: Sequence[int]) -> float:
    """Return the exact two-sided p-value of paired differences, if either sign of each is equally likely.

    It is P(|S| ≥ |Σ d|) with S = Σ ±d over all signs; where none is larger than 1, that is ``mcnemar``'s ``p``. Source:
    R. A. Fisher, The Design of Experiments (1935), section 21.
    """
    chances = {0: 1.0}
    for size in map(abs, differences):
        if size:
            flipped: dict[int, float] = {}
            for total, chance in chances.items():
                flipped[total - size] = flipped.get(total - size, 0.0) + chance / 2
                flipped[total + size] = flipped.get(total + size, 0.0) + chance / 2
            chances = flipped
    observed = abs(sum(differences))
    return min(1.0, sum(chance for total, chance in chances.items() if abs(total) >= observed))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number: calling those up to α effects errs at all with probability at most α.

    The i-th smallest of k is multiplied by k - i + 1; none becomes smaller than the one before it. Source: S. Holm, "A
    simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979), p. 65.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    raised = (min(1.0, (len(order) - rank) * p_values[at]) for rank, at in enumerate(order))
    adjusted = dict(zip(order, accumulate(raised, max), strict=True))
    return [adjusted[at] for at in range(len(p_values))]


def matched_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval for the mean of paired differences from -1 to 1, such as those of verdicts.

    It is the normal interval after half a pair of each kind (1-1, 1-0, 0-1, 0-0) was added, so that it has a width even
    if all differences are 0. Source: A. Agresti and Y. Min, "Simple improved confidence intervals for comparing matched
    proportions", Statistics in Medicine 24 (2005), p. 729. Without a difference it is (-1, 1).
    """
    if not differences:
        return -1.0, 1.0
    n = len(differences) + 2
    mean = sum(differences) / n
    half = NORMAL_975 * sqrt(((sum(each * each for each in differences) + 1) / n - mean * mean) / n)
    return max(-1.0, mean - half), min(1.0, mean + half)


def _check(gain: float, loss: float, alpha: float) -> None:
    if not (gain >= 0 and loss >= 0 and gain + loss <= 1 + ROUNDING and 0 < alpha < 1):
        raise ValueError(f"McNemar's power: gain {gain}, loss {loss}, level {alpha} are no probabilities")


def _rejected(tasks: int, gain: float, loss: float, alpha: float, fewest: int) -> "NDArray[np.float64]":
    """Return the probability that the test rejects, for K = 0 … ``tasks`` tasks that only one agent resolved.

    It is 0 for a K that is practically impossible with ``fewest`` to ``tasks`` tasks.
    """
    import numpy as np
    from scipy.special import bdtr

    found = np.zeros(tasks + 1)
    if not gain + loss:
        return found
    least = max(0, int((gain + loss) * fewest - FAR * tasks**0.5))
    last = min(tasks, int((gain + loss) * tasks + FAR * tasks**0.5) + 1)
    differ = np.arange(least, last + 1)
    most = _most_fewer(differ, alpha)
    share = min(1.0, gain / (gain + loss))
    tails = bdtr(np.maximum(most, 0), differ, share) + bdtr(np.maximum(most, 0), differ, 1 - share)
    found[least : last + 1] = np.where(most >= 0, tails, 0.0)
    return found


def _most_fewer(differ: "NDArray[np.int64]", alpha: float) -> "NDArray[np.float64]":
    """Return the largest smaller count that the test rejects, for each number of tasks that only one agent resolved.

    It is -1 where the test rejects none.
    """
    import numpy as np
    from scipy.special import bdtr

    tail = alpha / 2 * (1 + ROUNDING)
    low, high = np.full(len(differ), -1.0), differ // 2
    while (low < high).any():
        middle = np.ceil((low + high) / 2)
        reached = bdtr(np.maximum(middle, 0), differ, 0.5) <= tail
        low, high = np.where(reached, middle, low), np.where(reached, high, np.maximum(middle - 1, low))
    return low


def _mixed(tasks: int, differing: float, rejected: "NDArray[np.float64]") -> float:
    """Return the mean of ``rejected[K]`` over K ~ Bin(``tasks``, ``differing``)."""
    import numpy as np
    from scipy.special import gammaln, xlog1py, xlogy

    share = min(1.0, differing)
    k = np.arange(tasks + 1, dtype=np.float64)
    chosen = gammaln(tasks + 1.0) - gammaln(k + 1) - gammaln(tasks - k + 1)
    weights = np.exp(chosen + xlogy(k, share) + xlog1py(tasks - k, -share))
    return float(weights @ rejected[: tasks + 1])
