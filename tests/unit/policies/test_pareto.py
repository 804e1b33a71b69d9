"""The rules of ``pareto`` on trees made by hand."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from dgm.archive.events import ActionStarted, AgentBorn, TaskGraded
from dgm.domain import AgentId, Born, Budget, CommitId, Evaluate, Evaluation, Expand, TaskId, Verdict
from dgm.policies.pareto import (
    BatchFirst,
    BatchTask,
    FrontFrequency,
    is_candidate,
    parent_probabilities,
    undominated,
)
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import TASKS, Log, named


def vectors(log, *rows, parent=0):
    """Agents with these outcomes; tasks are tried in the order of the suite."""
    for row in rows:
        agent = log.born(*([parent] if log.tree.agents else []))
        log.graded(agent, [mark == "1" for mark in row])
    return log


def grade(log, agent, task, resolved):
    action = log.tree.next_action
    log.add(ActionStarted(action, Evaluate(AgentId(agent), TaskId(task))))
    verdict = Verdict.RESOLVED if resolved else Verdict.UNRESOLVED
    log.add(TaskGraded(action, Evaluation(AgentId(agent), TaskId(task), 0, verdict, "")))


def test_chances_are_in_proportion_to_the_fronts_of_who_is_not_dominated():
    # Fronts: tasks 0 and 1: agents 1, 2; task 2: 1; tasks 3, 4: 2; 5 to 8: nobody, so everybody; 9: seed.
    log = vectors(Log(), "0000000001", "1110000000", "1101100000")
    assert parent_probabilities(log.tree).tolist() == pytest.approx([5 / 20, 7 / 20, 8 / 20], abs=1e-12)


def test_dominated_agents_have_no_chance():
    log = vectors(Log(), "0001000000", "1100000000", "1101100000", "1110000000")
    shares = parent_probabilities(log.tree)
    assert shares[0] == 0.0, "agent 2 solved all that the seed did"
    assert shares[1] == 0.0, "and all that agent 1 did"
    assert shares[2] > 0.0 < shares[3]


def test_of_two_that_dominate_each_other_the_worse_goes():
    fronts = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]], dtype=np.float64)
    assert undominated(fronts, np.array([2, 0, 1])).tolist() == [1]


def test_those_who_solved_least_are_dropped_first():
    # Task 0: agents 1 and 3; 1: 1 and 2; 2: 2 and 3; 3: 2 and 3. Any one of the three can go, and only one.
    log = vectors(Log(), "0000000000", "1100000000", "0111000000", "1011000000")
    shares = parent_probabilities(log.tree)
    assert shares[1] == 0.0
    assert shares[2] > 0.0 < shares[3]


def test_dropping_goes_on_until_nobody_is_dominated():
    fronts = np.array([[1, 0], [1, 1], [0, 1]], dtype=np.float64)
    assert undominated(fronts, np.array([1, 0, 2])).tolist() == [0, 2]


def test_a_child_must_beat_its_parent_on_its_first_three_tasks():
    log = vectors(Log(), "1000000000", "110", "100", "0101111111", "11")
    assert [is_candidate(log.tree, AgentId(agent)) for agent in range(5)] == [True, True, False, False, False]


def test_only_children_that_passed_their_batch_are_evaluated_further():
    rule = BatchFirst(PolicyContext())
    log = vectors(Log(), "1000000000", "100")
    assert rule.target(log.tree, Random(0)) is None
    vectors(log, "11")
    assert rule.target(log.tree, Random(0)) == 2
    log.graded(2, [False])
    assert rule.target(log.tree, Random(0)) == 2, "it passed: 2 of 3 against 1"
    log.graded(2, [False] * 7)
    assert rule.target(log.tree, Random(0)) is None


def test_a_full_archive_evaluates_those_too_that_failed_their_batch():
    log = vectors(Log(Budget(agents=3, evaluations=100)), "1000000000", "100")
    rule = BatchFirst(PolicyContext())
    assert rule.target(log.tree, Random(0)) is None, "there is room for another child"
    action = log.tree.next_action
    log.add(ActionStarted(action, Expand((AgentId(0),), "self-edit")))
    assert rule.target(log.tree, Random(0)) is None, "which may be one to evaluate"
    log.add(AgentBorn(action, AgentId(2), Born((AgentId(0),), "self-edit", CommitId("c2"), "")))
    log.graded(2, [False] * 3)
    assert rule.target(log.tree, Random(0)) == 1


def test_no_more_than_a_batch_is_started_before_it_is_known():
    log = vectors(Log(), "1000000000", "")
    policy = named("pareto")
    for _ in range(3):
        action = policy.next(log.tree, Random(log.tree.next_action))
        assert isinstance(action, Evaluate)
        assert action.agent == 1
        log.add(ActionStarted(log.tree.next_action, action))
    assert isinstance(policy.next(log.tree, Random(0)), Expand)


def test_a_batch_holds_a_task_that_the_parent_failed():
    log = vectors(Log(), "1111111110", "")
    rule = BatchTask(PolicyContext())
    grade(log, 1, TASKS[0], resolved=True)
    grade(log, 1, TASKS[1], resolved=True)
    assert {rule.task(log.tree, AgentId(1), Random(seed)) for seed in range(20)} == {TASKS[9]}


def test_a_batch_holds_tasks_that_the_parent_tried():
    log = vectors(Log(), "0000", "")
    rule = BatchTask(PolicyContext())
    drawn = {rule.task(log.tree, AgentId(1), Random(seed)) for seed in range(60)}
    assert drawn == set(TASKS[:4])


@pytest.mark.slow
def test_draws_follow_the_fronts():
    log = vectors(Log(), "0000000001", "1110000000", "1101100000")
    rule = FrontFrequency(PolicyContext())
    drawn = Counter(rule.parents(log.tree, Random(seed))[0] for seed in range(2000))
    assert drawn[AgentId(2)] > drawn[AgentId(1)] > drawn[AgentId(0)] > 400
