"""The parent rule of ``hyperagents`` on trees made by hand."""

import math
from collections import Counter
from random import Random

import pytest

from dgm.archive.events import ActionStarted, AgentStillborn
from dgm.domain import AgentId, Expand, Stillborn
from dgm.policies.hyperagents import TopRelative, parent_probabilities
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import Log

pytestmark = pytest.mark.slow


def formula(scores, children):
    midpoint = sum(sorted(scores)[-3:]) / min(3, len(scores))
    weights = [
        1 / (1 + math.exp(-10 * (s - midpoint))) * math.exp(-((c / 8) ** 3))
        for s, c in zip(scores, children, strict=True)
    ]
    return [weight / sum(weights) for weight in weights]


def archive():
    """Scores 0.5, 0.7, 0.2, 0.9, 0.6; children 3, 1, 0, 0, 0."""
    log = Log()
    for parents in ((), (0,), (0,), (0,), (1,)):
        log.born(*parents)
    for agent, resolved in enumerate((5, 7, 2, 9, 6)):
        log.graded(agent, [True] * resolved + [False] * (10 - resolved))
    return log


def test_probabilities_equal_the_formula():
    expected = formula([0.5, 0.7, 0.2, 0.9, 0.6], [3, 1, 0, 0, 0])
    assert parent_probabilities(archive().tree).tolist() == pytest.approx(expected, abs=1e-12)


def test_children_in_the_making_and_stillborn_ones_count():
    log = archive()
    first, second = log.tree.next_action, log.tree.next_action + 1
    log.add(ActionStarted(first, Expand((AgentId(3),), "self-edit")))
    log.add(ActionStarted(second, Expand((AgentId(3),), "self-edit")))
    log.add(AgentStillborn(second, Stillborn((AgentId(3),), "self-edit", "vetting", "broken")))
    expected = formula([0.5, 0.7, 0.2, 0.9, 0.6], [3, 1, 0, 2, 0])
    assert parent_probabilities(log.tree).tolist() == pytest.approx(expected, abs=1e-12)


def test_unevaluated_agents_have_no_chance():
    log = archive()
    log.born(3)
    expected = formula([0.5, 0.7, 0.2, 0.9, 0.6], [3, 1, 0, 1, 0])
    assert parent_probabilities(log.tree).tolist() == pytest.approx([*expected, 0.0], abs=1e-12)


def test_with_fewer_than_three_scores_the_midpoint_is_their_mean():
    log = Log()
    log.born()
    log.born(0)
    log.graded(0, [True, False])
    log.graded(1, [True, True])
    assert parent_probabilities(log.tree).tolist() == pytest.approx(formula([0.5, 1.0], [1, 0]), abs=1e-12)


def test_overcrowded_parents_are_all_as_likely():
    log = Log(tasks=("only",))
    log.born()
    log.born(0)
    for _ in range(100):
        log.born(0)
        log.born(1)
    log.graded(0, [True])
    log.graded(1, [False])
    assert parent_probabilities(log.tree)[:3].tolist() == [0.5, 0.5, 0.0]


def test_draws_follow_the_probabilities():
    log = archive()
    rule = TopRelative(PolicyContext())
    drawn = Counter(rule.parents(log.tree, Random(seed))[0] for seed in range(1000))
    for agent, probability in enumerate(parent_probabilities(log.tree)):
        # Four standard deviations of a share of 1,000; seeds 0 to 999 are fixed.
        assert drawn[agent] / 1000 == pytest.approx(probability, abs=4 * math.sqrt(0.25 / 1000))
