"""Laws of the statistics, over random counts."""

from array import array
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.domain import AgentId, Objective, Tally
from dgm.policies.hgm import best_belief
from dgm.stats import best_of_many, lower_bound, mcnemar, mcnemar_power, wilson

pytestmark = pytest.mark.slow

COUNTS = st.integers(0, 40)
TALLIES = st.builds(Tally, COUNTS, COUNTS)
LAWS = settings(max_examples=60, deadline=None)


@LAWS
@given(TALLIES)
def test_intervals_hold_the_rate_and_grow_with_confidence(tally: Tally) -> None:
    low, high = wilson(tally)
    assert 0 <= low <= high <= 1
    assert not tally.n or low <= tally.rate <= high
    wide = wilson(tally, z=2.6)
    assert wide[0] <= low <= high <= wide[1]


@LAWS
@given(TALLIES)
def test_the_lower_bound_rises_with_successes_and_falls_with_failures(tally: Tally) -> None:
    bound = lower_bound(tally)
    assert lower_bound(tally + Tally(1, 0)) > bound > lower_bound(tally + Tally(0, 1))


@LAWS
@given(COUNTS, COUNTS)
def test_a_p_value_is_a_chance_that_falls_as_results_differ_more(first: int, second: int) -> None:
    more, less = max(first, second), min(first, second)
    assert 0 < mcnemar(more + 1, less) <= mcnemar(more, less) == mcnemar(less, more) <= 1


@LAWS
@given(st.integers(0, 40), st.floats(0, 0.5))
def test_without_a_difference_the_test_seldom_rejects(tasks: int, either: float) -> None:
    assert mcnemar_power(tasks, either, either) <= 0.05 + 1e-9


@pytest.mark.slow
@LAWS
@given(st.lists(TALLIES, min_size=2, max_size=8).filter(lambda tallies: any(one.n for one in tallies)))
def test_the_corrected_rate_is_a_rate_and_ignores_order(tallies: list[Tally]) -> None:
    chosen = max(tallies, key=lower_bound)
    corrected = best_of_many(chosen, tallies)
    assert 0 < corrected < 1
    assert abs(best_of_many(chosen, tallies[::-1]) - corrected) < 1e-9


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.builds(Tally, st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20))
def test_the_best_belief_is_the_one_that_a_plain_search_finds(tallies: list[Tally]) -> None:
    tree = SimpleNamespace(
        own_resolved=array("q", [one.resolved for one in tallies]),
        own_unresolved=array("q", [one.unresolved for one in tallies]),
        agents=[SimpleNamespace(id=AgentId(n)) for n in range(len(tallies))],
        objective=Objective(),
    )
    belief = [(one.n > 0, lower_bound(one), one.n) for one in tallies]
    assert best_belief(tree) == belief.index(max(belief))
