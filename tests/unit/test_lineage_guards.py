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


def children(failed, solved):
    """A seed that solves half of 60 tasks, and children of it with three results each."""
    log = Log(Budget(evaluations=2000), MANY)
    log.born()
    log.graded(0, [True, False] * 30)
    for broken in [True] * failed + [False] * solved:
        child = log.born(0)
        for task in MANY[0:6:2]:
            grade(log, child, task, not broken)
    return log


def test_edits_are_said_to_break_the_agent_often_when_enough_first_children_solved_nothing():
    assert not folded(children(6, 3)).posterior.often_broken
    assert folded(children(7, 3)).posterior.often_broken
    assert not folded(children(0, 20)).posterior.often_broken


def failing(log, parent):
    child = log.born(parent)
    for task in MANY[:3]:
        grade(log, child, task, False)
    return child


def test_only_first_children_of_parents_that_solve_something_tell_how_often_edits_break_the_agent():
    late, orphans, heirs = children(6, 14), children(6, 1), children(6, 1)
    failing(late, 0)
    failing(orphans, 1)
    failing(heirs, 7)
    assert not folded(late).posterior.often_broken, "the twenty-first child is none of the first"
    assert not folded(orphans).posterior.often_broken, "its parent is broken already"
    assert folded(heirs).posterior.often_broken


def test_a_first_child_is_asked_for_what_its_parent_solves_until_it_solves_something():
    log = children(0, 0)
    child = log.born(0)
    solved = {task for task, verdict in log.tree.verdicts(0).items() if verdict is Verdict.RESOLVED}
    for _ in range(3):
        outlook = folded(log).outlook(log.tree)
        assert outlook.unprobed == child
        tasks = [task for task in MANY if task not in log.tree.tried(child)]
        worth = outlook.task_worth(child, tasks)
        assert {task for task, each in zip(tasks, worth, strict=True) if each} == solved - {
            *log.tree.tried(child)
        }
        grade(log, child, tasks[int(worth.argmax())], False)
    assert folded(log).outlook(log.tree).unprobed is None
    other = log.born(0)
    grade(log, other, MANY[0], True)
    assert folded(log).outlook(log.tree).unprobed is None, "it has solved one"


def test_a_small_budget_has_few_first_children():
    log = Log(Budget(evaluations=40), MANY)
    log.born()
    log.graded(0, [True, False] * 6)
    for _ in range(2):
        grade(log, log.born(0), MANY[0], False)
    assert folded(log).outlook(log.tree).unprobed == 1
    for task in MANY[2:6:2]:
        grade(log, 1, task, False)
    assert folded(log).outlook(log.tree).unprobed is None


def test_where_edits_often_break_the_agent_who_failed_at_everything_has_children_only_if_its_parent_has_not():
    few, many = children(3, 1), children(7, 1)
    for log in (few, many):
        child = log.born(1)
        grandchild = log.born(child)
        sound = log.born(4 if log is few else 8)
        for agent in (child, grandchild, sound):
            grade(log, agent, MANY[1], False)
        hopeful = folded(log).outlook(log.tree)._proved()
        assert hopeful[sound] and hopeful[0] and hopeful[1]
        assert hopeful[child] == hopeful[grandchild] == (log is few)
