"""Choosing the best flatters it: how much of that the correction takes back, where its assumptions hold."""

from math import lgamma

import numpy as np
import pytest

from dgm.domain import Tally
from dgm.stats import best_of_many

SEARCHES = 60


def biases(shape: tuple[float, float], agents: int, tasks: int, seed: int) -> tuple[float, float]:
    """Mean error of the naive and of the corrected rate of the best of ``agents``, over simulated searches."""
    rng = np.random.default_rng(seed)
    naive, corrected = [], []
    for _ in range(SEARCHES):
        rates = rng.beta(*shape, size=agents)
        tallies = [Tally(int(r), int(tasks - r)) for r in rng.binomial(tasks, rates)]
        best = max(range(agents), key=lambda n: tallies[n].resolved)
        naive.append(tallies[best].rate - rates[best])
        corrected.append(best_of_many(tallies[best], tallies) - rates[best])
    return float(np.mean(naive)), float(np.mean(corrected))


# Over seeds 100 to 112 (52 cells) the corrected bias was at most 24 % of the naive one, half the time below 7 %.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "agents", "tasks"), [((3, 3), 100, 5), ((2, 8), 31, 20), ((60, 40), 31, 20), ((10, 10), 31, 20)]
)
def test_most_of_the_winners_curse_is_taken_back(shape: tuple[float, float], agents: int, tasks: int) -> None:
    naive, corrected = biases(shape, agents, tasks, seed=1)
    assert naive > 0.04
    assert abs(corrected) < 0.4 * naive


def test_rates_that_differ_little_are_drawn_together_and_rates_that_differ_much_are_not() -> None:
    alike = [Tally(10 + n % 3, 10 - n % 3) for n in range(30)]
    apart = [Tally(1, 19)] * 15 + [Tally(12, 8)] * 15
    assert best_of_many(Tally(12, 8), alike) == pytest.approx(0.55, abs=0.01)
    assert 0.55 < best_of_many(Tally(12, 8), apart) < 0.6


def test_much_evidence_is_believed() -> None:
    tallies = [Tally(8_000, 2_000), *[Tally(n, 20 - n) for n in range(5, 12)]]
    assert best_of_many(tallies[0], tallies) == pytest.approx(0.8, abs=0.002)


@pytest.mark.slow
def test_a_hundred_thousand_agents_give_one_sharp_prior() -> None:
    # Beta(3, 7) with 10 tasks each: the posterior mean of 9 in 10 is (3 + 9) / 20.
    rng = np.random.default_rng(5)
    solved = rng.binomial(10, rng.beta(3, 7, size=100_000)).tolist()
    assert best_of_many(Tally(9, 1), [Tally(r, 10 - r) for r in solved]) == pytest.approx(0.6, abs=0.01)


@pytest.mark.slow
def test_the_grid_gives_the_integral() -> None:
    """Against a plain sum over a fine grid of the same posterior, written out with log-gammas."""
    tallies = [Tally(7, 3), Tally(2, 8), Tally(4, 6), Tally(0, 2)]

    def beta(a: float, b: float) -> float:
        return lgamma(a) + lgamma(b) - lgamma(a + b)

    total = weights = 0.0
    for mean in (np.arange(300) + 0.5) / 300:
        for spread in (np.arange(300) + 0.5) / 300:
            a, b = mean * spread**-2, (1 - mean) * spread**-2
            weight = np.exp(sum(beta(a + t.resolved, b + t.unresolved) - beta(a, b) for t in tallies))
            weights += weight
            total += weight * (a + 7) / (a + b + 10)
    assert best_of_many(tallies[0], tallies) == pytest.approx(total / weights, abs=2e-3)


def test_who_was_not_evaluated_says_nothing() -> None:
    tallies = [Tally(7, 3), Tally(2, 8)]
    assert best_of_many(tallies[0], [*tallies, Tally()]) == best_of_many(tallies[0], tallies)
    with pytest.raises(ValueError, match="nobody"):
        best_of_many(Tally(), [Tally()])
