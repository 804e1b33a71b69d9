"""The statistics that decide and report: rates and their intervals, paired comparisons, the price of choosing.

Special functions are scipy's, except the beta quantile, which ``dgm status`` needs: ``scipy.special`` takes 0.2 s to
import and ``scipy.stats`` a second, so they are imported where they are first needed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import TYPE_CHECKING

from dgm.domain import Tally

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NORMAL_975 = 1.959963984540054
"""The normal quantile that gives two-sided 95 %."""


def wilson(tally: Tally, z: float = NORMAL_975) -> tuple[float, float]:
    """Return the score interval for a rate; (0, 1) where nothing was evaluated.

    With p = resolved / n: (p + z²/2n ± z √(p(1 - p)/n + z²/4n²)) / (1 + z²/n). Source: E. B. Wilson, "Probable
    inference, the law of succession, and statistical inference", JASA 22 (1927), p. 209.
    """
    n = tally.n
    if not n:
        return 0.0, 1.0
    centre = (tally.resolved + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(tally.resolved * tally.unresolved / n + z * z / 4)
    low = 0.0 if tally.resolved == 0 else max(0.0, centre - half)
    high = 1.0 if tally.unresolved == 0 else min(1.0, centre + half)
    return low, high


@lru_cache(maxsize=65_536)
def lower_bound(tally: Tally, q: float = 0.01) -> float:
    """Return the rate that an agent exceeds with probability 1 - ``q``, from a uniform prior.

    This is the ``q``-quantile of Beta(1 + resolved, 1 + unresolved); arXiv:2510.21614, section 3, takes q = 1 %. It is
    found by Newton's method, kept inside a shrinking bracket, on the function of NIST DLMF 8.17.
    """
    a, b = 1 + tally.resolved, 1 + tally.unresolved
    low, high, x = 0.0, 1.0, a / (a + b)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    for _ in range(200):
        density = math.exp(scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))
        front = density * x * (1 - x)
        if x < (a + 1) / (a + b + 2):
            excess = front * _beta_fraction(x, a, b) / a - q
        else:
            excess = 1 - front * _beta_fraction(1 - x, b, a) / b - q
        low, high = (low, x) if excess > 0 else (x, high)
        step = x - excess / density if density else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - x) <= 1e-15 * x:
            return following
        x = following
    return x


@lru_cache(maxsize=65_536)
def reward_lower_bound(total: float, n: int, q: float = 0.01) -> float:
    """Return a mean that ``n`` independent rewards in [0, 1] with this total exceed with probability 1 - ``q``.

    It is the smallest m with n kl(total / n, m) ≤ ln(1 / q), kl the divergence of Bernoulli distributions; 0.0 without
    a reward. It holds for any rewards in [0, 1] with equal means, fractional ones too: their exponential moments
    are at most those of verdicts of that mean. For verdicts it is a little below ``lower_bound``. Source: W. Hoeffding,
    JASA 58 (1963), p. 13, theorem 1, eq. 2.1. Rewards of one agent on different tasks have different means; then the
    bound is one of their average, by the same theorem.
    """
    if not n or total <= 0:
        return 0.0
    mean, limit = min(1.0, total / n), math.log(1 / q) / n
    low, high = 0.0, mean
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        miss = (1 - mean) * math.log((1 - mean) / (1 - middle)) if mean < 1 else 0.0
        low, high = (middle, high) if mean * math.log(mean / middle) + miss > limit else (low, middle)
    return low


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta, NIST DLMF 8.17.22, by Lentz's method."""
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


JUDGED = 4
"""Verdicts of a child before it is compared with its parents; fewer where there are fewer tasks."""
DIGITS = 12
"""The last bits of a sum may differ between platforms; what is decided by it should not."""


@lru_cache(maxsize=65_536)
def chance_better(tally: Tally, other: Tally) -> float:
    """Return P(X > Y) for X ~ Beta(1 + r, 1 + u) of ``tally`` and Y likewise of ``other``.

    The sum is exact for whole parameters: with X ~ Beta(a, b) and Y ~ Beta(c, d),

        P(X > Y) = Σ_{i < a} B(c + i, b + d) / ((b + i) B(1 + i, b) B(c, d))

    Source: E. Miller, "Formulas for Bayesian A/B testing" (2015), his derivation. The function adds up the shortest of
    the sum's four mirror images: P(X > Y) = 1 - P(Y > X), and 1 - X ~ Beta(b, a).
    """
    a, b, c, d = 1 + tally.resolved, 1 + tally.unresolved, 1 + other.resolved, 1 + other.unresolved
    direct = {a: (a, b, c, d), d: (d, c, b, a)}
    mirrored = {c: (c, d, a, b), b: (b, a, d, c)}
    if min(direct) <= min(mirrored):
        return round(min(1.0, _sum_chances(*direct[min(direct)])), DIGITS)
    return round(max(0.0, 1.0 - _sum_chances(*mirrored[min(mirrored)])), DIGITS)


def _sum_chances(a: int, b: int, c: int, d: int) -> float:
    scale = _log_beta(c, d)
    terms = (_log_beta(c + i, b + d) - math.log(b + i) - _log_beta(1 + i, b) - scale for i in range(a))
    return math.fsum(map(math.exp, terms))


def _log_beta(a: int, b: int) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


GRID_POINTS = 48  # in each of two directions
ZOOMS = 5
# Points whose log density is further below the peak count as nothing: 15 parts in a thousand million.
NEGLIGIBLE_LOG = 18.0
LEAST_SPREAD = 1e-3  # of κ^-½: rates that scatter by less than a thousandth are equal


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
    from scipy.special import betaln

    counts = Counter((tally.resolved, tally.unresolved) for tally in everyone if tally.n)
    if not counts:
        raise ValueError("best_of_many: nobody was evaluated")
    # A grid over the bulk of the posterior of μ and κ^-½.
    low, high = np.array([0.0, LEAST_SPREAD]), np.array([1.0, 1.0])
    for _ in range(ZOOMS):
        step = (high - low) / GRID_POINTS
        axes = low[:, None] + step[:, None] * (np.arange(GRID_POINTS) + 0.5)
        mean, spread = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
        concentration = spread**-2
        a, b = mean * concentration, (1 - mean) * concentration
        height = -betaln(a, b) * counts.total()
        for (resolved, unresolved), agents in counts.items():
            height += agents * betaln(a + resolved, b + unresolved)
        bulk = np.stack([mean, spread])[:, height > height.max() - NEGLIGIBLE_LOG]
        low, high = np.maximum(low, bulk.min(1) - step), np.minimum(high, bulk.max(1) + step)
    weight = np.exp(height - height.max())
    expected = (a + chosen.resolved) / (concentration + chosen.n)
    return float(np.sum(weight / weight.sum() * expected))


ROUNDING = 1e-9  # relative: a p-value that equals the level but for rounding counts as reaching it
TINY = 1e-12  # differences closer than this are equal: BCa has no interval for values that differ by rounding alone
RESAMPLES = 9_999
DRAWS_AT_ONCE = 10_000_000  # numbers that the bootstrap holds in memory
DIP = 50  # power falls a little now and then as tasks are added, never for as many as this in a row
# A binomial count of n trials is further than this times √n from its mean with a probability below 1e-31 (W. Hoeffding,
# JASA 58 (1963), p. 13, theorem 1).
FAR = 6.0
MOST_TASKS = 2**20  # no suite is near this; a search for more would take minutes


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p-value of McNemar's test, from the numbers of tasks that one of two agents resolved.

    It tells how surprising they would be if both agents were equally good. With n = ``only_first`` + ``only_second``, f
    the smaller of the two and X ~ Bin(n, ½): p = min(1, 2 P(X ≤ f)). The test never rejects more often than its level,
    in small samples far less often. Source: Q. McNemar, Psychometrika 12 (1947), p. 153, with the binomial instead of
    its chi-squared approximation.

    Raises:
        ValueError: a number is negative.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"mcnemar({only_first}, {only_second}): wants numbers from 0")
    return min(1.0, 2 * sign_test(max(only_first, only_second), min(only_first, only_second)))


def sign_test(wins: int, losses: int) -> float:
    """Return the exact one-sided p-value of the sign test: P(X ≥ ``wins``) with X ~ Bin(``wins`` + ``losses``, ½).

    It tells how surprising so many wins would be if a win were no likelier than a loss. The sum is one of whole
    numbers, so the result is the same on every machine. Source: W. J. Dixon and A. M. Mood, "The statistical sign
    test", JASA 41 (1946), p. 557.

    Raises:
        ValueError: a number is negative.
    """
    if wins < 0 or losses < 0:
        raise ValueError(f"sign_test({wins}, {losses}): wants numbers from 0")
    n, term, total = wins + losses, 1, 0
    for smaller in range(losses + 1):
        total += term
        term = term * (n - smaller) // (smaller + 1)
    return total / (1 << n)


def promotion_level(alpha: float, number: int, promotions: int, candidates: int) -> float:
    """Return the level of the tests in a round of promotion.

    With t = ``number`` from 1, p = ``promotions`` in rounds before, and K = ``candidates`` in any round at most, it is

        α w_t v_p / (C(t - 1, p) K^(p + 1)) with w_t = 1 / (t (t + 1)) and v_p = 1 / ((p + 1) (p + 2)).

    If a candidate of round t is accepted only where its ``sign_test`` against the incumbent gives at most this level,
    the probability of any false promotion is at most α over all rounds, although all rounds use the same tasks.

    Proof. Fix what does not depend on the promotion tasks: the search and its random streams. A round returns "not yet"
    or which of at most K candidates is accepted. So before round t with p promotions there are at most C(t - 1, p) K^p
    transcripts, and each fixes incumbent and candidates whatever the verdicts. For such a pair whose candidate is no
    better, wins are binomial with a chance of at most ½ given the number n of tasks that differ; so its test errs with
    probability at most its level. The levels over transcripts, K candidates, p and t add up to Σ α w_t v_p ≤ α.

    Assumptions: tasks are independent draws; each agent has one attempt at each task, which does not depend on the
    rounds; candidates and moments depend on these tasks through the transcript alone. Formula: arXiv:2609.33180.

    Raises:
        ValueError: not 0 < α < 1, not 0 ≤ p < t, or K < 1.
    """
    if not (0 < alpha < 1 and 0 <= promotions < number and candidates >= 1):
        raise ValueError(f"promotion_level({alpha}, {number}, {promotions}, {candidates}): out of range")
    weights = number * (number + 1) * (promotions + 1) * (promotions + 2)
    transcripts = math.comb(number - 1, promotions) * candidates ** (promotions + 1)
    return float(Fraction(alpha) / (weights * transcripts))


BETS = 32
"""Sizes of the bets of ``confidence_sequence``: 1/33, 2/33 … 32/33 of the capital."""
HALVINGS = 40


def confidence_sequence(differences: Sequence[int], alpha: float = 0.05) -> tuple[float, float]:
    """Return a confidence sequence for the mean of independent differences -1, 0 and 1, after the last of them.

    With probability 1 - ``alpha`` the intervals after 1, 2, 3 … differences all hold the mean, so one may stop at any
    time. The result is their intersection; its ends are exchanged if that is empty.

    A gambler against the mean m who stakes the share c of the capital on each difference d owns
    Π (1 - c + c (1 + d) / (1 + m)): a non-negative martingale if the mean is m; so is the average over shares c. It
    ever reaches 2/α with a probability of at most α/2 (Ville's inequality) and falls in m, so that bisection finds the
    means that it rules out. The other end is that of the negated differences. Source: I. Waudby-Smith and A. Ramdas,
    "Estimating means of bounded random variables by betting", arXiv:2010.09686, theorem 3 and section B.6 (hgKelly).

    Raises:
        ValueError: a difference is not -1, 0 or 1, or ``alpha`` is not between 0 and 1.
    """
    if not {*differences} <= {-1, 0, 1} or not 0 < alpha < 1:
        raise ValueError(f"confidence_sequence: wants differences -1, 0 and 1 and a level, not {alpha}")
    if not differences:
        return -1.0, 1.0
    low = mean_lower_bound(differences, alpha / 2)
    high = -mean_lower_bound([-each for each in differences], alpha / 2)
    return min(low, high), max(low, high)


def mean_lower_bound(differences: Sequence[int], alpha: float) -> float:
    """Return the lower end of a confidence sequence for the mean of differences -1, 0 and 1, at level ``alpha``.

    With probability 1 - ``alpha`` the mean is never below it, after however many differences; -1.0 without any. It is
    one side of ``confidence_sequence``, which states the method and its assumptions.
    """
    low, high = -1.0, 1.0
    for _ in range(HALVINGS if differences else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if rules_out_mean(differences, middle, alpha) else (low, middle)
    return low


def rules_out_mean(differences: Sequence[int], mean: float, alpha: float) -> bool:
    """Return whether ``mean``, and with it every lower one, is below ``mean_lower_bound``."""
    import numpy as np

    shares = np.arange(1, BETS + 1)[:, None] / (BETS + 1)
    values = np.asarray(differences)
    capital = sum(
        np.cumsum(values == value) * np.log1p(-shares + shares * (1 + value) / (1 + mean))
        for value in (-1, 0, 1)
    )
    return bool(np.logaddexp.reduce(capital, axis=0).max() >= math.log(BETS / alpha))


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
        enough = _mixed(middle, gain + loss, rejected) >= power
        low, high = (low, middle) if enough else (middle, high)
    for fewer in range(high - 1, 0, -1):
        if _mixed(fewer, gain + loss, rejected) >= power:
            high = fewer
        elif high - fewer > DIP:
            break
    return high


def smallest_gain(tasks: int, loss: float, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """Return the smallest net gain, in steps of 0.001, that ``mcnemar_power`` shows with ``power``; None if none is.

    The better agent resolves a share ``loss`` + gain of the tasks alone, the other one a share ``loss``.

    Raises:
        ValueError: a case of ``mcnemar_power``.
    """
    low, high = 0, int(1000 * (1 - 2 * loss))
    if high <= 0 or mcnemar_power(tasks, min(1 - loss, loss + high / 1000), loss, alpha) < power:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = mcnemar_power(tasks, loss + middle / 1000, loss, alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high / 1000


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
    if not all(map(math.isfinite, differences)):
        raise ValueError("paired_bootstrap: wants finite differences")
    least, most = float(min(differences)), float(max(differences))
    if math.isclose(least, most, rel_tol=ROUNDING, abs_tol=TINY):
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
    half = NORMAL_975 * math.sqrt(((sum(each * each for each in differences) + 1) / n - mean * mean) / n)
    return max(-1.0, mean - half), min(1.0, mean + half)


def _check(gain: float, loss: float, alpha: float) -> None:
    if not (gain >= 0 and loss >= 0 and gain + loss <= 1 + ROUNDING and 0 < alpha < 1):
        raise ValueError(f"McNemar's power: gain {gain}, loss {loss}, level {alpha} are no probabilities")


def _rejected(tasks: int, gain: float, loss: float, alpha: float, fewest: int) -> "Array":
    """Return the probability that the test rejects, for K = 0 … ``tasks`` tasks that only one agent resolved.

    It is 0 for a K that is practically impossible with ``fewest`` to ``tasks`` tasks.
    """
    import numpy as np
    from scipy.special import bdtr, bdtrik

    rejected = np.zeros(tasks + 1)
    if gain + loss:
        first = max(0, int((gain + loss) * fewest - FAR * tasks**0.5))
        last = min(tasks, int((gain + loss) * tasks + FAR * tasks**0.5) + 1)
        n = np.arange(first, last + 1)
        # The largest smaller count that the test rejects, if 2 · 0.5ⁿ reaches the level.
        level = alpha / 2 * (1 + ROUNDING)
        fewer = np.floor(bdtrik(level, n, 0.5))
        share = min(1.0, gain / (gain + loss))
        tails = bdtr(fewer, n, share) + bdtr(fewer, n, 1 - share)
        rejected[first : last + 1] = np.where(0.5**n <= level, tails, 0.0)
    return rejected


def _mixed(tasks: int, differing: float, rejected: "Array") -> float:
    """Return the mean of ``rejected[K]`` over K ~ Bin(``tasks``, ``differing``)."""
    import numpy as np
    from scipy.special import gammaln, xlog1py, xlogy

    share = min(1.0, differing)
    k = np.arange(tasks + 1, dtype=np.float64)
    chosen = gammaln(tasks + 1.0) - gammaln(k + 1) - gammaln(tasks - k + 1)
    weights = np.exp(chosen + xlogy(k, share) + xlog1py(tasks - k, -share))
    return float(weights @ rejected[: tasks + 1])
