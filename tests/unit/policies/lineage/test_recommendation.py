"""Which agent the policy ``lineage`` hands out."""

import pytest

from dgm.domain import TaskId
from dgm.policies.lineage import rules
from dgm.policies.lineage.constants import FIT_MOVE
from dgm.policies.lineage.rules import LineageRecommendation, fitted
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import Log


def recommended(log):
    return LineageRecommendation(PolicyContext()).recommend(log.tree)


def test_the_seed_is_left_on_evidence_only():
    log = Log()
    log.born()
    assert recommended(log) == 0
    log.graded(0, [True] * 5 + [False] * 5)
    log.born(0)
    log.graded(1, [True])
    assert recommended(log) == 0, "one result is not enough"
    log.graded(1, [True] * 9)
    assert recommended(log) == 1


def test_a_recommendation_needs_no_events():
    log = Log()
    log.born()
    log.graded(0, [True] * 3 + [False] * 7)
    for child, solved in ((1, 2), (2, 5), (3, 3), (4, 8)):
        log.born(child // 2)
        log.graded(child, [True] * solved + [False] * (9 - solved))
    best = recommended(log)
    assert best == 4
    assert recommended(log) == best


def test_of_two_that_seem_equal_the_better_known_is_handed_out():
    log = Log()
    log.born()
    log.graded(0, [False] * 6)
    for child, results in ((1, [True] * 3), (2, [True] * 5 + [False] * 5)):
        log.born(0)
        log.graded(child, results)
    seen = fitted(log.tree).beliefs.states
    assert 0 < seen[1].t - seen[2].t < 0.05
    assert seen[1].tt > seen[2].tt
    assert recommended(log) == 2


@pytest.mark.parametrize("results", [[True, False], [True] * 8])
def test_a_recommendation_ends_its_rounds_when_nothing_moves(results):
    log = Log()
    log.born()
    log.graded(0, results)
    few, all_rounds = (
        [state.t for state in fitted(log.tree, rest).beliefs.states] for rest in (FIT_MOVE, 0.0)
    )
    assert few != all_rounds
    assert few == pytest.approx(all_rounds, abs=0.01)


TASKS = tuple(TaskId(f"task-{n:02}") for n in range(60))


def handed_out(broken, more):
    """Whether a child is handed out that solves ``more`` of 60 tasks than its seed; ``broken`` others have failed."""
    log = Log(tasks=TASKS)
    log.born()
    log.graded(0, [True] * 20 + [False] * 40)
    for _ in range(broken):
        log.graded(log.born(0), [False] * 3)
    log.graded(log.born(0), [True] * (20 + more) + [False] * (40 - more))
    return recommended(log) == len(log.tree.agents) - 1


def needed(broken):
    return next(more for more in range(-20, 20) if handed_out(broken, more))


@pytest.mark.slow
def test_the_more_first_children_fail_the_sooner_the_seed_is_left():
    assert needed(0) >= needed(4) == needed(5) > needed(6) > needed(8) == needed(10)


def needed_after(generations, broken=0):
    """How many more tasks than the seed an agent has to solve whose forebears are unknown; others have failed."""
    for more in range(-20, 20):
        log = Log(tasks=TASKS)
        log.born()
        log.graded(0, [True] * 20 + [False] * 40)
        for _ in range(broken):
            log.graded(log.born(0), [False] * 3)
        last = 0
        for _ in range(generations):
            last = log.born(last)
        log.graded(last, [True] * (20 + more) + [False] * (40 - more))
        if recommended(log) == last:
            return more
    raise AssertionError


@pytest.mark.slow
def test_the_seed_is_left_sooner_for_a_later_generation(monkeypatch):
    second, fourth, sixth, eighth = (needed_after(generations) for generations in (2, 4, 6, 8))
    assert second > 0 > sixth
    assert second > fourth > sixth == eighth
    assert needed_after(2, broken=8) <= needed_after(6, broken=8) < sixth, "the generation counts no more"
    monkeypatch.setattr(rules, "HANDED_OUT_ROOT_BONUS", (0.1, 0.1))
    assert needed_after(2) == needed_after(4) == needed_after(6)


def test_nobody_is_handed_out_who_solved_nothing():
    log = Log(tasks=TASKS)
    log.born()
    log.graded(0, [True] * 2 + [False] * 58)
    for _ in range(8):
        log.graded(log.born(0), [False] * 3)
    log.graded(log.born(0), [False, False])
    assert recommended(log) == 0


def test_one_result_alone_is_not_enough_to_be_handed_out(monkeypatch):
    """A child is believed to be about as good as its parent, and its own children say so, too."""
    log = Log(tasks=TASKS)
    log.born()
    log.graded(0, [False] * 60)
    parent = log.born(0)
    log.graded(parent, [True, True, False, False])
    child = log.born(parent)
    log.graded(child, [True])
    for _ in range(12):
        log.graded(log.born(child), [True])
    assert recommended(log) == parent
    monkeypatch.setattr(rules, "LEAST_RESULTS", 1)
    assert recommended(log) == child
