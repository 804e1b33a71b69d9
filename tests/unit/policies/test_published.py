"""Published parent rules against their formulas, on trees made by hand, and the edges that they share."""

import math
from collections import Counter
from random import Random
from statistics import median

import numpy as np
import pytest

from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, AgentStillborn
from dgm.domain import SEED, AgentId, Born, Budget, CommitId, Evaluate, Expand, Stillborn, TaskId
from dgm.policies import published
from dgm.policies.limits import BARREN
from dgm.policies.policy import View
from tests.support.runs.trees import TASKS, Evenly, Log, named

NAMES = ["greedy", "sica", "uct", "hyperagents", "novelty", "pareto", "weighted", "adas"]
SHARES = 1000


def parent(name, log, rng=None):
    return getattr(published, name)(View(log.tree), rng or Random(0)).parent()


def shares(name, log):
    """How often each agent is the parent, over evenly spread random numbers."""
    drawn = Counter(parent(name, log, Evenly((n + 0.5) / SHARES)) for n in range(SHARES))
    return [drawn[agent.id] / SHARES for agent in log.tree.agents]


def archive(*resolved, parents=(0,) * 9, budget=None):
    """A seed and children of it, with the number of ten tasks that each resolved, or with its verdicts."""
    log = Log(budget)
    for agent, count in enumerate(resolved):
        log.born(*([parents[agent - 1]] if agent else []))
        log.graded(
            agent, [True] * count + [False] * (10 - count) if isinstance(count, int) else map(int, count)
        )
    return log


def expand(log, agent, dies=False):
    number = log.start(Expand((AgentId(agent),), "self-edit"))
    if dies:
        log.add(AgentStillborn(number, Stillborn((AgentId(agent),), "self-edit", "vetting", "broken")))
    return number


def by_weight(weights):
    return pytest.approx([weight / sum(weights) for weight in weights], abs=2 / SHARES)


# Edges


@pytest.mark.parametrize("name", NAMES)
def test_only_evaluated_agents_are_parents(name):
    log = archive(1)
    log.add(ActionStarted(log.tree.next_action, Evaluate(SEED, TASKS[0], 1)))
    log = Log()
    log.born()
    log.graded(0, [True])
    number = log.start(Evaluate(SEED, TASKS[5]))
    assert parent(name, log) is None, "its first evaluations run"
    log.add(ActionLost(number, "given up", final=True))
    assert parent(name, log) == 0
    log.born(0)
    assert {parent(name, log, Random(seed)) for seed in range(20)} == {0}
    log.graded(1, [True] * 4)
    log.start(Evaluate(AgentId(1), TASKS[7]))
    assert {parent(name, log, Random(seed)) for seed in range(20)} == {0}, "a lucky start while the rest runs"


# Rules that draw nothing


@pytest.mark.parametrize(
    ("name", "resolved", "expected"),
    [
        ("greedy", (5, 7, 6), 1),
        ("greedy", (5, "1010", "10"), 0),  # among equal means more evaluations win
        ("greedy", (1, "10", "10"), 1),  # then the older
        ("adas", (9, 10, 0), 2),
        ("adas", (9, 0, ""), 1),
        ("sica", (2, 7, 6, 5, 4, 3), 3),  # the bound of 7 of 10 is 0.42
        ("sica", (6, 7, 3, 2), 1),
        ("sica", (6, 7), 1),
        ("sica", (10, 9), 0),  # no deviation, no interval
        ("sica", ("1", 9), 0),
    ],
)
def test_the_parent_follows_from_the_results(name, resolved, expected):
    assert parent(name, archive(*resolved)) == expected


# Chances in proportion to weights


@pytest.mark.parametrize("making", [0, 2])
def test_hyperagents(making):
    log = archive(5, 7, 2, 9, 6, parents=(0, 0, 0, 1))
    for number in range(making):
        expand(log, 3, dies=number > 0)
    rates, children = (0.5, 0.7, 0.2, 0.9, 0.6), (3, 1, 0, making, 0)
    midpoint = (0.7 + 0.9 + 0.6) / 3
    assert shares("hyperagents", log) == by_weight(
        [
            1 / (1 + math.exp(-10 * (rate - midpoint))) * math.exp(-((count / 8) ** 3))
            for rate, count in zip(rates, children, strict=True)
        ]
    )


def test_hyperagents_with_fewer_than_three_scores():
    weights = [
        1 / (1 + math.exp(-10 * (rate - 0.75))) * math.exp(-((n / 8) ** 3))
        for rate, n in ((0.5, 1), (1.0, 0))
    ]
    assert shares("hyperagents", archive("10", "11")) == by_weight(weights)


def test_overcrowded_parents_are_all_as_likely():
    log = Log(tasks=(TaskId("only"),))
    log.born()
    log.born(0)
    for _ in range(100):
        log.born(0)
        log.born(1)
    log.graded(0, [True])
    log.graded(1, [False])
    assert shares("hyperagents", log)[:3] == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("making", [0, 1])
def test_weighted(making):
    log = archive(5, 7, 2, 9)
    for _ in range(making):
        expand(log, 3)
    rates = (0.5, 0.7, 0.2, 0.9)
    scale = median(abs(rate - 0.6) for rate in rates)
    weights = [1 / (1 + math.exp(-10 * (rate - 0.6) / scale)) for rate in rates]
    assert shares("weighted", log) == by_weight(
        [weights[0] / 4, weights[1], weights[2], weights[3] / (1 + making)]
    )


def test_weighted_without_a_spread():
    assert shares("weighted", archive(5, 5, 5, 5, 9, 1)) == by_weight([0.5 / 6, 0.5, 0.5, 0.5, 1, 0])


# uct


def test_the_upper_bound_is_the_formula():
    expected = 2.4 / 4 + math.sqrt(2) * math.sqrt(math.log(9) / 4)
    assert published.upper_bound(24 * published.UNIT // 10, 4, 9) == pytest.approx(expected, abs=1e-12)


def test_uct_walks_down_full_agents():
    assert parent("uct", archive(3, 9, 9)) == 0
    log = archive(3, 2, 8, 5)
    assert parent("uct", log) == 2
    for _ in range(3):
        log.born(1, 2)
    assert parent("uct", log) == 2, "children of two parents are below the first"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # N = 6. Child 1: 0.8 in 3 visits, 1.36; child 2: 0.7 in 1 visit, 2.59.
        ((8, 7, 2), [0, 0]),
        # N = 5. Child 1: 1.0 in 2 visits, 1.77 (if the grandchild were judged, 2.27); child 2: 0.2 in 1 visit, 1.99.
        ((10, 2, 1), ["111"]),
    ],
)
def test_uct_counts_offspring(first, second):
    log = archive(3, *first, *second, parents=(0, 0, 0, 1, 1))
    if second == ["111"]:
        log.start(Evaluate(AgentId(4), TASKS[9]))
    assert parent("uct", log) == 2


def test_uct_spreads_workers_by_virtual_loss():
    log, chosen = archive(3, 8, 7, 6), []
    for _ in range(3):
        chosen.append(parent("uct", log))
        expand(log, chosen[-1])
    assert chosen == [1, 2, 3]
    log = archive(3)
    for _ in range(5):
        assert parent("uct", log) == 0, "no child is judged, so nobody waits"
        expand(log, 0)


def test_uct_counts_stillborn_children_as_visits():
    log = archive(3, 8, 8, 2)
    assert parent("uct", log) == 1
    expand(log, 1, dies=True)
    assert parent("uct", log) == 2
    log = archive(3, 9, 9)
    number = expand(log, 0)
    assert parent("uct", log) == 1
    log.add(AgentStillborn(number, Stillborn((SEED,), "self-edit", "vetting", "broken")))
    assert parent("uct", log) == 0, "it leaves its place to another"


def test_uct_passes_by_clades_without_a_fertile_agent():
    log = archive(3, 9, 1, 1, 10, parents=(0, 0, 0, 1))
    for barren, expected in (((1, 4), (2, 3)), ((2, 3), (0,)), ((0,), (None,))):
        for agent in barren:
            for _ in range(BARREN):
                expand(log, agent, dies=True)
        assert parent("uct", log) in expected


# novelty

VECTORS = ("1111000000", "1111100000", "1110000000", "0000000111", "1111110000", "0000000000")


def novelty_of(agent):
    def distance(a, b):
        dot = sum(x == y == "1" for x, y in zip(a, b, strict=True))
        return 1 - dot / (math.sqrt(a.count("1")) * math.sqrt(b.count("1")) + 1e-8)

    nearest = sorted(
        distance(VECTORS[agent], other) for number, other in enumerate(VECTORS) if number != agent
    )[:4]
    return sum(nearest) / 4


def test_novelty_equals_the_formula():
    log = archive(*VECTORS)
    expected = [novelty_of(agent) for agent in range(6)]
    assert published.novelties(log.tree, list(range(6))).tolist() == pytest.approx(expected, abs=1e-12)
    worth = [VECTORS[agent].count("1") / 10 * math.sqrt(expected[agent]) for agent in range(6)]
    ranked = published.rank_by_worth(View(log.tree))
    assert ranked == sorted(range(6), key=lambda agent: -worth[agent])
    assert ranked[: published.GROUP] == [4, 3]
    assert shares("novelty", log)[3:5] == [0.5, 0.5]
    expand(log, 4)
    assert shares("novelty", log)[3] == 1.0, "the other has a child in the making"


@pytest.mark.parametrize(
    ("results", "expected"),
    [((10, 10, "1111"), [1e-9, 1e-9, 1.0]), ((10, "11111"), [0.0, 0.0]), ((5,), [1.0])],
)
def test_agents_that_share_too_few_tasks_are_not_compared(results, expected):
    log = archive(*results)
    assert published.novelties(log.tree, list(range(len(results)))).tolist() == pytest.approx(
        expected, abs=1e-8
    )


# pareto


def test_pareto_draws_by_fronts():
    # Fronts: tasks 0 and 1: agents 1, 2; task 2: 1; tasks 3, 4: 2; 5 to 8: nobody, so everybody; 9: seed.
    assert shares("pareto", archive("0000000001", "1110000000", "1101100000")) == by_weight([5, 7, 8])
    # Agent 2 solved all that the seed and agent 1 did.
    dominated = shares("pareto", archive("0001000000", "1100000000", "1101100000", "1110000000"))
    assert dominated[:2] == [0.0, 0.0] and dominated[2] > 0 < dominated[3]
    # Any one of the three can go, and only one: the one that solved least.
    least = shares("pareto", archive("0000000000", "1100000000", "0111000000", "1011000000"))
    assert least[1] == 0.0 and least[2] > 0 < least[3]


@pytest.mark.parametrize(
    ("fronts", "order", "remaining"),
    [([[1, 1, 0], [1, 1, 1], [0, 0, 1]], [2, 0, 1], [1]), ([[1, 0], [1, 1], [0, 1]], [1, 0, 2], [0, 2])],
)
def test_dominated_rows_are_dropped_in_order(fronts, order, remaining):
    assert published.undominated(np.array(fronts, dtype=float), np.array(order)).tolist() == remaining


def test_a_child_must_beat_its_parent_on_its_first_three_tasks():
    view = View(archive("1000000000", "110", "100", "0101111111", "11").tree)
    assert [published.passed_batch(view, AgentId(n)) for n in range(5)] == [True, True, False, False, False]


def test_only_children_that_passed_their_batch_are_evaluated_further():
    def agent():
        return published.pareto(View(log.tree), Random(0)).agent()

    log = archive("1000000000", "100")
    assert agent() is None
    log.graded(log.born(0), [True, True])
    assert agent() == 2
    log.graded(2, [False])
    assert agent() == 2, "it passed: 2 of 3 against 1"
    log.graded(2, [False] * 7)
    assert agent() is None
    log = archive("1000000000", "100", budget=Budget(agents=3, evaluations=100))
    number = expand(log, 0)
    assert agent() is None, "the last child may be one to evaluate"
    log.add(AgentBorn(number, AgentId(2), Born((SEED,), "self-edit", CommitId("c2"), "")))
    log.graded(2, [False] * 3)
    assert agent() == 1, "no other child can come"


@pytest.mark.parametrize(
    ("results", "begun", "tasks"),
    [("1111111110", TASKS[:2], {TASKS[9]}), ("0000", (), {*TASKS[:4]})],
)
def test_a_batch_holds_tasks_that_the_parent_tried_and_one_that_it_failed(results, begun, tasks):
    log = archive(results, "")
    log.tried(1, **dict.fromkeys(begun, True))
    drawn = {published.pareto(View(log.tree), Random(seed)).task(AgentId(1)) for seed in range(60)}
    assert drawn == tasks


def test_no_more_than_a_batch_is_started_before_it_is_known():
    log = archive("1000000000", "")
    for _ in range(3):
        action = named("pareto").next(log.tree, Random(log.tree.next_action))
        assert action.agent == 1
        log.start(action)
    assert isinstance(named("pareto").next(log.tree, Random(0)), Expand)
