"""Values marked "scipy" were computed once with scipy 1.16 (``beta.ppf``, ``binomtest``)."""

import pytest

from dgm.domain import Tally
from dgm.stats import beta_cdf, beta_quantile, lower_bound, mcnemar_p, wilson


@pytest.mark.parametrize(
    ("q", "a", "b", "scipy"),
    [
        (0.01, 1, 1, 0.01),
        (0.01, 1, 11, 0.0009132496292651829),
        (0.01, 11, 1, 0.657933224657568),
        (0.01, 14, 28, 0.1801036299927073),
        (0.01, 2, 60, 0.0024525258965036848),
        (0.5, 3, 3, 0.5),
        (0.99, 30, 71, 0.4074979610497576),
        (0.01, 150, 52, 0.6678971525464598),
        (1e-06, 5, 5, 0.024380981416890612),
        (0.999, 2, 2, 0.9816297461411884),
        (0.05, 1000, 3000, 0.23881117793227385),
        (0.01, 400_000, 600_000, 0.39886062234043373),
        (0.01, 2, 999_999, 1.485548034964268e-07),
    ],
)
def test_beta_quantiles_agree_with_scipy(q: float, a: int, b: int, scipy: float) -> None:
    assert beta_quantile(q, a, b) == pytest.approx(scipy, rel=1e-9)


def test_quantile_inverts_the_distribution_function() -> None:
    for a in range(2, 60, 7):
        for b in range(2, 60, 7):
            assert beta_cdf(beta_quantile(0.01, a, b), a, b) == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize(("q", "a", "b"), [(0.0, 1, 1), (1.0, 1, 1), (0.5, 0, 1), (0.5, 1, 0)])
def test_quantile_outside_its_domain_is_refused(q: float, a: int, b: int) -> None:
    with pytest.raises(ValueError, match="beta_quantile"):
        beta_quantile(q, a, b)


def test_lower_bound_prefers_evidence_to_a_lucky_start() -> None:
    assert lower_bound(Tally(14, 6)) > lower_bound(Tally(2, 0))


def test_lower_bound_of_nothing_is_the_prior_quantile() -> None:
    assert lower_bound(Tally()) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("first", "second", "scipy"),
    [
        (1, 0, 1.0),
        (0, 5, 0.0625),
        (1, 9, 0.021484375),
        (3, 12, 0.03515625),
        (10, 10, 1.0),
        (40, 70, 0.005447429511444476),
        (400, 500, 0.0009564441369189373),
    ],
)
def test_mcnemar_agrees_with_scipy(first: int, second: int, scipy: float) -> None:
    assert mcnemar_p(first, second) == pytest.approx(scipy, rel=1e-9)
    assert mcnemar_p(second, first) == mcnemar_p(first, second)


def test_mcnemar_without_discordant_tasks_is_one() -> None:
    assert mcnemar_p(0, 0) == 1.0


def test_wilson_interval_of_eight_in_ten() -> None:
    # R. G. Newcombe, Statistics in Medicine 17 (1998), method 3, gives 0.4902 to 0.9433.
    assert wilson(Tally(8, 2)) == pytest.approx((0.4902, 0.9433), abs=5e-5)


def test_wilson_interval_touches_the_ends_only_where_counts_do() -> None:
    assert wilson(Tally(0, 10))[0] == 0.0
    assert wilson(Tally(10, 0))[1] == 1.0
    assert wilson(Tally()) == (0.0, 1.0)
