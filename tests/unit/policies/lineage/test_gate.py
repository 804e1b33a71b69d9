"""When the gate of ``lineage`` lets a child pay: not before the evaluations that are due for it."""

from random import Random
from types import SimpleNamespace

import pytest

from dgm.archive.events import ActionStarted
from dgm.domain import AgentId, Budget, Expand
from dgm.policies.lineage.rules import LineageGate
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import Log


def expands(evaluations, expansions, cost=1.0, **outlook):
    """What the gate says where a child pays, after so many evaluations and expansions begun."""
    log = Log(Budget(evaluations=1000))
    for agent in range(3):
        log.born(*[0] * bool(agent))
    for agent in range(evaluations):
        log.graded(agent % 3, [True])
    for _ in range(expansions):
        log.add(ActionStarted(log.tree.next_action, Expand((AgentId(0),), "self-edit")))
    gate = LineageGate(PolicyContext())
    seen = SimpleNamespace(**{"urgent": None, "expansion_cost": cost, "expansion_pays": True, **outlook})
    gate._fold = SimpleNamespace(outlook=lambda tree: seen)
    return gate.expands(log.tree, Random(0))


@pytest.mark.parametrize(("expansions", "cost", "due"), [(0, 1.0, 1), (1, 1.0, 2), (4, 0.5, 5), (3, 5.0, 8)])
def test_as_many_evaluations_are_due_as_expansions_and_more_where_those_are_dear(expansions, cost, due):
    # Each evaluation that an expansion costs above the first makes a quarter of an evaluation more due.
    assert not expands(due - 1, expansions, cost)
    assert expands(due, expansions, cost)


def test_no_child_comes_before_an_urgent_evaluation_nor_where_it_does_not_pay():
    assert not expands(5, 0, urgent=AgentId(2))
    assert not expands(5, 0, expansion_pays=False)
