"""The parent rule of ``uct`` on trees made by hand."""

import math
from random import Random

import pytest

from dgm.archive.events import ActionStarted, AgentStillborn
from dgm.domain import AgentId, Evaluate, Expand, Stillborn
from dgm.policies.limits import BARREN
from dgm.policies.rules import PolicyContext
from dgm.policies.uct import UNIT, TreeWalk, upper_bound
from tests.support.runs.trees import TASKS, Log


def parent(log):
    return TreeWalk(PolicyContext()).parents(log.tree, Random(0))


def expanding(log, agent):
    action = log.tree.next_action
    log.add(ActionStarted(action, Expand((AgentId(agent),), "self-edit")))
    return action


def family(*resolved):
    """A seed with one child per number of resolved tasks of ten."""
    log = Log()
    log.born()
    log.graded(0, [True] * 3 + [False] * 7)
    for child, count in enumerate(resolved, start=1):
        log.born(0)
        log.graded(child, [True] * count + [False] * (10 - count))
    return log


def test_the_bound_is_the_formula():
    expected = 2.4 / 4 + math.sqrt(2) * math.sqrt(math.log(9) / 4)
    assert upper_bound(24 * UNIT // 10, 4, 9) == pytest.approx(expected, abs=1e-12)


def test_an_agent_with_fewer_than_three_children_is_expanded():
    assert parent(family(9, 9)) == (0,)


def test_below_a_full_agent_the_best_of_equally_visited_children_is_taken():
    assert parent(family(2, 8, 5)) == (2,)


def test_a_child_with_bad_offspring_loses_to_its_sibling():
    log = family(8, 7, 2)
    for child in (4, 5):
        log.born(1)
        log.graded(child, [False] * 10)
    # N = 6. Child 1: 0.8 in 3 visits, 1.36; child 2: 0.7 in 1 visit, 2.59; child 3: 2.09.
    assert parent(log) == (2,)


def test_an_agent_that_is_not_judged_yet_is_a_visit_without_reward():
    log = family(10, 2, 1)
    log.born(1)
    log.graded(4, [True] * 3)
    log.add(ActionStarted(log.tree.next_action, Evaluate(AgentId(4), TASKS[9])))
    # N = 5. Child 1: 1.0 in 2 visits, 1.77 (with the grandchild's 3 of 3, 2.27); child 2: 0.2 in 1 visit, 1.99.
    assert parent(log) == (2,)


def test_virtual_loss_spreads_parallel_workers():
    log = family(8, 7, 6)
    chosen = []
    for _ in range(3):
        chosen.append(parent(log)[0])
        expanding(log, chosen[-1])
    assert chosen == [1, 2, 3]


def test_a_stillborn_child_leaves_its_place_to_another():
    log = family(9, 9)
    action = expanding(log, 0)
    assert parent(log) == (1,)
    log.add(AgentStillborn(action, Stillborn((AgentId(0),), "self-edit", "vetting", "broken")))
    assert parent(log) == (0,)


def test_where_no_child_is_judged_workers_need_not_wait():
    log = family()
    for _ in range(5):
        assert parent(log) == (0,)
        expanding(log, 0)


def test_an_agent_of_two_parents_is_a_node_below_the_first():
    log = family(2, 8, 5)
    for _ in range(3):
        log.born(1, 2)
    assert parent(log) == (2,), "agent 2 has children of its own still to make"


def stillborn(log, agent):
    dead = Stillborn((AgentId(agent),), "self-edit", "vetting", "broken")
    log.add(AgentStillborn(expanding(log, agent), dead))


def test_stillborn_children_are_visits_without_reward():
    log = family(8, 8, 2)
    assert parent(log) == (1,)
    stillborn(log, 1)
    # N = 5. Child 1: 0.8 in 2 visits, 1.67; child 2: 0.8 in 1 visit, 2.59.
    assert parent(log) == (2,)


def test_the_walk_goes_past_an_agent_that_can_have_no_child():
    log = family(9, 9)
    for _ in range(BARREN - 1):
        stillborn(log, 0)
    assert parent(log) == (0,)
    stillborn(log, 0)
    assert parent(log) == (1,)


def test_the_walk_passes_by_clades_where_nobody_can_have_a_child():
    log = family(9, 1, 1)
    log.born(1)
    log.graded(4, [True] * 10)
    for agent in (1, 4):
        for _ in range(BARREN):
            stillborn(log, agent)
    assert parent(log) in {(2,), (3,)}
    for agent in (2, 3):
        for _ in range(BARREN):
            stillborn(log, agent)
    assert parent(log) == (0,), "its children lead nowhere"
    for _ in range(BARREN):
        stillborn(log, 0)
    assert parent(log) == ()
