"""Number of evaluations that a budget pays for, by the cost of the first ones."""

import pytest

from dgm.config import resolve
from dgm.domain import Budget
from dgm.models.pricing import Price, TokenRates
from dgm.search.start import EvaluationSample, compute_reach, max_evaluation_usd, max_remaining_usd

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
