"""What keeps ``lineage`` from believing its own optimism: far lines wait, and no task becomes the measure of all."""

from random import Random

import pytest

from dgm.archive.events import ActionStarted, TaskGraded
from dgm.domain import AgentId, Budget, Evaluate, Evaluation, TaskId, Verdict
from dgm.policies.lineage import outlook as of_a_tree
from dgm.policies.lineage.fold import Fold
from dgm.policies.lineage.rules import InformativeTask
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import Log

pytestmark = pytest.mark.slow

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
    outlook.skill[1] = outlook.skill[0] - 9.0
    outlook._tt[1] = 30.0
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
        kit = PolicyContext()
        rule = InformativeTask(kit)
        for event in log.events:
            kit.shared(Fold).observe(event)
        return {rule.task(log.tree, log.tree.agents[-1].id, Random(seed)) for seed in range(10)}

    assert MANY[0] not in asked()
    monkeypatch.setattr(of_a_tree, "TASK_SHARE", float("inf"))
    assert asked() == {MANY[0]}, "its difficulty is known best"


def failing(log, parent):
    """A child that fails at three of the tasks that the seed solves."""
    child = log.born(parent)
    for task in MANY[0:6:2]:
        grade(log, child, task, False)
    return child


def solving(log, parent):
    """A child that solves three of them."""
    child = log.born(parent)
    for task in MANY[0:6:2]:
        grade(log, child, task, True)
    return child


def children(failed, solved):
    """A seed that solves every second of 60 tasks, and children of it with three results each."""
    log = Log(Budget(evaluations=2000), MANY)
    log.born()
    log.graded(0, [True, False] * 30)
    for child in [failing] * failed + [solving] * solved:
        child(log, 0)
    return log


def failed(log):
    return folded(log).posterior.failed_children()


def swept(log):
    """Folded, and all learned that there is to learn."""
    fold = folded(log)
    for _ in range(3):
        fold.posterior.sweep()
    return fold


def test_children_that_solve_nothing_have_failed():
    assert failed(children(6, 3)) == 6
    assert failed(children(0, 20)) == 0


def test_only_the_first_twenty_children_count():
    twentieth = children(6, 13)
    failing(twentieth, 0)
    later = children(6, 14)
    failing(later, 0)
    assert (failed(twentieth), failed(later)) == (7, 6)


def test_a_child_of_a_parent_that_solves_nothing_does_not_count():
    orphan, heir = children(6, 1), children(6, 1)
    failing(orphan, 1)
    failing(heir, 7)
    assert (failed(orphan), failed(heir)) == (6, 7)


def test_failures_at_what_the_parent_does_not_solve_do_not_count():
    log = children(0, 1)
    child = log.born(0)
    for task in MANY[1:9:2]:
        grade(log, child, task, False)
    assert failed(log) == 0
    grade(log, child, MANY[0], False)
    assert failed(log) == 1


def test_two_failures_do_not_count():
    log = children(0, 1)
    child = log.born(0)
    for task in MANY[0:4:2]:
        grade(log, child, task, False)
    assert failed(log) == 0
    grade(log, child, MANY[1], False)
    assert failed(log) == 1


def test_edits_break_the_agent_often_where_eight_children_have_failed():
    assert not swept(children(7, 3)).posterior.often_broken
    assert swept(children(8, 3)).posterior.often_broken


def test_where_edits_break_the_agent_often_their_rate_is_learned_from_a_higher_belief():
    seldom, often = (swept(children(count, 13)).posterior.breakage.rate for count in (7, 8))
    assert often > seldom + 0.1


def worth(log, child):
    tasks = [task for task in MANY if task not in log.tree.tried(child)]
    values = folded(log).outlook(log.tree).task_worth(child, tasks)
    return {task: float(value) for task, value in zip(tasks, values, strict=True) if value}


def test_a_first_child_that_fails_is_asked_for_what_its_parent_solves():
    log = children(0, 0)
    child = log.born(0)
    assert folded(log).outlook(log.tree).urgent == child
    assert set(worth(log, child)) == set(MANY), "at first for anything"
    grade(log, child, MANY[1], False)
    solved = {task for task, verdict in log.tree.verdicts(0).items() if verdict is Verdict.RESOLVED}
    for _ in range(2):
        assert folded(log).outlook(log.tree).urgent == child
        values = worth(log, child)
        assert set(values) == solved - {*log.tree.tried(child)}
        grade(log, child, max(values, key=values.__getitem__), False)
    assert folded(log).outlook(log.tree).urgent is None, "it has failed three times"


def test_a_first_child_that_solves_something_waits_like_others():
    log = children(0, 0)
    grade(log, log.born(0), MANY[0], True)
    assert folded(log).outlook(log.tree).urgent is None


def test_where_its_parent_solves_nothing_a_first_child_is_asked_for_what_the_seed_solves():
    log = children(0, 0)
    parent = log.born(0)
    grade(log, parent, MANY[1], False)
    child = log.born(parent)
    grade(log, child, MANY[1], False)
    assert set(worth(log, child)) == set(MANY[0::2])


def test_where_its_parent_solves_no_more_a_first_child_is_asked_for_anything():
    log = children(0, 0)
    parent = log.born(0)
    grade(log, parent, MANY[1], True)
    child = log.born(parent)
    grade(log, child, MANY[0], False)
    assert set(worth(log, child)) == {MANY[1]}
    grade(log, child, MANY[1], False)
    assert set(worth(log, child)) == set(MANY) - set(MANY[:2])


def test_where_nobody_solves_anything_a_first_child_is_asked_for_anything():
    log = Log(Budget(evaluations=2000), MANY)
    log.born()
    log.graded(0, [False] * 60)
    child = log.born(0)
    grade(log, child, MANY[0], False)
    assert set(worth(log, child)) == set(MANY[1:])


def test_a_first_child_is_asked_for_no_more_than_there_is():
    log = Log(Budget(evaluations=2000), MANY[:2])
    log.born()
    log.graded(0, [True, True])
    child = log.born(0)
    for task in MANY[:2]:
        assert folded(log).outlook(log.tree).urgent == child
        grade(log, child, task, False)
    assert folded(log).outlook(log.tree).urgent is None


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "first"), [(40, 1), (80, 2), (None, 20)])
def test_a_small_budget_has_few_first_children(budget, first):
    log = Log(Budget(evaluations=budget), MANY)
    log.born()
    log.graded(0, [True, False] * 6)
    for _ in range(22):
        grade(log, log.born(0), MANY[0], False)
    urgent = set()
    while (child := folded(log).outlook(log.tree).urgent) is not None:
        urgent.add(child)
        grade(log, child, MANY[len(log.tree.tried(child)) * 2], False)
    assert urgent == set(range(1, first + 1))


def able(log):
    """Who may have a child, if nobody seemed broken by the model."""
    outlook = swept(log).outlook(log.tree)
    outlook.broken[:] = 0.0
    return outlook._able()


def test_where_edits_often_break_the_agent_who_failed_at_everything_has_children_only_if_its_parent_has_not():
    few, many = children(3, 1), children(8, 1)
    for log, sound in ((few, 4), (many, 9)):
        child = log.born(1)
        heir = log.born(sound)
        for agent in (child, heir):
            grade(log, agent, MANY[1], False)
        may = able(log)
        assert may[0] and may[1] and may[heir]
        assert may[child] == (log is few)


def test_the_seed_may_have_children_although_it_solves_nothing():
    log = Log(Budget(evaluations=2000), MANY)
    log.born()
    log.graded(0, [False] * 60)
    parent = solving(log, 0)
    for _ in range(8):
        failing(log, parent)
    assert swept(log).posterior.often_broken
    assert able(log)[0]


def test_who_has_no_result_yet_is_as_good_as_its_parent():
    log = children(8, 1)
    barred = failing(log, 1)
    heirs = [log.born(barred), log.born(9)]
    heirs += [log.born(heir) for heir in heirs]
    for task in MANY[50:58]:
        log.add(ActionStarted(log.tree.next_action, Evaluate(AgentId(9), task)))
    may = able(log)
    assert not may[barred]
    assert may[heirs].tolist() == [False, True, False, True]
