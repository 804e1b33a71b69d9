"""The parent rule of ``greedy`` on trees made by hand."""

from random import Random

from dgm.policies.greedy import BestMean
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import Log


def parent(log):
    return BestMean(PolicyContext()).parents(log.tree, Random(0))


def test_the_highest_mean_is_the_parent():
    log = Log()
    for parents in ((), (0,), (0,), (1,)):
        log.born(*parents)
    log.graded(0, [True] * 5 + [False] * 5)
    log.graded(1, [True] * 7 + [False] * 3)
    log.graded(2, [True] * 6 + [False] * 4)
    assert parent(log) == (1,)


def test_among_equal_means_more_evaluations_win():
    log = Log()
    log.born()
    log.born(0)
    log.graded(0, [True, False])
    log.graded(1, [True, True, False, False])
    assert parent(log) == (1,)


def test_among_equals_the_older_wins():
    log = Log()
    for parents in ((), (0,), (0,)):
        log.born(*parents)
    for agent in (2, 1):
        log.graded(agent, [True, False])
    assert parent(log) == (1,)
