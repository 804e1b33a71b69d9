"""The forecast: rates of late, the end by each budget, and nothing invented where little is known."""

import pytest

from dgm.analysis.budget_use import BudgetTotals, compute_budget_uses
from dgm.analysis.forecast import (
    EvaluationSample,
    NoForecastReason,
    ObservedProgress,
    compute_rates,
    compute_reach,
    predict_ends,
)
from dgm.config import resolve
from dgm.domain import Budget
from dgm.models.pricing import Price, TokenRates
from dgm.search.costs import max_evaluation_usd, max_remaining_usd

HOUR = ObservedProgress(3600.0, events=500, ended=40, evaluations=30, expansions=10, tokens=7200, usd=0.5)


def uses_of(budget, evaluations, usd, tokens, seconds):
    return compute_budget_uses(budget, BudgetTotals(evaluations, 3, usd, tokens, seconds))


def test_rates_are_per_hour_and_tokens_per_second():
    rates = compute_rates(HOUR)
    assert rates is not None
    assert (rates.events_per_hour, rates.evaluations_per_hour, rates.expansions_per_hour) == (500, 30, 10)
    assert (rates.tokens_per_second, rates.usd_per_hour, rates.window_s) == (2, 0.5, 3600)


@pytest.mark.parametrize(
    "observed", [ObservedProgress(3600.0, ended=2, tokens=99), ObservedProgress(0.0, ended=9)]
)
def test_too_little_gives_no_rates(observed):
    assert compute_rates(observed) is None


def test_the_budget_with_the_earliest_end_binds():
    budget = Budget(evaluations=60, usd=1.0, tokens=9_000_000, seconds=36_000.0, agents=3)
    found = predict_ends(uses_of(budget, 30, 0.75, 7200, 3600.0), compute_rates(HOUR))
    assert {end.budget: end.left_s for end in found.ends} == {
        "evaluations": 3600.0,
        "usd": 1800.0,
        "tokens": pytest.approx((9_000_000 - 7200) / 2),
        "seconds": 32_400.0,
    }
    assert found.binding is not None
    assert (found.binding.budget, found.complete) == ("usd", True)


def test_expansions_take_of_the_evaluations_where_the_budget_says_so():
    uses = uses_of(Budget(evaluations=100), 50, 0.0, 0, 0.0)
    assert predict_ends(uses, compute_rates(HOUR), expansion_cost=2.0).ends[0].left_s == pytest.approx(3600.0)


def test_what_is_not_known_is_not_predicted_and_time_needs_no_rates():
    uses = uses_of(Budget(evaluations=60, seconds=7200.0), 1, 0.0, 0, 100.0)
    found = predict_ends(uses, None)
    evaluations, seconds = found.ends
    assert (evaluations.left_s, evaluations.unknown) == (None, NoForecastReason.TOO_LITTLE)
    assert seconds.left_s == 7100.0
    assert found.binding is seconds
    assert not found.complete


def test_a_budget_that_nothing_is_taken_of_has_no_end():
    free = compute_rates(ObservedProgress(3600.0, ended=9, evaluations=9))
    found = predict_ends(uses_of(Budget(usd=1.0), 9, 0.0, 0, 3600.0), free)
    assert (found.ends[0].left_s, found.ends[0].unknown) == (None, NoForecastReason.UNUSED)
    assert (found.binding, found.complete) == (None, True)


def test_a_spent_budget_is_over_at_once_even_if_nothing_else_is_known():
    found = predict_ends(uses_of(Budget(usd=1.0), 0, 1.2, 0, 3600.0), None)
    assert found.binding is not None
    assert found.binding.left_s == 0.0


TRIES = [EvaluationSample(0.03, 60.0), EvaluationSample(0.05, 100.0)]


def test_two_tries_say_how_long_the_money_lasts():
    reach = compute_reach(TRIES, Budget(usd=20.0, evaluations=1000), 0.1, 2, 8)
    assert (reach.usd, reach.tries, reach.by, reach.evaluations) == (0.04, 2, "usd", 497)
    assert reach.seconds == pytest.approx(497 * 80 / 8)


@pytest.mark.parametrize(
    ("budget", "by", "left"),
    [
        (Budget(evaluations=10), "evaluations", 8),
        (Budget(usd=20.0, evaluations=10), "evaluations", 8),
        (Budget(seconds=60.0), "", None),
        (Budget(usd=0.05), "usd", 0),
    ],
)
def test_what_limits_the_evaluations(budget, by, left):
    reach = compute_reach(TRIES, budget, 0.08, 2, 1)
    assert (reach.by, reach.evaluations) == (by, left)


def test_the_worst_of_an_evaluation_follows_from_the_limits():
    price = Price(TokenRates(3.0, 3.0, 3.0, 15.0))
    # 80 replies of 16,000 tokens, the rest of 4,000,000 tokens as input.
    assert max_evaluation_usd(resolve(None, [], {}), price) == pytest.approx(1.28 * 15 + 2.72 * 3)
    assert max_evaluation_usd(resolve(None, ["limits.usd=0.5"], {}), price) == 0.5
    small = resolve(None, ["limits.calls=10", "limits.output_tokens=1000", "limits.tokens=100000"], {})
    assert max_evaluation_usd(small, price) == pytest.approx(0.01 * 15 + 0.09 * 3)
    with_context = Price(TokenRates(3.0, 3.0, 3.0, 15.0), context=5_000)
    assert max_evaluation_usd(small, with_context) == pytest.approx(0.01 * 15 + 0.04 * 3)
    # By default the replies of a model that can give more have 32,000 tokens.
    long = Price(TokenRates(3.0, 3.0, 3.0, 15.0), max_output=64_000)
    assert max_evaluation_usd(resolve(None, [], {}), long) == pytest.approx(2.56 * 15 + 1.44 * 3)


def test_both_tries_at_an_exercise_count():
    price = Price(TokenRates(3.0, 3.0, 3.0, 15.0))
    twice = resolve(None, ["benchmarks.polyglot.attempts=2", "limits.usd=0.5"], {"benchmark": "polyglot:x"})
    assert max_evaluation_usd(twice, price) == 1.0


def test_the_worst_of_a_run_is_what_its_money_and_tokens_leave():
    paid = resolve(
        None, ["model=openai-compatible/m", 'models.prices."openai-compatible/m"={input=3, output=15}'], {}
    )
    assert max_remaining_usd(paid, Budget(usd=2.0), 0.5) == 1.5
    assert max_remaining_usd(paid, Budget(evaluations=9), 0.5) is None
    assert max_remaining_usd(paid, Budget(usd=2.0, tokens=1000), 0.5) == pytest.approx(0.018)
