"""What ``lineage`` decides on trees made by hand."""

import math
from random import Random

import pytest

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ModelCalled,
    RunStarted,
    RunStopped,
    TaskGraded,
)
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Digest,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.policies.limits import evaluations_left
from dgm.policies.lineage.constants import DIFFICULTY_VARIANCE
from dgm.policies.lineage.fold import Fold
from dgm.policies.lineage.rules import LineageRecommendation
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import TASKS, Log, named


def observing(log):
    policy = named("lineage")
    for event in log.events:
        policy.observe(event)
    return policy


def decide(log, seed=0):
    return observing(log).next(log.tree, Random(seed))


def folded(log):
    fold = Fold()
    for event in log.events:
        fold.observe(event)
    return fold


def recommended(log):
    return LineageRecommendation(PolicyContext()).recommend(log.tree)


def start(log, action):
    number = log.tree.next_action
    log.add(ActionStarted(number, action))
    return number


def stillborn(log, parent):
    action = start(log, Expand((AgentId(parent),), "self-edit"))
    log.add(AgentStillborn(action, Stillborn((AgentId(parent),), "self-edit", "check", "does not start")))


def search(seed, budget):
    """A search in which child number 3, 6, 9 … is better than its parent, and number 7, 14 … is broken."""
    log, world = Log(budget), Random(seed)
    policy = named("lineage")
    observed = 0
    log.born()
    skill = [0.3]
    actions = []
    while True:
        for event in log.events[observed:]:
            policy.observe(event)
        observed = len(log.events)
        action = policy.next(log.tree, Random(f"{seed}/{log.tree.next_action}"))
        if action is None or evaluations_left(log.tree) < 1:
            return log, actions
        actions.append(action)
        number = start(log, action)
        if isinstance(action, Expand):
            child = len(log.tree.agents)
            change = 0.2 if child % 3 == 0 else -0.05
            skill.append(0.0 if child % 7 == 0 else min(max(skill[action.parents[0]] + change, 0.0), 0.95))
            log.add(
                AgentBorn(
                    number, AgentId(child), Born(action.parents, "self-edit", CommitId(f"c{child}"), "")
                )
            )
        else:
            verdict = Verdict.RESOLVED if world.random() < skill[action.agent] else Verdict.UNRESOLVED
            log.add(TaskGraded(number, Evaluation(action.agent, action.task, 0, verdict, "")))


def test_a_tree_of_one_is_evaluated():
    log = Log()
    log.born()
    action = decide(log)
    assert isinstance(action, Evaluate)
    assert action.agent == 0


def test_a_seed_that_solves_nothing_still_expands():
    log = Log()
    log.born()
    log.graded(0, [False] * 10)
    assert decide(log) == Expand((AgentId(0),), "self-edit")
    assert any(isinstance(action, Expand) for action in _walk(log))


def _walk(log):
    """The decisions while everything fails."""
    for _ in range(20):
        action = decide(log)
        yield action
        if isinstance(action, Expand):
            log.born(*action.parents)
        else:
            number = start(log, action)
            log.add(TaskGraded(number, Evaluation(action.agent, action.task, 0, Verdict.UNRESOLVED, "")))


def test_every_new_child_is_evaluated_once_first():
    log = Log(Budget(evaluations=39))  # too few for first children that are tried three times
    log.born()
    log.graded(0, [True, False, True])
    log.born(0)
    log.born(0)
    assert decide(log).agent == 1
    start(log, decide(log))
    assert decide(log).agent == 2
    start(log, decide(log))
    after = decide(log)
    assert isinstance(after, Expand) or after.agent == 0


def test_no_expansion_in_the_last_tenth():
    for spare, expected in ((6, Expand), (2, Evaluate)):
        log = Log(Budget(evaluations=19 + spare))
        log.born()
        log.graded(0, [True] * 5 + [False] * 5)
        log.born(0)
        log.graded(1, [True] * 9)
        assert isinstance(decide(log), expected)


def test_a_whole_search_keeps_its_promises():
    _, actions = search(1, Budget(evaluations=150, expansion_cost=1.0))
    tried = [(action.agent, action.task) for action in actions if isinstance(action, Evaluate)]
    assert len(tried) == len(set(tried))
    expansions = [number for number, action in enumerate(actions) if isinstance(action, Expand)]
    assert len(expansions) > 15
    assert expansions[-1] < 0.9 * len(actions) + 1
    seen = {0}
    for number, action in enumerate(actions):
        if isinstance(action, Evaluate):
            seen.add(action.agent)
        else:
            assert len(seen) == 1 + sum(place < number for place in expansions), (
                "an unprobed child was passed by"
            )
            assert action.parents[0] in seen


def test_the_same_events_give_the_same_decisions():
    log, actions = search(2, Budget(evaluations=80, expansion_cost=1.0))
    again, same = search(2, Budget(evaluations=80, expansion_cost=1.0))
    assert same == actions
    assert again.events == log.events


def test_asking_leaves_no_trace():
    log = Log()
    log.born()
    asked, quiet = named("lineage"), named("lineage")
    for turn in range(60):
        for event in log.events[-2:] if turn else log.events:
            asked.observe(event)
            quiet.observe(event)
        for seed in range(3):
            action = asked.next(log.tree, Random(seed))
        if isinstance(action, Expand):
            log.born(*action.parents)
            asked.observe(log.events[-1])
            quiet.observe(log.events[-1])
            action = asked.next(log.tree, Random(0))
        assert isinstance(action, Evaluate)
        number = start(log, action)
        verdict = Verdict.RESOLVED if turn % 3 else Verdict.UNRESOLVED
        log.add(TaskGraded(number, Evaluation(action.agent, action.task, 0, verdict, "")))
    for event in log.events[-2:]:
        asked.observe(event)
        quiet.observe(event)
    assert len(log.tree.agents) > 5
    assert asked.next(log.tree, Random(5)) == quiet.next(log.tree, Random(5))
    assert (
        asked._policy._gate._fold.posterior.beliefs.states
        == quiet._policy._gate._fold.posterior.beliefs.states
    )


def test_invalid_verdicts_say_nothing():
    log = Log()
    log.born()
    log.graded(0, [True, False])
    before = folded(log).posterior.beliefs.states
    action = start(log, Evaluate(AgentId(0), TASKS[5]))
    log.add(TaskGraded(action, Evaluation(AgentId(0), TASKS[5], 0, Verdict.INVALID, "engine gone")))
    assert folded(log).posterior.beliefs.states == before


def test_lost_and_repeated_actions_count_once():
    log = Log()
    log.born()
    log.graded(0, [True, False])
    what = Evaluate(AgentId(0), TASKS[5])
    action = start(log, what)
    running = folded(log).outlook(log.tree)._under_way
    log.add(ActionLost(action, "killed"))
    waiting = folded(log).outlook(log.tree)._under_way
    log.add(ActionStarted(action, what, again=True))
    assert running == waiting == folded(log).outlook(log.tree)._under_way == {0: 1}
    log.add(ActionLost(action, "given up", final=True))
    assert folded(log).outlook(log.tree)._under_way == {}


def test_pending_expansions_spread_over_parents():
    log = Log()
    log.born()
    log.graded(0, [True] * 5 + [False] * 5)
    for child in (1, 2):
        log.born(0)
        log.graded(child, [True] * 6 + [False] * 4)
    first = folded(log).outlook(log.tree).parent
    for _ in range(3):
        start(log, Expand((first,), "self-edit"))
    assert folded(log).outlook(log.tree).parent != first


def test_parents_of_stillborn_children_are_left():
    log = Log()
    log.born()
    log.graded(0, [True] * 5 + [False] * 5)
    log.born(0)
    log.graded(1, [True] * 10)
    assert folded(log).outlook(log.tree).parent == 1
    for _ in range(60):
        stillborn(log, 1)
    assert folded(log).outlook(log.tree).parent == 0


def test_broken_agents_are_set_aside():
    log = Log(Budget(evaluations=1000))
    log.born()
    log.graded(0, [True] * 9 + [False])
    log.born(0)
    log.graded(1, [False] * 8)
    log.born(0)
    log.graded(2, [True] * 4)
    outlook = folded(log).outlook(log.tree)
    assert outlook.broken[1] > 0.5 > outlook.broken[2]
    assert outlook.parent != 1
    assert outlook.target != 1
    assert recommended(log) != 1


def test_many_workers_let_unprobed_agents_have_children():
    log = Log()
    log.born()
    log.graded(0, [True, False])
    log.born(0)
    for task in TASKS[2:9]:
        start(log, Evaluate(AgentId(0), task))
    start(log, Evaluate(AgentId(1), TASKS[0]))
    assert folded(log).outlook(log.tree)._able().tolist() == [True, True]
    few = Log()
    few.born()
    few.graded(0, [True, False])
    few.born(0)
    assert folded(few).outlook(few.tree)._able().tolist() == [True, False]


def test_the_cost_of_an_expansion_is_measured_in_tokens():
    log = Log()
    log.born()
    assert folded(log).outlook(log.tree).expansion_cost == 1.0
    log.graded(0, [True, False])
    log.add(_call(ActionId(1), "solve", 100))
    log.add(_call(ActionId(2), "solve", 300))
    assert folded(log).outlook(log.tree).expansion_cost == 1.0
    stillborn(log, 0)
    log.add(_call(ActionId(3), "improve", 700))
    log.add(_call(ActionId(3), "diagnose", 100))
    assert folded(log).outlook(log.tree).expansion_cost == pytest.approx(4.0)


@pytest.mark.parametrize("calls", [[], [("solve", 100)]])
def test_without_tokens_the_cost_of_an_expansion_is_measured_in_seconds(calls):
    log = Log()
    log.born()
    for task, seconds in ((TASKS[0], 0.1), (TASKS[1], 0.3)):
        action = start(log, Evaluate(AgentId(0), task))
        cost = Cost(seconds=seconds)
        log.add(TaskGraded(action, Evaluation(AgentId(0), task, 0, Verdict.RESOLVED, "", cost=cost)))
    log.made((0,), "self-edit", dies="check")  # takes a second
    for role, tokens in calls:
        log.add(_call(ActionId(1), role, tokens))
    assert folded(log).outlook(log.tree).expansion_cost == pytest.approx(1.0 / 0.2)


def test_the_budget_says_what_an_expansion_costs():
    log = Log(Budget(evaluations=100, expansion_cost=5.0))
    log.born()
    log.graded(0, [False] * 10)
    stillborn(log, 0)
    assert folded(log).outlook(log.tree).expansion_cost == 5.0
    for _ in range(4):
        assert isinstance(decide(log), Expand)
        stillborn(log, 0)
    log.born(0)
    log.graded(1, [False])
    assert isinstance(decide(log), Evaluate), "two evaluations are asked for, for each expansion"


def _call(action, role, tokens):
    return ModelCalled(action, 1, "m", role, Digest("a" * 64), Digest("b" * 64), Usage(1, tokens, 0))


def test_a_task_near_the_agents_own_level_is_asked_for():
    log = Log()
    log.born()
    for child in range(12):
        if child:
            log.born(0)
        log.graded(child, [True, False] * 2)
    log.born(0)
    for seed in range(10):
        action = decide(log, seed)
        assert action.agent == 12
        assert action.task not in TASKS[:4], "those are known to be easy or hard"


def test_a_tree_that_was_not_observed_is_refused():
    log = Log()
    log.born()
    with pytest.raises(ValueError, match="0 births were observed"):
        named("lineage").next(log.tree, Random(0))


@pytest.mark.slow
def test_unknown_tasks_of_a_later_session_are_average():
    log = Log(tasks=(TaskId("a"), TaskId("b")))
    log.born()
    log.graded(0, [True, False])
    for _ in range(25):
        log.graded(log.born(0), [True, False])
    log.add(RunStopped("budget"))
    log.add(RunStarted(Budget(evaluations=1000), (TaskId("a"), TaskId("b"), TaskId("c"), TaskId("d"))))
    known, fresh = folded(log).outlook(log.tree), [TaskId("c"), TaskId("d")]
    p = 1.0 / (1.0 + math.exp(-known.skill[0]))  # of a task of difficulty 0
    average = p * (1 - p) / (1 + p * (1 - p) * DIFFICULTY_VARIANCE)
    assert known.task_worth(AgentId(0), fresh).tolist() == pytest.approx([average] * 2)
    child = log.born(0)
    assert {decide(log, seed).agent for seed in range(20)} == {child}
    assert {decide(log, seed).task for seed in range(20)} & set(fresh)
    log.graded(child, [True, False, True])
    assert folded(log).outlook(log.tree).task_worth(AgentId(0), fresh)[1] == pytest.approx(average, rel=0.1)


def test_children_of_a_second_parent_are_no_births_of_it():
    log = Log()
    log.born()
    log.graded(0, [True, False])
    log.born(0)
    log.graded(1, [True, False])
    for _ in range(3):
        stillborn(log, 1)
    alone = folded(log).outlook(log.tree)._fertility()[1]
    log.born(0, 1)
    assert folded(log).outlook(log.tree)._fertility()[1] == alone < 1
    log.born(1, 0)
    assert folded(log).outlook(log.tree)._fertility()[1] > alone
