"""What keeps ``lineage`` from believing its own optimism: far lines wait, and no task becomes the measure of all."""

from random import Random

from dgm.archive.events import ActionStarted, TaskGraded
from dgm.domain import Budget, Evaluate, Evaluation, TaskId, Verdict
from dgm.policies.lineage import outlook as of_a_tree
from dgm.policies.lineage.fold import Fold
from dgm.policies.lineage.rules import InformativeTask
from dgm.policies.rules import Kit
from tests.unit.worlds import Log

MANY = tuple(TaskId(f"task-{n:02}") for n in range(60))


def folded(log):
    fold = Fold()
    for event in log.events:
        fold.observe(event)
    return fold


def grade(log, agent, task, resolved):
    action = log.tree.next_action
    log.add(ActionStarted(action, Evaluate(agent, task)))
    verdict = Verdict.RESOLVED if resolved else Verdict.UNRESOLVED
    log.add(TaskGraded(action, Evaluation(agent, task, 0, verdict, "")))


def a_far_line():
    """A seed, and a failing child that is made out to be far below it and hardly known; the seed's children lose."""
    log = Log(Budget(evaluations=2000), MANY)
    log.born()
    log.graded(0, [True] * 10 + [False] * 50)
    grade(log, log.born(0), MANY[0], False)
    outlook = folded(log).outlook(log.tree)
    outlook.skill[1] = outlook.skill[0] - 6.0
    outlook._tt[1] = 12.0
    outlook._drift[0] = -0.6
    return outlook


def test_a_line_far_below_waits_however_little_is_known_of_it(monkeypatch):
    assert a_far_line().parent == 0
    monkeypatch.setattr(of_a_tree, "REACH", float("inf"))
    assert a_far_line().parent == 1, "a long chance of much is worth more than a good one of little"


def test_where_nobody_is_within_reach_somebody_still_has_a_child(monkeypatch):
    monkeypatch.setattr(of_a_tree, "REACH", -100.0)
    assert a_far_line().parent == 1


def test_no_task_becomes_the_measure_of_all(monkeypatch):
    log = Log(Budget(evaluations=2000), MANY)
    log.born()
    grade(log, 0, MANY[0], True)
    for child in range(1, 60):
        log.born(0)
        grade(log, child, MANY[0], child % 2 == 0)
    log.born(0)

    def asked():
        kit = Kit()
        rule = InformativeTask(kit)
        for event in log.events:
            kit.shared(Fold).observe(event)
        return {rule.task(log.tree, log.tree.agents[-1].id, Random(seed)) for seed in range(10)}

    assert MANY[0] not in asked()
    monkeypatch.setattr(of_a_tree, "TASK_SHARE", float("inf"))
    assert asked() == {MANY[0]}, "its difficulty is known best"
