"""``dgm``: the formula of its parents, the stages of its evaluations, and its two ablations."""

import math
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.archive.events import ActionLost, AgentStillborn
from dgm.domain import SEED, AgentId, Budget, Evaluate, Expand, Stillborn, TaskId
from dgm.policies.dgm import dgm
from dgm.policies.limits import BARREN
from dgm.policies.policy import View
from tests.support.runs.trees import TASKS, Evenly, Log, named

SUITE = tuple(TaskId(f"task-{n:02}") for n in range(75))
PLENTY = Budget(evaluations=10_000)
DRAWS = 1000


def decide(log, name="dgm", seed=0):
    return named(name).next(log.tree, Random(seed))


def archive(*resolved, parents=(0,) * 20, tasks=TASKS, budget=PLENTY):
    """A seed and its descendants; how many of how many tasks each resolved."""
    log = Log(budget, tasks)
    for agent, (good, n) in enumerate(resolved):
        log.born(*([parents[agent - 1]] if agent else []))
        log.graded(agent, [True] * good + [False] * (n - good))
    return log


def shares(log):
    drawn = Counter(dgm(View(log.tree), Evenly((n + 0.5) / DRAWS)).parent() for n in range(DRAWS))
    return [drawn[agent.id] / DRAWS for agent in log.tree.agents]


def formula(rows):
    """arXiv:2505.22954, appendix C.2, on (score, children), one term at a time."""
    weights = [1 / (1 + math.exp(-10 * (score - 0.5))) / (1 + children) for score, children in rows]
    return pytest.approx([weight / math.fsum(weights) for weight in weights], abs=2 / DRAWS)


def owed(log):
    """The agent that is evaluated next; None if a child is made, or nothing."""
    action = decide(log)
    return action.agent if isinstance(action, Evaluate) else None


# Parents


def test_parents_are_drawn_by_score_over_children():
    log = archive((2, 10), (5, 10), (0, 10), (9, 10), parents=(0, 0, 1))
    # σ(-3) / 3 = 0.015809, σ(0) / 2 = 0.25, σ(-5) = 0.006693 and σ(4) = 0.982014 over their sum, 1.254515.
    assert shares(log) == pytest.approx([0.012601, 0.199280, 0.005335, 0.782783], abs=2 / DRAWS)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_chances_equal_the_formula_on_any_archive(results, random):
    parents = [random.randrange(child) for child in range(1, len(results))]
    results = [(min(pair), max(*pair, 1)) for pair in results]
    children = Counter(parents)
    rows = [(good / n, children[agent]) for agent, (good, n) in enumerate(results)]
    assert shares(archive(*results, parents=parents)) == formula(rows)


def test_a_birth_under_way_counts_as_a_child_and_a_stillborn_one_does_not():
    log = archive((5, 10), (5, 10))
    number = log.start(Expand((AgentId(1),), "self-edit"))
    assert shares(log) == formula([(0.5, 1), (0.5, 1)])
    log.add(ActionLost(number, "the power went"))
    assert shares(log) == formula([(0.5, 1), (0.5, 1)])
    log.add(AgentStillborn(number, Stillborn((AgentId(1),), "self-edit", "check", "")))
    assert shares(log) == formula([(0.5, 1), (0.5, 0)])


def test_who_may_be_a_parent():
    assert shares(archive((0, 10), (0, 0))) == [1.0, 0.0], "not without results"
    assert shares(archive((10, 10))) == [1.0], "all resolved"
    log = archive((3, 10), (8, 9), tasks=SUITE)
    log.start(Evaluate(AgentId(1), SUITE[9]))
    assert shares(log)[1] == 0.0, "its tenth task is not graded"
    log.graded(1, [True])
    log.start(Evaluate(AgentId(1), SUITE[11]))
    assert shares(log)[1] > 0.5, "what is under way belongs to the second stage"


def test_at_most_two_births_are_under_way():
    log = archive((3, 10))
    for _ in range(2):
        assert decide(log) == Expand((SEED,), "self-edit")
        log.start(decide(log))
    assert decide(log) is None


# Stages


@pytest.mark.parametrize(
    ("tasks", "resolved", "later", "more"),
    [
        (75, 0, "", 0),
        (75, 3, "", 0),
        (75, 4, "", 50),
        (75, 10, "", 50),
        (75, 3, "1" * 9, 0),  # what was tried after the first stage promotes nobody
        (75, 4, "0" * 40, 10),
        (23, 4, "", 13),  # a suite between the stages gives what it has
    ],
)
def test_the_second_stage_wants_four_of_ten(tasks, resolved, later, more):
    log = archive((resolved, 10), tasks=SUITE[:tasks])
    log.graded(0, [mark == "1" for mark in later])
    begun = 0
    while isinstance(action := decide(log), Evaluate):
        log.graded(action.agent, [False])
        begun += 1
    assert (begun, action) == (more, Expand((SEED,), "self-edit"))


def test_a_suite_smaller_than_the_first_stage_is_one_stage():
    log = archive((0, 2), tasks=SUITE[:3])
    assert owed(log) == 0
    log.graded(0, [True])
    assert decide(log) == Expand((SEED,), "self-edit")


def test_the_second_stage_waits_for_the_whole_first():
    log = archive((0, 10), (9, 9), tasks=SUITE)
    number = log.start(Evaluate(AgentId(1), SUITE[9]))
    assert owed(log) is None
    log.add(ActionLost(number, "to be performed again"))
    assert owed(log) is None
    log.add(ActionLost(number, "given up", final=True))
    assert owed(log) == 1, "nine of the nine that count"


def test_a_task_of_the_first_stage_that_was_given_up_counts_nowhere():
    log = archive((0, 0), tasks=SUITE)
    for task in SUITE[:4]:
        log.add(ActionLost(log.start(Evaluate(SEED, task)), "given up", final=True))
    log.graded(0, [True] * 3 + [False] * 23)
    assert owed(log) == 0, "three of the six that count"
    log = archive((0, 0), tasks=SUITE)
    for task in SUITE[:10]:
        log.add(ActionLost(log.start(Evaluate(SEED, task)), "given up", final=True))
    assert decide(log) == Expand((SEED,), "self-edit"), "a seed without any result still expands"


def test_the_stages_of_all_agents_are_the_same_tasks_in_an_order_of_their_own():
    log, tasks = archive((0, 0), (0, 0), tasks=SUITE), {0: [], 1: []}
    while isinstance(action := decide(log), Evaluate):
        tasks[action.agent].append(action.task)
        log.start(action)
    assert tasks[0] == tasks[1] and len(tasks[0]) == 10
    log = archive((0, 0), tasks=tuple(reversed(SUITE)))
    assert decide(log).task == tasks[0][0], "whatever the order of the suite"
    numbers = [SUITE.index(task) for task in tasks[0]]
    assert abs(np.corrcoef(numbers, range(10))[0, 1]) < 0.5


def test_an_archive_that_may_not_grow_spends_the_rest_on_its_best():
    log = archive((1, 10), (3, 10), tasks=SUITE, budget=Budget(evaluations=1000, agents=2))
    assert decide(log).agent == 1
    log = archive((3, 10), tasks=SUITE, budget=Budget(evaluations=1000, agents=2))
    log.start(Expand((SEED,), "self-edit"))
    assert decide(log) is None, "a child is on its way to the last place"


def test_failed_births_may_outnumber_evaluations_by_a_few_only():
    log = archive((3, 10), (0, 0), (0, 0), (0, 0))
    for agent in (1, 2, 3):
        for task in TASKS:
            log.add(ActionLost(log.start(Evaluate(AgentId(agent), task)), "given up", final=True))
    for number in range(10 + BARREN):
        log.made((number % 4,), "self-edit", dies="check")
    assert dgm(View(log.tree), Random(0)).expand
    log.made((0,), "self-edit", dies="check")
    assert not dgm(View(log.tree), Random(0)).expand


# Ablations


def test_without_an_archive_the_latest_agent_is_the_parent_one_step_after_the_other():
    log = archive((3, 10), (3, 10), (3, 10), (0, 10), parents=(0, 0, 1))
    assert {decide(log, "no-archive", seed).parents for seed in range(20)} == {(AgentId(3),)}
    log.start(decide(log, "no-archive"))
    assert decide(log, "no-archive") is None
    log = archive((3, 10), (0, 0))
    for _ in TASKS:
        log.start(decide(log, "no-archive"))
    assert decide(log, "no-archive") is None, "the child is being evaluated"
    for number in list(log.tree.pending):
        log.add(ActionLost(number, "given up", final=True))
    assert decide(log, "no-archive") == Expand((SEED,), "self-edit"), "it gives no results"


def test_without_self_improvement_the_seed_makes_all_children():
    log = archive((0, 10), (5, 10), (10, 10), parents=(0, 1))
    assert {decide(log, "no-self-improvement", seed).parents for seed in range(20)} == {(SEED,)}
