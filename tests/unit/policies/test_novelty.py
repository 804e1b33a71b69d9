"""The parent rule of ``novelty`` on trees made by hand."""

import math
from random import Random

import pytest

from dgm.archive.events import ActionStarted
from dgm.domain import AgentId, Expand
from dgm.policies.novelty import PerformanceNovelty, group, novelty
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import TASKS, Log

VECTORS = (
    (1, 1, 1, 1, 0, 0, 0, 0, 0, 0),
    (1, 1, 1, 1, 1, 0, 0, 0, 0, 0),
    (1, 1, 1, 0, 0, 0, 0, 0, 0, 0),
    (0, 0, 0, 0, 0, 0, 0, 1, 1, 1),
    (1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
)


def archive(vectors=VECTORS):
    log = Log()
    for agent, vector in enumerate(vectors):
        log.born(*([0] if agent else []))
        log.graded(agent, map(bool, vector))
    return log


def expected_novelty(vectors, agent):
    def distance(a, b):
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        return 1 - dot / (math.sqrt(sum(a)) * math.sqrt(sum(b)) + 1e-8)

    others = [distance(vectors[agent], other) for place, other in enumerate(vectors) if place != agent]
    nearest = sorted(others)[:4]
    return sum(nearest) / len(nearest)


def test_novelty_equals_the_formula():
    expected = [expected_novelty(VECTORS, agent) for agent in range(len(VECTORS))]
    assert novelty(archive().tree).tolist() == pytest.approx(expected, abs=1e-12)


def test_the_group_has_the_two_highest_products_of_performance_and_root_of_novelty():
    products = [sum(v) / 10 * math.sqrt(expected_novelty(VECTORS, a)) for a, v in enumerate(VECTORS)]
    ranked = sorted(range(len(VECTORS)), key=lambda agent: -products[agent])
    assert ranked[0] == 4
    assert ranked[1] == 3, "few tasks solved, but those that nobody else solves"
    assert group(archive().tree) == ranked[:2]


@pytest.mark.slow
def test_many_agents_are_ranked_as_all_at_once():
    rng = Random(5)
    vectors = [[int(rng.random() < 0.5) for _ in TASKS] for _ in range(150)]
    tree = archive(vectors).tree
    values = novelty(tree)
    ranked = sorted(
        range(150), key=lambda agent: (-sum(vectors[agent]) / 10 * math.sqrt(values[agent]), agent)
    )
    assert group(tree) == ranked[:2]


def test_both_of_the_group_are_drawn():
    rule, log = PerformanceNovelty(PolicyContext()), archive()
    assert {rule.parents(log.tree, Random(seed)) for seed in range(40)} == {(3,), (4,)}


def test_the_one_with_fewer_children_in_the_making_comes_first():
    log = archive()
    log.add(ActionStarted(log.tree.next_action, Expand((AgentId(4),), "self-edit")))
    rule = PerformanceNovelty(PolicyContext())
    assert {rule.parents(log.tree, Random(seed)) for seed in range(40)} == {(3,)}


def test_agents_that_share_too_few_tasks_are_not_compared():
    log = Log()
    for parents in ((), (0,), (0,)):
        log.born(*parents)
    log.graded(0, [True] * 10)
    log.graded(1, [True] * 10)
    log.graded(2, [True] * 4)
    assert novelty(log.tree).tolist() == pytest.approx([1e-9, 1e-9, 1.0], abs=1e-8)


def test_agents_that_share_five_tasks_are_compared():
    log = Log()
    for parents, shared in (((), 10), ((0,), 5)):
        log.graded(log.born(*parents), [True] * shared)
    assert novelty(log.tree).tolist() == pytest.approx([0.0, 0.0], abs=1e-8)


def test_an_agent_alone_is_the_group():
    assert group(archive(VECTORS[:1]).tree) == [0]
