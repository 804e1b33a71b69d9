"""Intervals and tests against other programs: SciPy's and statsmodels' own, to 1e-9, on 1,000 random tables.

The tables are from the seed below: two counts each, 0 to 500 (for McNemar what one of two agents resolved and the other
did not; what both or neither did does not matter to it), with every fifth cell forced to 0 and every seventh pair of
cells forced to be equal, since ends and ties are where implementations differ.
"""

import random

import numpy as np
import pytest
from scipy.stats import beta, binom, binomtest
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.proportion import proportion_confint

from dgm.domain import Tally
from dgm.stats import beta_quantile, clopper_pearson, lower_bound, mcnemar, wilson

pytestmark = pytest.mark.slow

SEED = 20_260_522
TABLES = 1_000
SLOW = 5
"""Every so many-th table is given to what takes milliseconds a table."""
NEAR = 1e-9
"""Absolute; all that is compared is between 0 and 1."""


def tables() -> list[tuple[int, int]]:
    """Pairs of counts, never both 0 (of nothing, programs say different things)."""
    rng = random.Random(SEED)
    found = []
    for number in range(TABLES):
        most = rng.choice((5, 50, 500))
        one, two = rng.randint(0, most), rng.randint(0, most)
        if number % 5 == 0:
            one = 0
        if number % 5 == 1:
            two = 0
        if number % 7 == 0:
            two = one
        found.append((one, two) if one + two else (0, 1))
    return found


@pytest.fixture(scope="module")
def pairs() -> list[tuple[int, int]]:
    return tables()


def farthest(found: list[tuple[float, ...]], wanted: list[tuple[float, ...]]) -> float:
    return max(
        abs(one - two)
        for mine, theirs in zip(found, wanted, strict=True)
        for one, two in zip(mine, theirs, strict=True)
    )


def statsmodels_intervals(
    pairs: list[tuple[int, int]], method: str, alpha: float = 0.05
) -> list[tuple[float, float]]:
    resolved, unresolved = np.array(pairs).T
    return list(zip(*proportion_confint(resolved, resolved + unresolved, alpha, method), strict=True))


def test_the_tables_hold_the_ends_and_the_ties(pairs) -> None:
    assert len(pairs) == TABLES
    assert sum(one == 0 for one, _ in pairs) > 150
    assert sum(two == 0 for _, two in pairs) > 150
    assert sum(one == two for one, two in pairs) > 100
    assert max(map(max, pairs)) > 490


def test_wilson_is_statsmodels_and_scipys(pairs) -> None:
    mine = [wilson(Tally(*pair)) for pair in pairs]
    assert farthest(mine, statsmodels_intervals(pairs, "wilson")) < NEAR
    scipys = [tuple(binomtest(k, k + m).proportion_ci(method="wilson")) for k, m in pairs[::SLOW]]
    assert farthest(mine[::SLOW], scipys) < NEAR


def test_clopper_pearson_is_statsmodels_and_scipys(pairs) -> None:
    mine = [clopper_pearson(Tally(*pair)) for pair in pairs]
    assert farthest(mine, statsmodels_intervals(pairs, "beta")) < NEAR
    # SciPy solves an equation for each end instead of asking for a quantile.
    scipys = [tuple(binomtest(k, k + m).proportion_ci(method="exact")) for k, m in pairs[::SLOW]]
    assert farthest(mine[::SLOW], scipys) < NEAR


@pytest.mark.slow
def test_mcnemar_is_statsmodels_own_and_the_binomial_test_of_scipy(pairs) -> None:
    mine = [(mcnemar(*pair).p,) for pair in pairs]
    theirs = [(statsmodels_mcnemar([[7, lost], [gained, 3]], exact=True).pvalue,) for lost, gained in pairs]
    assert farthest(mine, theirs) < NEAR
    scipys = [(binomtest(lost, lost + gained, 0.5).pvalue,) for lost, gained in pairs]
    assert farthest(mine, scipys) < NEAR


def test_mid_p_is_p_less_the_probability_of_what_was_seen(pairs) -> None:
    # Fagerland and others (2013), from SciPy's binomial distribution instead of its test.
    lost, gained = np.array(pairs).T
    fewer, n = np.minimum(lost, gained), lost + gained
    wanted = 2 * binom.cdf(fewer, n, 0.5) - binom.pmf(fewer, n, 0.5)
    assert farthest([(mcnemar(*pair).mid_p,) for pair in pairs], [(one,) for one in wanted]) < NEAR


@pytest.mark.parametrize("q", [0.01, 0.025, 0.5, 0.975])
def test_beta_quantiles_are_those_of_scipys_distribution(pairs, q: float) -> None:
    mine = [(beta_quantile(q, k + 1, m + 1),) for k, m in pairs]
    wanted = beta.ppf(q, *(np.array(pairs).T + 1))
    assert farthest(mine, [(one,) for one in wanted]) < NEAR


def test_beta_quantiles_are_the_ends_of_statsmodels_exact_interval(pairs) -> None:
    # Clopper and Pearson's lower end of k + 1 of k + 1 + m is the same quantile of Beta(k + 1, m + 1).
    more = [(k + 1, m) for k, m in pairs]
    wanted = [(low,) for low, _ in statsmodels_intervals(more, "beta", alpha=0.02)]
    assert farthest([(lower_bound(Tally(*pair)),) for pair in pairs], wanted) < NEAR


def test_a_wrong_interval_is_noticed(pairs) -> None:
    off = [wilson(Tally(*pair), z=1.96) for pair in pairs]
    assert farthest(off, statsmodels_intervals(pairs, "wilson")) > NEAR
