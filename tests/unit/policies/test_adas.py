"""The parent rule of ``adas`` on trees made by hand."""

from random import Random

from dgm.policies.adas import Newest
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import Log


def parent(log):
    return Newest(PolicyContext()).parents(log.tree, Random(0))


def test_the_newest_agent_is_the_parent_whatever_it_scored():
    log = Log()
    for parents in ((), (0,), (1,)):
        log.born(*parents)
    log.graded(0, [True] * 10)
    log.graded(1, [True] * 10)
    log.graded(2, [False] * 10)
    assert parent(log) == (2,)


def test_an_agent_joins_the_line_when_it_is_evaluated():
    log = Log()
    for parents in ((), (0,), (1,)):
        log.born(*parents)
    log.graded(0, [True] * 10)
    log.graded(1, [False] * 10)
    assert parent(log) == (1,)
