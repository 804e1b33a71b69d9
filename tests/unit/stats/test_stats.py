"""Values marked "scipy" were computed once with scipy 1.16 (``beta.ppf``, ``binomtest``)."""

from fractions import Fraction
from itertools import product
from math import comb
from time import process_time

import numpy as np
import pytest
import scipy.stats

from dgm.domain import Tally
from dgm.stats import (
    beta_quantile,
    clopper_pearson,
    holm,
    lower_bound,
    lower_bounds,
    matched_interval,
    mcnemar,
    mcnemar_power,
    paired_bootstrap,
    sign_flip,
    tasks_needed,
    wilson,
)
from dgm.stats.paired import DIP, RESAMPLES


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


def test_quantile_inverts_the_binomial_tail() -> None:
    # DLMF 8.17.5: P(Beta(a, b) ≤ x) = P(Bin(a + b - 1, x) ≥ a).
    for a, b in product(range(1, 40, 6), repeat=2):
        x, n = Fraction(beta_quantile(0.01, a, b)), a + b - 1
        tail = sum(comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
        assert float(tail) == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize(("q", "a", "b"), [(0.0, 1, 1), (1.0, 1, 1), (0.5, 0, 1), (0.5, 1, 0)])
def test_quantile_outside_its_domain_is_refused(q: float, a: int, b: int) -> None:
    with pytest.raises(ValueError, match="beta_quantile"):
        beta_quantile(q, a, b)


def test_lower_bound_prefers_evidence_to_a_lucky_start() -> None:
    assert lower_bound(Tally(14, 6)) > lower_bound(Tally(2, 0))


def test_lower_bound_of_nothing_is_the_prior_quantile() -> None:
    assert lower_bound(Tally()) == pytest.approx(0.01)


def test_many_lower_bounds_are_the_single_ones() -> None:
    pairs = list(product(range(12), repeat=2))
    resolved, unresolved = np.array(pairs).T
    singles = [lower_bound(Tally(*pair)) for pair in pairs]
    assert lower_bounds(resolved, unresolved).tolist() == pytest.approx(singles, rel=1e-12)


@pytest.mark.parametrize(("resolved", "unresolved", "q"), [(-1, 2, 0.01), (1, -2, 0.01), (1, 2, 0.0)])
def test_bounds_of_impossible_tallies_are_refused(resolved: int, unresolved: int, q: float) -> None:
    with pytest.raises(ValueError, match="lower_bounds"):
        lower_bounds(np.array([resolved]), np.array([unresolved]), q)


# R. G. Newcombe, Statistics in Medicine 17 (1998), table I: methods 3 (score) and 5 (exact).
NEWCOMBE = {
    (81, 182): ((0.2553, 0.3662), (0.2527, 0.3676)),
    (15, 133): ((0.0624, 0.1605), (0.0578, 0.1617)),
    (0, 20): ((0.0, 0.1611), (0.0, 0.1684)),
    (1, 28): ((0.0061, 0.1718), (0.0009, 0.1776)),
}


@pytest.mark.parametrize("counts", NEWCOMBE)
def test_intervals_agree_with_the_published_table(counts: tuple[int, int]) -> None:
    score, exact = NEWCOMBE[counts]
    assert wilson(Tally(*counts)) == pytest.approx(score, abs=5e-5)
    assert clopper_pearson(Tally(*counts)) == pytest.approx(exact, abs=5e-5)


def test_wilson_interval_touches_the_ends_only_where_counts_do() -> None:
    assert wilson(Tally(0, 10))[0] == 0.0
    assert wilson(Tally(10, 0))[1] == 1.0
    assert wilson(Tally()) == (0.0, 1.0)


def test_exact_interval_of_nothing_and_of_everything() -> None:
    assert clopper_pearson(Tally()) == (0.0, 1.0)
    # All of n resolved: the lower end solves x^n = α/2.
    assert clopper_pearson(Tally(10, 0), 0.9) == pytest.approx((0.05**0.1, 1.0))


def test_exact_interval_wants_a_confidence() -> None:
    with pytest.raises(ValueError, match="confidence"):
        clopper_pearson(Tally(1, 1), 95)


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
    assert mcnemar(first, second).p == pytest.approx(scipy, rel=1e-9)
    assert mcnemar(second, first) == mcnemar(first, second)


def test_mid_p_is_less_by_the_chance_of_what_was_observed() -> None:
    # M. W. Fagerland et al. (2013), airway hyper-responsiveness, 1 against 7: exact 0.070, mid-p 0.039.
    found = mcnemar(1, 7)
    assert (round(found.p, 3), round(found.mid_p, 3)) == (0.070, 0.039)
    for first, second in product(range(12), repeat=2):
        n, few = first + second, min(first, second)
        both = 2 * sum(Fraction(comb(n, k), 2**n) for k in range(few + 1)) - Fraction(comb(n, few), 2**n)
        assert mcnemar(first, second).mid_p == pytest.approx(float(both), rel=1e-12)


def test_mcnemar_without_discordant_tasks_is_one() -> None:
    assert (mcnemar(0, 0).p, mcnemar(0, 0).mid_p) == (1.0, 1.0)


def test_mcnemar_of_fewer_than_none_is_refused() -> None:
    with pytest.raises(ValueError, match="numbers from 0"):
        mcnemar(-1, 3)


def enumerated_power(tasks: int, gain: Fraction, loss: Fraction, alpha: Fraction) -> float:
    """Over every number of gains and losses, in fractions."""
    total = Fraction(0)
    for gains in range(tasks + 1):
        for losses in range(tasks + 1 - gains):
            n, same = gains + losses, tasks - gains - losses
            tail = sum(Fraction(comb(n, k), 2**n) for k in range(min(gains, losses) + 1))
            if 2 * tail <= alpha:
                ways = comb(tasks, n) * comb(n, gains)
                total += ways * gain**gains * loss**losses * (1 - gain - loss) ** same
    return float(total)


@pytest.mark.parametrize(
    ("tasks", "gain", "loss", "alpha"),
    [
        (20, "1/4", "1/20", "1/20"),
        (20, "1/5", "0", "1/20"),
        (12, "1/2", "1/2", "1/20"),
        (30, "1/10", "3/10", "1/20"),
        (15, "1", "0", "1/100"),
        (10, "2/5", "1/5", "1/16"),  # a level that p-values reach exactly
        (0, "1/5", "1/5", "1/20"),
        (5, "0", "0", "1/20"),
    ],
)
def test_power_is_that_of_full_enumeration(tasks: int, gain: str, loss: str, alpha: str) -> None:
    exact = enumerated_power(tasks, Fraction(gain), Fraction(loss), Fraction(alpha))
    found = mcnemar_power(tasks, *(float(Fraction(number)) for number in (gain, loss, alpha)))
    assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("gain", "loss"), [(0.25, 0.05), (0.0, 0.2), (0.6, 0.2), (1.0, 0.0), (0.9, 0.1)])
def test_fewest_tasks_are_those_of_a_full_scan(gain: float, loss: float) -> None:
    needed = tasks_needed(gain, loss)
    assert needed == next(n for n in range(1, 200) if mcnemar_power(n, gain, loss) >= 0.8)


@pytest.mark.slow
def test_what_no_suite_could_show_is_refused_soon() -> None:
    begun = process_time()
    with pytest.raises(ValueError, match="too few for gain"):
        tasks_needed(0.1001, 0.1)
    assert process_time() - begun < 20


@pytest.mark.slow
def test_the_fewest_tasks_for_a_small_difference_are_found_soon() -> None:
    begun = process_time()
    needed = tasks_needed(0.102, 0.1)
    assert process_time() - begun < 20
    # The textbook's approximation: (1.96 √s + 0.842 √(s - d²))² / d² with s = 0.202, d = 0.002.
    assert needed == pytest.approx(2.8016**2 * 0.202 / 0.002**2, rel=0.01)
    assert mcnemar_power(needed, 0.102, 0.1) >= 0.8 > mcnemar_power(needed - DIP, 0.102, 0.1)


def test_six_tasks_show_a_gain_that_never_fails() -> None:
    # 2 / 2^6 = 0.031 is the first p-value below 5 % that unanimous tasks reach.
    assert tasks_needed(1.0, 0.0) == 6


@pytest.mark.parametrize(("gain", "loss", "power"), [(0.2, 0.2, 0.8), (0.3, 0.1, 1.0), (0.3, 0.1, 0.0)])
def test_no_number_of_tasks_is_given_where_there_is_none(gain: float, loss: float, power: float) -> None:
    with pytest.raises(ValueError, match="no number of tasks"):
        tasks_needed(gain, loss, power)


@pytest.mark.parametrize(("tasks", "gain", "loss"), [(5, 0.7, 0.7), (5, -0.1, 0.2), (-1, 0.1, 0.1)])
def test_power_of_the_impossible_is_refused(tasks: int, gain: float, loss: float) -> None:
    with pytest.raises(ValueError, match="power"):
        mcnemar_power(tasks, gain, loss)


def test_bootstrap_is_a_function_of_its_seed() -> None:
    sample = [0.3, -0.1, 0.4, 0.0, 0.25, 0.1, 0.2, -0.05, 0.6, 0.15]
    assert paired_bootstrap(sample, seed=3) == paired_bootstrap(sample, seed=3)
    assert paired_bootstrap(sample, seed=3) != paired_bootstrap(sample, seed=4)


@pytest.mark.slow
def test_bootstrap_of_a_large_normal_sample_is_the_textbook_interval() -> None:
    sample = np.random.default_rng(1).normal(0.1, 1.0, 2000)
    half = 1.96 * sample.std() / 2000**0.5
    low, high = paired_bootstrap(sample.tolist())
    assert (low, high) == pytest.approx((sample.mean() - half, sample.mean() + half), abs=0.1 * half)


@pytest.mark.slow
@pytest.mark.parametrize("sample", [[1, 0, 0, -1, 1, 0], [0.3, -0.1, 0.4, 0.0, 0.25], [1] + [0] * 60])
def test_bootstrap_is_that_of_scipy(sample: list[float]) -> None:
    rng = np.random.default_rng(0)
    ends = scipy.stats.bootstrap((sample,), np.mean, n_resamples=RESAMPLES, batch=RESAMPLES, rng=rng)
    assert paired_bootstrap(sample) == pytest.approx(tuple(ends.confidence_interval), abs=1e-12)


def test_bootstrap_reaches_further_where_the_sample_does() -> None:
    low, high = paired_bootstrap([0.0] * 30 + [0.1, 0.2, 0.5, 1.0, 2.0])
    mean = 3.8 / 35
    assert high - mean > 1.3 * (mean - low)


def test_bootstrap_of_equal_differences_is_that_difference() -> None:
    assert paired_bootstrap([0.25] * 5) == (0.25, 0.25)
    assert paired_bootstrap([0.3, 0.3, 0.1 + 0.2]) == (0.3, 0.1 + 0.2)
    assert paired_bootstrap([0.0, 0.0, 1e-17]) == (0.0, 1e-17)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_bootstrap_refuses_what_is_no_number(wrong: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        paired_bootstrap([0.1, wrong, 0.2])


@pytest.mark.parametrize(("sample", "confidence"), [([], 0.95), ([1.0], 0.95), ([1.0, 2.0], 95.0)])
def test_bootstrap_wants_a_sample_and_a_confidence(sample: list[float], confidence: float) -> None:
    with pytest.raises(ValueError, match="paired_bootstrap"):
        paired_bootstrap(sample, confidence)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (6, 0), (3, 3), (9, 2), (40, 21)])
def test_flipping_signs_of_single_tasks_is_mcnemars_test(gained: int, lost: int) -> None:
    assert sign_flip([1] * gained + [-1] * lost + [0] * 5) == pytest.approx(
        mcnemar(gained, lost).p, rel=1e-12
    )


def test_flipping_signs_counts_all_signs() -> None:
    sizes = (3, 1, 2, 0, 1)
    sums = [
        abs(sum(sign * size for sign, size in zip(signs, sizes, strict=True)))
        for signs in product((1, -1), repeat=5)
    ]
    for observed in ([3, 1, 2, 0, 1], [3, -1, 2, 0, -1], [3, -1, -2, 0, 1]):
        expected = sum(total >= abs(sum(observed)) for total in sums) / len(sums)
        assert sign_flip(observed) == pytest.approx(expected, rel=1e-12)


def test_holm_raises_each_p_by_its_rank() -> None:
    # 4 · 0.005, 3 · 0.01, then 2 · 0.03 for both of the rest, as 1 · 0.04 would be less.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


def test_matched_intervals_cover_the_difference() -> None:
    """By the exact distribution of gains and losses on 12 tasks."""
    n = 12
    for gain, loss in [(0.0, 0.0), (0.1, 0.0), (0.1, 0.1), (0.3, 0.1), (0.5, 0.0), (0.25, 0.25), (0.6, 0.2)]:
        covered = 0.0
        for gained, lost in product(range(n + 1), repeat=2):
            if gained + lost <= n:
                low, high = matched_interval([1] * gained + [-1] * lost + [0] * (n - gained - lost))
                ways = comb(n, gained) * comb(n - gained, lost)
                chance = ways * gain**gained * loss**lost * (1 - gain - loss) ** (n - gained - lost)
                covered += chance * (low <= gain - loss <= high)
        assert covered > 0.92, (gain, loss, covered)
    assert matched_interval([]) == (-1.0, 1.0)
    # b = 5, c = 1 of 10: (5.5 - 1.5) / 12 ± 1.96 √((7 - 16 / 12) / 144).
    assert matched_interval([1] * 5 + [-1] + [0] * 4) == pytest.approx((-0.0555, 0.7222), abs=2e-4)
