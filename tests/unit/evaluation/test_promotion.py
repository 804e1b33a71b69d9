"""Rounds of promotion: who is a candidate, who is accepted, and what the log allows."""

import pytest

from dgm.archive.events import PromotionDecided, PromotionSpent, PromotionStarted, RunStarted
from dgm.domain import SEED, AgentId, Budget, Usage
from dgm.errors import ArchiveCorrupt
from dgm.evaluation.promotion import choose_accepted, choose_candidates, level_of, list_differences
from dgm.policies.limits import share_left
from tests.support.runs.trees import Log


def grown(*rates):
    """A seed and its children, which resolve so many of ten tasks."""
    log = Log()
    for agent, rate in enumerate(rates):
        log.born(*([0] if agent else []))
        log.graded(agent, [number < rate for number in range(10)])
    return log


def perform_round(log, candidates, accepted=None, limit=1):
    promotions = log.tree.promotions
    number = len(promotions.rounds) + 1
    log.add(PromotionStarted(number, promotions.incumbent, tuple(candidates), 0.05, limit))
    log.add(PromotionDecided(number, accepted))


def choose(log, recommended, limit=1):
    return tuple(choose_candidates(log.tree, log.tree.promotions, recommended, limit))


def test_the_recommended_agent_comes_first_then_those_above_the_incumbent():
    log = grown(3, 5, 9, 1, 7)
    assert choose(log, 1) == (1,)
    assert choose(log, 1, limit=3) == (1, 2, 4)
    assert choose(log, 1, limit=9) == (1, 2, 4)


def test_an_agent_that_was_compared_with_the_incumbent_is_no_candidate_until_another_is_promoted():
    log = grown(3, 5, 9)
    assert choose(log, 0) == ()
    perform_round(log, [2])
    assert choose(log, 2) == ()
    assert choose(log, 1) == (1,)
    perform_round(log, [1], accepted=1)
    assert choose(log, 1) == ()
    assert choose(log, 2) == (2,)


def test_an_agent_without_a_verdict_is_no_candidate():
    log = grown(3)
    log.born(0)
    assert choose(log, 1) == ()


def test_the_smallest_p_value_is_accepted_if_it_reaches_the_level():
    assert choose_accepted({3: 0.01, 4: 0.002, 5: 0.002}, 0.002) == 4
    assert choose_accepted({3: 0.01, 4: 0.002}, 0.0019) is None


def test_levels_follow_the_rounds_and_promotions_before():
    log = grown(3, 5, 9, 9)
    perform_round(log, [1], accepted=1, limit=2)
    perform_round(log, [2], limit=2)
    perform_round(log, [3], accepted=3, limit=2)
    levels = [level_of(log.tree.promotions, started) for started in log.tree.promotions.rounds]
    assert levels == pytest.approx([0.05 / 4 / 2, 0.05 / 6 / 6 / 4, 0.05 / 12 / 6 / 2 / 4])
    assert (log.tree.promotions.certified, log.tree.promotions.count) == (3, 2)


@pytest.mark.parametrize(
    "events",
    [
        [PromotionDecided(1)],
        [PromotionStarted(2, 0, (1,), 0.05, 1)],
        [PromotionStarted(1, 1, (2,), 0.05, 1)],
        [PromotionStarted(1, 0, (9,), 0.05, 1)],
        [PromotionStarted(1, 0, (), 0.05, 1)],
        [PromotionStarted(1, 0, (1,), 0.05, 1), PromotionStarted(2, 0, (2,), 0.05, 1)],
        [PromotionStarted(1, 0, (1,), 0.05, 1), PromotionDecided(1, 2)],
    ],
)
def test_a_round_that_cannot_follow_is_damage(events):
    log = grown(3, 5, 9)
    for event in events[:-1]:
        log.add(event)
    with pytest.raises(ArchiveCorrupt, match="promotion"):
        log.add(events[-1])


def test_promotion_counts_in_the_spend_but_not_in_what_policies_see_nor_in_the_time():
    log = Log(Budget(usd=10.0))
    log.born()
    before = log.tree.wall_seconds
    log.add(PromotionSpent("m", Usage(calls=2, usd=4.0)))
    assert (log.tree.spend.usd, log.tree.promotion_spend.usd) == (4.0, 4.0)
    assert share_left(log.tree) == 1.0
    assert log.tree.wall_seconds == before


def test_policies_do_not_see_the_time_of_a_round_and_the_budget_does():
    log = Log(Budget(seconds=100.0))
    log.born()
    log.born(0)
    began = log.tree.wall_seconds
    log.add(PromotionStarted(1, SEED, (AgentId(1),), 0.05, 1))
    log.add(PromotionDecided(1))
    log.born(0)
    assert log.tree.wall_seconds == began + 3
    assert share_left(log.tree) == pytest.approx(1 - began / 100)
    log.add(PromotionStarted(2, SEED, (AgentId(2),), 0.05, 1))
    log.add(RunStarted(Budget(seconds=100.0), ()))
    assert share_left(log.tree) == pytest.approx(1 - began / 100)


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        (False, True, [1]),
        (True, False, [-1]),
        (True, True, [0]),
        (False, False, [0]),
        (True, None, [-1]),
        (False, None, [0]),
        (None, True, [0]),
        (None, False, [-1]),
        (None, None, []),
    ],
)
def test_a_verdict_that_is_missing_favours_the_incumbent(old, new, difference):
    assert list_differences([("task", old, new)]) == difference
