"""What ``hgm`` and ``random`` decide on trees made by hand, and which agent is believed in."""

from collections import Counter
from random import Random

import pytest

from dgm.archive.events import ActionStarted
from dgm.domain import AgentId, Budget, Evaluate, Expand
from dgm.policies.best_belief import best_belief
from tests.support.runs.trees import TASKS, Log, named

pytestmark = pytest.mark.slow


@pytest.fixture(params=["hgm", "random"])
def policy(request):
    return named(request.param)


def decide(policy, log, seed=0):
    return policy.next(log.tree, Random(seed))


def test_an_unevaluated_seed_is_evaluated_first(policy):
    log = Log()
    log.born()
    action = decide(policy, log)
    assert isinstance(action, Evaluate)
    assert action.agent == 0


def test_the_archive_widens_with_the_0_6th_power_of_evaluations(policy):
    log = Log()
    for parent in (None, 0, 0, 0):
        log.born(*(() if parent is None else (parent,)))
    log.graded(0, [True] * 10)
    assert 10**0.6 < 4, "four agents are one too many for ten evaluations"
    assert isinstance(decide(policy, log), Evaluate)
    log.graded(1, [True])
    assert 11**0.6 > 4
    assert isinstance(decide(policy, log), Expand)


def test_stillborn_children_count_as_agents(policy):
    log = Log()
    log.born()
    log.born(0)
    log.graded(0, [True, False] * 4)
    log.graded(1, [True, False])
    assert 3 < 10**0.6 < 4
    log.made((0,), "self-edit", dies="check")
    assert isinstance(decide(policy, log), Expand)
    log.made((0,), "self-edit", dies="check")
    assert isinstance(decide(policy, log), Evaluate)


def test_pending_births_count_as_agents(policy):
    log = Log()
    log.born()
    log.graded(0, [True])
    assert isinstance(decide(policy, log), Expand)
    log.add(ActionStarted(log.tree.next_action, Expand((AgentId(0),), "self-edit")))
    assert isinstance(decide(policy, log), Evaluate)


def test_no_task_is_given_twice_to_an_agent(policy):
    log = Log(Budget(agents=1))
    log.born()
    for seed in range(len(TASKS)):
        action = decide(policy, log, seed)
        assert isinstance(action, Evaluate)
        assert action.task not in log.tree.tried(AgentId(0))
        log.add(ActionStarted(log.tree.next_action, action))
    assert decide(policy, log) is None


def test_the_archive_never_outgrows_its_budget(policy):
    log = Log(Budget(agents=2, evaluations=100))
    log.born()
    log.graded(0, [True] * 9)
    log.add(ActionStarted(log.tree.next_action, Expand((AgentId(0),), "self-edit")))
    assert isinstance(decide(policy, log), Evaluate)


def test_hgm_prefers_parents_by_clade_and_not_by_own_tally():
    log = Log()
    log.born()
    log.born(0)
    log.born(1)
    log.graded(0, [True, False] * 3)
    log.graded(1, [False] * 4)
    log.graded(2, [True] * 10)
    drawn = Counter(
        action.parents[0]
        for seed in range(300)
        if isinstance(action := decide(named("hgm"), log, seed), Expand)
    )
    assert sum(drawn.values()) == 300
    # Clades: 0 has 13 of 20, 1 has 10 of 14, 2 has 10 of 10. Own: 1 has 0 of 4, yet it is drawn through its child.
    assert drawn[AgentId(2)] > drawn[AgentId(1)] > 5


def test_the_best_belief_is_not_the_luckiest():
    log = Log(tasks=tuple(TASKS) + tuple(f"more-{n}" for n in range(20)))
    log.born()
    log.born(0)
    log.graded(0, [True] * 16 + [False] * 4)
    log.graded(1, [True])
    assert best_belief(log.tree) == 0


def test_an_agent_without_evaluations_is_never_the_best():
    log = Log()
    log.born()
    log.born(0)
    log.graded(0, [False] * 5)
    assert best_belief(log.tree) == 0
