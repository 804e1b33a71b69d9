"""``dgm``: the formula of its parents, the stages of its evaluations, and its two ablations."""

import math
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.archive.events import ActionLost, ActionStarted, AgentStillborn, TaskGraded
from dgm.domain import SEED, AgentId, Budget, Evaluate, Evaluation, Expand, Stillborn, TaskId, Verdict
from dgm.policies.dgm import BIRTHS_AT_ONCE, parent_probabilities
from dgm.policies.limits import BARREN
from dgm.policies.staged import FIRST_STAGE, SECOND_STAGE, fixed_order, may_still_grow, owed
from tests.support.runs.trees import TASKS, Log, named

SUITE = tuple(TaskId(f"task-{n:02}") for n in range(75))
PLENTY = Budget(evaluations=10_000)


def decide(log, name="dgm", seed=0, **policy):
    return named(name, **policy).next(log.tree, Random(seed))


def start(log, action):
    number = log.tree.next_action
    log.add(ActionStarted(number, action))
    return number


def grown(*parents, tasks=TASKS, budget=PLENTY):
    """An archive of a seed and its descendants, none of them evaluated."""
    log = Log(budget, tasks)
    log.born()
    for parent in parents:
        log.born(parent)
    return log


def solved(resolved, of):
    return [True] * resolved + [False] * (of - resolved)


def expected(rows):
    """The formula of arXiv:2505.22954, appendix C.2, on (score, children), one term at a time."""
    weights = [1 / (1 + math.exp(-10 * (score - 0.5))) / (1 + children) for score, children in rows]
    return [weight / math.fsum(weights) for weight in weights]


# Parents


def test_parents_are_drawn_by_score_over_children():
    log = grown(0, 0, 1)
    for agent, resolved in enumerate((2, 5, 0, 9)):
        log.graded(agent, solved(resolved, 10))
    by_hand = expected([(0.2, 2), (0.5, 1), (0.0, 0), (0.9, 0)])
    assert parent_probabilities(log.tree) == pytest.approx(by_hand, rel=1e-12)
    # σ(-3) / 3 = 0.015809, σ(0) / 2 = 0.25, σ(-5) = 0.006693 and σ(4) = 0.982014 over their sum, 1.254515.
    assert by_hand == pytest.approx([0.012601, 0.199280, 0.005335, 0.782783], abs=1e-6)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_probabilities_equal_the_formula_on_any_archive(results, random):
    parents = [random.randrange(child) for child in range(1, len(results))]
    log = grown(*parents)
    counts = Counter(parents)
    rows = []
    for agent, (a, b) in enumerate(results):
        resolved, n = min(a, b), max(a, b, 1)
        log.graded(agent, solved(resolved, n))
        rows.append((resolved / n, counts[agent]))
    assert parent_probabilities(log.tree) == pytest.approx(expected(rows), rel=1e-12, abs=1e-15)


@pytest.mark.slow
def test_draws_follow_the_probabilities():
    # Seeds 0 to 1999; the bound is 5 standard errors, so that about 1 of 10^6 other seeds would fail.
    log = grown(0, 0)
    for agent, resolved in enumerate((5, 6, 3)):
        log.graded(agent, solved(resolved, 10))
    drawn = Counter(decide(log, seed=seed).parents[0] for seed in range(2000))
    for agent, probability in enumerate(parent_probabilities(log.tree)):
        assert drawn[agent] / 2000 == pytest.approx(probability, abs=5 * math.sqrt(0.25 / 2000))


def test_a_birth_under_way_counts_as_a_child_and_a_stillborn_one_does_not():
    log = grown(0)
    for agent in (0, 1):
        log.graded(agent, solved(5, 10))
    before = parent_probabilities(log.tree)
    number = start(log, Expand((AgentId(1),), "self-edit"))
    assert parent_probabilities(log.tree) == pytest.approx(expected([(0.5, 1), (0.5, 1)]), rel=1e-12)
    log.add(ActionLost(number, "the power went"))
    assert parent_probabilities(log.tree) == pytest.approx(expected([(0.5, 1), (0.5, 1)]), rel=1e-12)
    log.add(AgentStillborn(number, Stillborn((AgentId(1),), "self-edit", "check", "")))
    assert parent_probabilities(log.tree) == pytest.approx(before, rel=1e-12)


def test_an_agent_without_results_is_no_parent():
    log = grown(0)
    log.graded(0, solved(0, 10))
    assert list(parent_probabilities(log.tree)) == [1.0, 0.0]


def test_an_agent_is_a_parent_once_its_first_stage_is_graded():
    log = grown(0, tasks=SUITE)
    log.graded(0, solved(3, 10))
    log.graded(1, solved(8, 9))
    start(log, Evaluate(AgentId(1), SUITE[9]))
    assert parent_probabilities(log.tree)[1] == 0.0, "its tenth task is not graded"
    log.graded(1, [True])
    start(log, Evaluate(AgentId(1), SUITE[11]))
    assert parent_probabilities(log.tree)[1] > 0.5, "what is under way belongs to the second stage"


def test_an_agent_that_resolved_everything_stays_a_parent():
    log = grown()
    log.graded(0, solved(10, 10))
    assert list(parent_probabilities(log.tree)) == [1.0]


def test_at_most_two_births_are_under_way():
    log = grown()
    log.graded(0, solved(3, 10))
    for _ in range(BIRTHS_AT_ONCE):
        action = decide(log)
        assert action == Expand((SEED,), "self-edit")
        start(log, action)
    assert BIRTHS_AT_ONCE == 2
    assert decide(log) is None


def test_a_seed_all_of_whose_tasks_were_given_up_still_expands():
    log = grown(tasks=SUITE)
    for _ in range(FIRST_STAGE):
        log.add(ActionLost(start(log, decide(log)), "given up", final=True))
    assert decide(log) == Expand((SEED,), "self-edit")


# Stages


def test_stages_are_ten_and_fifty_tasks():
    assert (FIRST_STAGE, SECOND_STAGE) == (10, 50)


@pytest.mark.parametrize(("resolved", "more"), [(0, 0), (3, 0), (4, 50), (10, 50)])
def test_the_second_stage_wants_four_of_ten(resolved, more):
    log = grown(tasks=SUITE)
    log.graded(0, solved(resolved, 10))
    begun = 0
    while isinstance(action := decide(log), Evaluate):
        log.graded(action.agent, [False])
        begun += 1
    assert begun == more
    assert action == Expand((SEED,), "self-edit")


@pytest.mark.parametrize(
    ("resolved", "more"), [(3, [False]), (3, [True] * 9), (4, [False]), (4, [False] * 40)]
)
def test_what_was_tried_after_the_first_stage_promotes_nobody(resolved, more):
    log = grown(tasks=SUITE)
    log.graded(0, [*solved(resolved, 10), *more])
    assert list(owed(log.tree)) == ([0] if resolved >= 4 else [])


def test_a_task_of_the_first_stage_that_was_given_up_counts_nowhere_later():
    log = grown(tasks=SUITE)
    for task in SUITE[:4]:
        log.add(ActionLost(start(log, Evaluate(SEED, task)), "given up", final=True))
    log.graded(0, solved(3, 6))
    assert list(owed(log.tree)) == [0]
    log.graded(0, [False] * 20)
    assert list(owed(log.tree)) == [0], "three of the six that count"


def test_who_tried_more_waits_for_its_first_stage():
    log = grown(tasks=SUITE)
    first = start(log, Evaluate(SEED, SUITE[0]))
    log.graded(0, [*solved(9, 9), False])
    assert list(owed(log.tree)) == []
    log.add(ActionLost(first, "given up", final=True))
    assert list(owed(log.tree)) == [0]


def test_a_suite_between_the_stages_gives_what_it_has():
    log = grown(tasks=SUITE[:23])
    log.graded(0, solved(4, 10))
    assert list(owed(log.tree)) == [0]
    log.graded(0, solved(0, 13))
    assert list(owed(log.tree)) == []


def test_a_suite_smaller_than_the_first_stage_is_one_stage():
    log = grown(tasks=SUITE[:3])
    log.graded(0, [False, False])
    assert list(owed(log.tree)) == [0]
    log.graded(0, [True])
    assert list(owed(log.tree)) == []
    assert decide(log) == Expand((SEED,), "self-edit")


def test_the_second_stage_waits_for_the_whole_first():
    log = grown(0, tasks=SUITE)
    log.graded(0, solved(0, 10))
    log.graded(1, solved(9, 9))
    number = start(log, Evaluate(AgentId(1), SUITE[9]))
    assert list(owed(log.tree)) == []
    log.add(ActionLost(number, "to be performed again"))
    assert list(owed(log.tree)) == []
    log.add(ActionLost(number, "given up", final=True))
    assert list(owed(log.tree)) == [1], "nine of the nine that count"


def test_what_is_under_way_is_not_owed_again():
    log = grown()
    for _ in TASKS:
        start(log, decide(log))
    assert list(owed(log.tree)) == []
    assert decide(log) is None, "the seed has no score yet"


def test_the_stages_of_all_agents_are_the_same_tasks():
    log = grown(0, tasks=SUITE)
    given = {0: [], 1: []}
    while isinstance(action := decide(log), Evaluate):
        given[action.agent].append(action.task)
        start(log, action)
    assert given[0] == given[1] == list(fixed_order(SUITE)[:FIRST_STAGE])


def test_the_fixed_order_is_not_that_of_the_suite():
    ordered = fixed_order(SUITE)
    assert sorted(ordered) == sorted(SUITE)
    assert fixed_order(tuple(reversed(SUITE))) == ordered
    places = [SUITE.index(task) for task in ordered]
    assert abs(np.corrcoef(places, range(len(SUITE)))[0, 1]) < 0.3


def test_the_oldest_agent_is_served_first():
    log = grown(0, 0)
    log.graded(0, solved(0, 10))
    assert decide(log).agent == 1


def test_an_archive_that_may_not_grow_spends_the_rest_on_its_best():
    log = grown(0, tasks=SUITE, budget=Budget(evaluations=1000, agents=2))
    log.graded(0, solved(1, 10))
    log.graded(1, solved(3, 10))
    assert decide(log).agent == 1


def test_what_is_left_is_not_touched_while_a_child_is_on_its_way():
    log = grown(tasks=SUITE, budget=Budget(evaluations=1000, agents=2))
    log.graded(0, solved(3, 10))
    start(log, Expand((SEED,), "self-edit"))
    assert decide(log) is None


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_seed_without_living_children_ends_with_its_last_task(workers):
    log, flying = grown(tasks=SUITE), {}
    log.graded(0, solved(3, 10))
    for _ in range(400):
        action = decide(log) if len(flying) < workers else None
        if action is not None:
            flying[start(log, action)] = action
            continue
        if not flying:
            break
        number, action = flying.popitem()
        if isinstance(action, Expand):
            log.add(AgentStillborn(number, Stillborn((SEED,), "self-edit", "check", "")))
        else:
            log.add(TaskGraded(number, Evaluation(SEED, action.task, 0, Verdict.UNRESOLVED, "")))
    assert not flying
    assert log.tree.own(SEED).n == len(SUITE)


def test_failed_births_that_are_not_many_cost_no_evaluation():
    log = grown(tasks=SUITE)
    log.graded(0, solved(3, 10))
    for _ in range(20):
        number = start(log, decide(log))
        log.add(AgentStillborn(number, Stillborn((SEED,), "self-edit", "check", "")))
    assert log.tree.evaluations == 10


# Ablations


def test_without_an_archive_the_latest_agent_is_the_parent():
    log = grown(0, 0, 1)
    for agent, resolved in enumerate((3, 3, 3, 0)):
        log.graded(agent, solved(resolved, 10))
    assert {decide(log, "no-archive", seed).parents for seed in range(20)} == {(AgentId(3),)}


def test_without_an_archive_one_step_follows_the_other():
    log = grown()
    log.graded(0, solved(3, 10))
    start(log, decide(log, "no-archive"))
    assert decide(log, "no-archive") is None
    log = grown(0)
    log.graded(0, solved(3, 10))
    for _ in TASKS:
        start(log, decide(log, "no-archive"))
    assert decide(log, "no-archive") is None, "the child is being evaluated"


def test_without_an_archive_an_agent_that_gives_no_results_is_passed_over():
    log = grown(0, tasks=SUITE)
    log.graded(0, solved(3, 10))
    for _ in range(FIRST_STAGE):
        log.add(ActionLost(start(log, decide(log, "no-archive")), "given up", final=True))
    assert decide(log, "no-archive") == Expand((SEED,), "self-edit")


def test_without_self_improvement_the_seed_makes_all_children():
    log = grown(0, 1)
    for agent, resolved in enumerate((0, 5, 10)):
        log.graded(agent, solved(resolved, 10))
    assert {decide(log, "no-self-improvement", seed).parents for seed in range(20)} == {(SEED,)}


@pytest.mark.parametrize("name", ["dgm", "no-archive", "no-self-improvement"])
def test_the_ablations_share_the_stages(name):
    log = grown(0, tasks=SUITE)
    log.graded(0, solved(4, 10))
    action = decide(log, name)
    assert (action.agent, action.task) == (0, next(t for t in fixed_order(SUITE) if t not in SUITE[:10]))


def test_failed_births_may_outnumber_evaluations_by_a_few_only():
    log = grown(0, 0, 0)
    log.graded(0, solved(3, 10))
    for number in range(10 + BARREN):
        log.made((number % 4,), "self-edit", dies="check")
    assert may_still_grow(log.tree)
    log.made((0,), "self-edit", dies="check")
    assert not may_still_grow(log.tree)
