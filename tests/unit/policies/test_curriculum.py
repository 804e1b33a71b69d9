"""Which tasks a curriculum retires and draws, and what makes agents that met different tasks comparable."""

from contextlib import nullcontext

import pytest

from dgm.archive.events import TasksChanged
from dgm.config import CurriculumSettings, Settings
from dgm.domain import AgentId, Budget, Evaluate
from dgm.errors import ArchiveCorrupt, UserError
from dgm.policies.curriculum import choose_tasks, comparable_tallies, refuse_misfit
from dgm.policies.hgm import best_belief
from dgm.policies.policy import View
from dgm.policies.registry import best_agent
from dgm.search.loop import validate_action
from tests.support.runs.trees import TASKS, Log

RULE = CurriculumSettings(start=3, agents=2)


def change(log, rule=RULE, seed=0):
    """Apply the change that is due, if any."""
    event = choose_tasks(log.tree, rule, seed)
    if event is not None:
        log.add(event)
    return event


def begun(agents=2, budget=None):
    log = Log(budget)
    change(log)
    for agent in range(agents):
        log.born(*([0] if agent else []))
    return log


def try_all(log, tasks, resolved):
    for agent in log.tree.agents[-2:]:
        log.tried(agent.id, **dict.fromkeys(tasks, resolved))


def test_the_seed_draws_the_first_tasks_and_the_others_are_the_pool():
    log = begun()
    tree = log.tree
    assert len(tree.active) == 3 and {*tree.active, *tree.curriculum.pool} == {*TASKS}
    assert tree.active == tuple(task for task in TASKS if task in tree.active), "in the order of the suite"
    drawn = {seed: frozenset(choose_tasks(Log().tree, RULE, seed).drawn) for seed in range(20)}
    assert len({*drawn.values()}) > 5
    assert drawn[0] == {*tree.active}
    assert choose_tasks(Log().tree, CurriculumSettings(), 0) is None


def test_tasks_that_the_youngest_agents_agree_on_make_room():
    log = begun(agents=3)
    solved, unsolved, mixed = log.tree.active
    log.tried(0, **{solved: False, unsolved: True, mixed: False})  # an older agent has no say
    log.tried(1, **{solved: True, unsolved: False, mixed: True})
    assert change(log) is None, "the two youngest agents with a verdict disagree"
    log.tried(2, **{solved: True, unsolved: False, mixed: False})
    event = change(log)
    assert (event.solved, event.unsolved, len(event.drawn)) == ((solved,), (unsolved,), 2)
    assert log.tree.curriculum.retired == (solved,)
    assert log.tree.curriculum.pool[-1] == unsolved
    assert {*log.tree.active} == {mixed, *event.drawn}
    assert change(log) is None


def test_a_task_that_was_put_back_is_drawn_last_and_judged_by_later_agents():
    log = begun()
    first = log.tree.active[0]
    try_all(log, [first], resolved=False)
    assert change(log).unsolved == (first,)
    for _ in range(6):
        try_all(log, [log.tree.active[0]], resolved=True)
        drawn = change(log).drawn
    try_all(log, [task for task in log.tree.active if task != first][:1], resolved=True)
    assert drawn != (first,)
    assert change(log).drawn == (first,), "all others were drawn before"
    try_all(log, [log.tree.active[0] if log.tree.active[0] != first else log.tree.active[1]], resolved=True)
    assert change(log) is None, "the pool is empty, and earlier verdicts on the task do not count"
    assert len(log.tree.active) == 3


def test_untried_tasks_are_those_that_are_active_now():
    log = begun()
    gone = log.tree.active[0]
    try_all(log, [gone], resolved=True)
    assert log.tree.untried_count.tolist() == [2, 2]
    drawn = change(log).drawn
    assert log.tree.untried_count.tolist() == [3, 3]
    assert {*View(log.tree).untried(AgentId(0))} == {*log.tree.active} > {*drawn}
    with pytest.raises(UserError, match=f"the task '{gone}', which is not active now"):
        validate_action("mine", log.tree, Evaluate(AgentId(0), gone))
    log.born(1)
    assert log.tree.untried_count.tolist() == [3, 3, 3]


def test_more_tasks_are_drawn_where_agents_have_none_left_and_no_child_may_come():
    log = begun()
    closed = begun(budget=Budget(agents=2))
    for each in (log, closed):
        each.tried(0, **dict.fromkeys(each.tree.active, True))
        each.tried(1, **dict.fromkeys(each.tree.active, False))
    assert change(log) is None, "a child may come"
    event = change(closed)
    assert (len(event.drawn), event.solved, event.unsolved) == (3, (), ())
    assert len(closed.tree.active) == 6


@pytest.mark.parametrize(
    "event",
    [
        TasksChanged(("nowhere",)),
        TasksChanged(()),
        TasksChanged((TASKS[0],), solved=(TASKS[1],)),
    ],
)
def test_an_event_that_does_not_fit_the_tasks_is_refused(event):
    with pytest.raises(ArchiveCorrupt):
        Log().add(event)


def test_a_change_that_retires_a_task_of_the_pool_is_refused():
    log = begun()
    with pytest.raises(ArchiveCorrupt):
        log.add(TasksChanged((), solved=log.tree.curriculum.pool[:1]))


@pytest.mark.parametrize(
    ("settings", "budget", "fault"),
    [
        ({}, {"score": 0.5}, ""),
        ({"curriculum": {"start": 9}}, {}, ""),
        ({"curriculum": {"agents": 3}}, {}, "does nothing without curriculum.start"),
        ({"curriculum": {"start": 10}}, {}, "10: expected less than the 10 search tasks"),
        ({"curriculum": {"start": 9}}, {"score": 0.5}, "leave out until_score"),
        ({"curriculum": {"start": 9}, "policy": {"reward": "score"}}, {}, "policy.reward sums"),
        ({"curriculum": {"start": 9}}, {"patience": 5}, "leave out until_score and patience"),
        (
            {"curriculum": {"start": 9}, "policy": {"recommendation": "best-belief"}},
            {},
            "'best-belief' compares",
        ),
    ],
)
def test_what_does_not_fit_a_curriculum_is_refused(settings, budget, fault):
    with pytest.raises(UserError, match=fault) if fault else nullcontext():
        refuse_misfit(Settings(**settings), Budget(**budget), 10)


def later_tasks_are_hard():
    """The parent met easy tasks, its child only hard ones; two other agents met both kinds and resolved the easy ones.

    On hard tasks the child is better than they are, and by plain rates it is no better than its parent.
    """
    tasks = tuple(f"{kind}-{n}" for kind in ("easy", "hard") for n in range(12))
    log = Log(tasks=tasks)
    log.add(TasksChanged(tasks[:12]))
    for parents in ((), (0,), (0,), (0,)):
        log.born(*parents)
    for agent in (0, 1, 2):
        log.tried(agent, **{task: task not in tasks[:2] for task in tasks[:12]})
    log.add(TasksChanged(tasks[12:], solved=tasks[2:12]))
    for agent in (1, 2):
        log.tried(agent, **dict.fromkeys(tasks[12:], False))
    log.tried(3, **{task: task in tasks[14:] for task in tasks[12:]})
    return log


def test_counts_allow_for_the_tasks_that_an_agent_met():
    tree = later_tasks_are_hard().tree
    view = View(tree)
    plain = (tree.own_resolved / view.graded).tolist()
    assert plain[0] == plain[3] == 10 / 12, "by plain rates the parent is as good"
    assert view.score[3] > view.score[0] > view.score[1]
    assert view.graded.tolist() == [12, 24, 24, 12]
    assert view.score[1] == view.score[2]
    assert (view.clade_solved >= view.solved - 1e-9).all()
    assert best_belief(tree) == 0
    assert best_agent(Settings(policy={"name": "hgm"}).policy, tree) == 3
    assert comparable_tallies(tree)[3].n == 12


def test_agents_that_met_the_same_tasks_keep_their_order_and_differences():
    log = Log()
    log.add(TasksChanged(TASKS[:5]))
    for agent in range(3):
        log.born(*([0] if agent else []))
    log.add(TasksChanged(TASKS[5:6], unsolved=TASKS[:1]))
    for agent, resolved in enumerate((1, 3, 4)):
        log.tried(agent, **{task: n < resolved for n, task in enumerate(TASKS[1:6])})
    solved = View(log.tree).solved
    assert solved[1] - solved[0] == pytest.approx(2)
    assert solved[2] - solved[1] == pytest.approx(1)


def test_without_a_change_of_tasks_counts_are_plain():
    log = Log()
    log.born()
    log.graded(0, [True, False, True])
    assert View(log.tree).solved.tolist() == [2]
    assert View(log.tree).solved.dtype.kind == "i"
