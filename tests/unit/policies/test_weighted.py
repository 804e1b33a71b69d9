"""The parent rule of ``weighted`` on trees made by hand."""

import math
from statistics import median

import pytest

from dgm.archive.events import ActionStarted
from dgm.domain import AgentId, Expand
from dgm.policies.weighted import parent_probabilities
from tests.support.runs.trees import Log


def formula(scores, children):
    middle = median(scores)
    scale = max(median(abs(score - middle) for score in scores), 1e-6)
    weights = [
        1 / (1 + math.exp(-10 * (score - middle) / scale)) / (1 + count)
        for score, count in zip(scores, children, strict=True)
    ]
    return [weight / sum(weights) for weight in weights]


def archive(*resolved):
    log = Log()
    for agent, count in enumerate(resolved):
        log.born(*([0] if agent else []))
        log.graded(agent, [True] * count + [False] * (10 - count))
    return log


def test_probabilities_equal_the_formula():
    expected = formula([0.5, 0.7, 0.2, 0.9], [3, 0, 0, 0])
    assert parent_probabilities(archive(5, 7, 2, 9).tree).tolist() == pytest.approx(expected, abs=1e-12)


def test_children_in_the_making_count():
    log = archive(5, 7, 2, 9)
    log.add(ActionStarted(log.tree.next_action, Expand((AgentId(3),), "self-edit")))
    expected = formula([0.5, 0.7, 0.2, 0.9], [3, 0, 0, 1])
    assert parent_probabilities(log.tree).tolist() == pytest.approx(expected, abs=1e-12)


def test_without_a_spread_whoever_is_above_the_median_counts_fully_and_below_not_at_all():
    shares = parent_probabilities(archive(5, 5, 5, 5, 9, 1).tree)
    # Weights: 0.5 / (1 + 5), three times 0.5, 1 and 0.
    total = 0.5 / 6 + 1.5 + 1.0
    assert shares.tolist() == pytest.approx([0.5 / 6 / total, *[0.5 / total] * 3, 1 / total, 0.0], abs=1e-12)


def test_an_agent_alone_is_certain():
    assert parent_probabilities(archive(3).tree).tolist() == [1.0]
