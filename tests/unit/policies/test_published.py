"""What the published searches have in common: every edge of a run, whoever chooses the parents."""

from random import Random

import pytest

from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, AgentStillborn, TaskGraded
from dgm.domain import (
    AgentId,
    Born,
    Budget,
    CommitId,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    TaskId,
    Verdict,
)
from dgm.plugins import find_plugin
from dgm.policies.hgm_published import Lists
from dgm.policies.limits import evaluations_left
from dgm.policies.registry import PARENT_RULES
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import Log, named

NAMES = ["greedy", "sica", "uct", "hyperagents", "novelty", "pareto", "weighted", "adas"]
MANY = tuple(TaskId(f"task-{n}") for n in range(15))


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def parents(name, log, seed=0):
    return find_plugin("parent_rules", name, PARENT_RULES)(PolicyContext()).parents(log.tree, Random(seed))


def run(name, budget, solves, workers=1, stillborn=lambda action: False):
    """A whole search, worked off first in, first out; gives the log and all decisions."""
    log, policy, actions = Log(budget, MANY), named(name), []
    log.born()
    while True:
        # The budget of evaluations is the loop's to keep, that of agents the policy's.
        while len(log.tree.pending) < workers and evaluations_left(log.tree) != 0:
            action = policy.next(log.tree, Random(f"7/{log.tree.next_action}"))
            if action is None:
                break
            actions.append(action)
            log.add(ActionStarted(log.tree.next_action, action))
        if not log.tree.pending:
            return log, actions
        finish(log, *next(iter(log.tree.pending.items())), solves, stillborn)


def finish(log, action, what, solves, stillborn):
    match what:
        case Evaluate(agent, task, attempt):
            verdict = Verdict.RESOLVED if solves(agent, task) else Verdict.UNRESOLVED
            log.add(TaskGraded(action, Evaluation(agent, task, attempt, verdict, "")))
        case Expand(parents) if stillborn(action):
            log.add(AgentStillborn(action, Stillborn(parents, "self-edit", "vetting", "broken")))
        case Expand(parents):
            agent = AgentId(len(log.tree.agents))
            log.add(AgentBorn(action, agent, Born(parents, "self-edit", CommitId(f"c{agent}"), "")))


def chance(agent, task):
    return Random(f"{agent}/{task}").random() < 0.5


@pytest.mark.parametrize("workers", [1, 20])
def test_a_run_keeps_to_its_budget_and_repeats_nothing(name, workers):
    log, actions = run(name, Budget(evaluations=150, expansion_cost=1), chance, workers)
    evaluations = [action for action in actions if isinstance(action, Evaluate)]
    assert len({(action.agent, action.task) for action in evaluations}) == len(evaluations)
    assert len(actions) == 150, "an expansion costs as much as an evaluation, and nothing is left over"
    assert len(log.tree.agents) > 5


def test_a_seed_that_solves_nothing_still_expands(name):
    log, _ = run(name, Budget(evaluations=150, expansion_cost=1), lambda agent, task: False)
    assert len(log.tree.agents) > 5


def test_stillborn_children_do_not_stop_a_run(name):
    log, _ = run(
        name, Budget(evaluations=150, expansion_cost=1), chance, 4, stillborn=lambda action: action % 3 > 0
    )
    assert len(log.tree.agents) > 3


def test_a_tree_of_one_ends_when_all_is_tried(name):
    log, actions = run(name, Budget(agents=1), chance)
    assert len(log.tree.agents) == 1
    assert [type(action) for action in actions] == [Evaluate] * len(MANY)


def test_the_seed_is_evaluated_before_it_has_a_child(name):
    _, actions = run(name, Budget(evaluations=40, expansion_cost=1), chance, workers=20)
    first_child = next(place for place, action in enumerate(actions) if isinstance(action, Expand))
    assert first_child >= 10


def test_a_seed_is_no_parent_while_its_first_evaluations_run(name):
    log = Log()
    log.born()
    log.graded(0, [True])
    log.add(ActionStarted(log.tree.next_action, Evaluate(AgentId(0), log.tree.tasks[5])))
    assert parents(name, log) == ()


@pytest.mark.parametrize("name", sorted({*PARENT_RULES} - {"hgm-published"}))
def test_a_seed_whose_evaluations_were_given_up_is_a_parent(name):
    log = Log()
    log.born()
    for task in log.tree.tasks:
        action = log.tree.next_action
        log.add(ActionStarted(action, Evaluate(AgentId(0), task)))
        log.add(ActionLost(action, "outage", final=True))
    policy = named(name)
    for event in log.events:
        policy.observe(event)
    assert policy.next(log.tree, Random(0)) == Expand((AgentId(0),), "self-edit")


def test_an_unevaluated_agent_is_no_parent(name):
    log = Log()
    log.born()
    log.graded(0, [False] * 10)
    log.born(0)
    assert {parents(name, log, seed) for seed in range(20)} == {(0,)}


def test_a_lucky_start_does_not_count_while_the_rest_runs(name):
    log = Log()
    log.born()
    log.graded(0, [True] * 5 + [False] * 5)
    log.born(0)
    log.graded(1, [True] * 4)
    log.add(ActionStarted(log.tree.next_action, Evaluate(AgentId(1), log.tree.tasks[7])))
    assert {parents(name, log, seed) for seed in range(20)} == {(0,)}


def test_decisions_are_a_function_of_log_and_stream(name):
    budget = Budget(evaluations=120, expansion_cost=1)
    assert run(name, budget, chance, 5)[1] == run(name, budget, chance, 5)[1]


def archive(order, tasks):
    """A seed with five children, born in this order; what each solved goes with its own number."""
    log = Log(tasks=tasks)
    log.born()
    log.graded(0, [False, True] * 5)
    for _ in order:
        log.born(0)
    solved = {1: "1110000000", 2: "1101101000", 3: "1111101100", 4: "1100000011", 5: "1101111111"}
    for agent, number in enumerate(order, start=1):
        log.graded(agent, [mark == "1" for mark in solved[number]])
    return log


def chosen(name, order, tasks):
    """The numbers of the parents and how often each is drawn."""
    log = archive(order, tasks)
    drawn = [parents(name, log, seed)[0] for seed in range(600)]
    return {0 if agent == 0 else order[agent - 1]: drawn.count(agent) / 600 for agent in set(drawn)}


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("sica", "adas")])
def test_ids_of_siblings_do_not_matter(name):
    tasks = tuple(TaskId(f"task-{n}") for n in range(10))
    one, other = chosen(name, (1, 2, 3, 4, 5), tasks), chosen(name, (5, 3, 1, 2, 4), tasks)
    assert one.keys() == other.keys()
    assert one == pytest.approx(
        other, abs=0.05
    )  # five standard deviations of a difference; the seeds are fixed


@pytest.mark.slow
def test_names_of_tasks_do_not_matter(name):
    tasks = tuple(TaskId(f"task-{n}") for n in range(10))
    renamed = tuple(TaskId(f"other-{9 - n}") for n in range(10))
    assert chosen(name, (1, 2, 3, 4, 5), tasks) == chosen(name, (1, 2, 3, 4, 5), renamed)


def test_a_withdrawn_verdict_leaves_the_lists_of_the_published_hgm():
    log = Log()
    log.born()
    log.graded(0, [True, False])
    lists = Lists()
    for event in log.events:
        lists.observe(event)
    assert (lists.resolved, lists.lengths) == ([1], [2])
    log.withdrawn()
    lists.observe(log.events[-1])
    assert (lists.resolved, lists.lengths) == ([1], [1])
