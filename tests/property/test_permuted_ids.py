"""Ids are names: siblings that are born in another order are treated alike, by every policy."""

from collections import Counter
from functools import cache
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dgm.domain import Budget, Evaluate
from dgm.policies.registry import POLICIES
from tests.unit.worlds import Log, named

EVERY_POLICY = sorted(POLICIES)
NEWEST_COUNTS = {"adas", "no-archive", "sica"}
"""Ask by definition who was born last; so the last child stays in its place."""
BY_TALLY = ["best-of-n", "hgm", "hgm-published", "lineage", "random"]
"""The others evaluate the oldest agent that has a task left, by definition."""
DRAWS = 600
MOST_APART = 5 * (0.5 / DRAWS) ** 0.5
"""Of two frequencies: 5 standard errors of their difference at the most; the draws are seeded."""
DONE = {1: "1110000000", 2: "1101101000", 3: "1111101100", 4: "1100000011", 5: "1101111111"}
BEGUN = {1: "11", 2: "101", 3: "1111", 4: "000", 5: "10"}


def archive(order, results, budget):
    """A seed and its five children, born in this order; each child's results go with its number."""
    log = Log(Budget(evaluations=budget))
    log.born()
    log.graded(0, [False, True] * (1 if results is BEGUN else 5))
    for _ in order:
        log.born(0)
    for number in sorted(order):
        log.graded(1 + order.index(number), [mark == "1" for mark in results[number]])
    return log


@cache
def decisions(name, order, begun):
    """How often each kind of step falls to each child, by its number; the seed is 0."""
    # In the last tenth of its budget lineage only evaluates.
    log = archive(order, BEGUN if begun else DONE, 17 if begun and name == "lineage" else 300)
    policy, numbers = named(name), (0, *order)
    for event in log.events:
        policy.observe(event)
    made = Counter()
    for seed in range(DRAWS):
        action = policy.next(log.tree, Random(seed))
        agent = action.agent if isinstance(action, Evaluate) else action.parents[0]
        made[type(action).__name__, numbers[agent]] += 1
    return made


def assert_alike(one, other):
    for step in one | other:
        assert abs(one[step] - other[step]) / DRAWS < MOST_APART, step
    if len(one) == 1:
        assert one == other


@pytest.mark.parametrize("name", EVERY_POLICY)
@settings(max_examples=3, deadline=None)
@example(order=[5, 4, 3, 2, 1])
@given(order=st.permutations([1, 2, 3, 4, 5]))
def test_whose_child_is_next_does_not_hang_on_ids(name, order):
    if name in NEWEST_COUNTS:
        order = [*(number for number in order if number != 5), 5]
    before = decisions(name, (1, 2, 3, 4, 5), False)
    assert {kind for kind, _ in before} == {"Expand"}
    assert_alike(before, decisions(name, tuple(order), False))


@pytest.mark.parametrize("name", BY_TALLY)
@settings(max_examples=3, deadline=None)
@example(order=[5, 4, 3, 2, 1])
@given(order=st.permutations([1, 2, 3, 4, 5]))
def test_who_is_evaluated_next_does_not_hang_on_ids(name, order):
    before = decisions(name, (1, 2, 3, 4, 5), True)
    assert {kind for kind, _ in before} == {"Evaluate"}
    assert_alike(before, decisions(name, tuple(order), True))
