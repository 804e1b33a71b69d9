"""Which agent the policy ``lineage`` hands out."""

import pytest

from dgm.policies.lineage.constants import FIT_MOVE
from dgm.policies.lineage.rules import LineageRecommendation, fitted
from dgm.policies.rules import Kit
from tests.unit.worlds import Log


def recommended(log):
    return LineageRecommendation(Kit()).recommend(log.tree)


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


def test_a_recommendation_ends_its_rounds_when_nothing_moves():
    log = Log()
    log.born()
    log.graded(0, [True, False])
    few, all_rounds = (
        [state.t for state in fitted(log.tree, rest).beliefs.states] for rest in (FIT_MOVE, 0.0)
    )
    assert few != all_rounds
    assert few == pytest.approx(all_rounds, abs=0.01)
