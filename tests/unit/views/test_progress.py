"""The forecast: the time until each limit is reached, and nothing invented."""

import pytest

from dgm.domain import Budget
from dgm.views.progress import BudgetUse, RatesView, budget_uses, nearest_limit, predict

HOUR = RatesView(
    window_s=3600.0,
    events_per_hour=500,
    evaluations_per_hour=30,
    expansions_per_hour=10,
    tokens_per_second=2,
    usd_per_hour=0.5,
)


def uses_of(
    budget: Budget, evaluations: float, usd: float, tokens: int, seconds: float
) -> dict[str, BudgetUse]:
    return budget_uses(budget, evaluations=evaluations, agents=3, usd=usd, tokens=tokens, seconds=seconds)


def test_the_limit_with_the_earliest_end_binds() -> None:
    budget = Budget(evaluations=60, usd=1.0, tokens=9_000_000, seconds=36_000.0, agents=3)
    uses, forecast = predict(uses_of(budget, 30, 0.75, 7200, 3600.0), HOUR, 0.0, 100.0)
    assert {name: use.left_s for name, use in uses.items()} == {
        "evaluations": 3600.0,
        "agents": None,
        "usd": 1800.0,
        "tokens": pytest.approx((9_000_000 - 7200) / 2),
        "seconds": 32_400.0,
    }
    assert (forecast.binding, forecast.complete, forecast.ends_unix_s) == ("usd", True, 1900.0)


def test_expansions_take_from_the_evaluations_if_the_budget_says_so() -> None:
    uses, _ = predict(uses_of(Budget(evaluations=100), 50, 0.0, 0, 0.0), HOUR, 2.0, 0.0)
    assert uses["evaluations"].left_s == pytest.approx(3600.0)


def test_an_unknown_limit_is_not_predicted_and_time_needs_no_rates() -> None:
    uses, forecast = predict(
        uses_of(Budget(evaluations=60, seconds=7200.0), 1, 0.0, 0, 100.0), None, 0.0, 0.0
    )
    assert (uses["evaluations"].left_s, uses["evaluations"].unknown) == (None, "not yet known")
    assert (uses["seconds"].left_s, forecast.binding, forecast.complete) == (7100.0, "seconds", False)


def test_an_unused_limit_has_no_end() -> None:
    free = HOUR.model_copy(update={"usd_per_hour": 0.0})
    uses, forecast = predict(uses_of(Budget(usd=1.0), 9, 0.0, 0, 3600.0), free, 0.0, 0.0)
    assert (uses["usd"].left_s, uses["usd"].unknown) == (None, "not used at the present rate")
    assert (forecast.binding, forecast.complete) == (None, True)


def test_a_spent_limit_is_over_at_once() -> None:
    uses, forecast = predict(uses_of(Budget(usd=1.0), 0, 1.2, 0, 3600.0), None, 0.0, 0.0)
    assert (forecast.left_s, uses["usd"].left, uses["usd"].share) == (0.0, 0.0, 1.2)


def test_the_nearest_limit_is_the_one_with_the_largest_used_share() -> None:
    budget = Budget(agents=3, usd=4.0, evaluations=100)
    assert nearest_limit(uses_of(budget, 10, 1.0, 0, 0.0)) == "usd"
    assert nearest_limit({}) is None
