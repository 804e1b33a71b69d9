"""``hgm`` as in the paper, ``hgm-published`` as in its program, and the controls behind the same gate."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.archive.events import ActionLost, ActionStarted
from dgm.domain import SEED, AgentId, Budget, Evaluate, Expand, TaskId
from dgm.policies.hgm import HgmPublished, best_belief, hgm
from dgm.policies.policy import View
from tests.support.runs.trees import TASKS, Log, named

pytestmark = pytest.mark.slow

MANY = tuple(TaskId(f"task-{n:02}") for n in range(60))


def archive(*rows, parents=(0,) * 9, budget=None, tasks=TASKS):
    log = Log(budget or Budget(evaluations=100), tasks)
    for agent, verdicts in enumerate(rows):
        log.born(*([parents[agent - 1]] if agent else []))
        log.graded(agent, [mark == "1" for mark in verdicts])
    return log


def chain_of_three():
    return archive("10", "01", "1", parents=(0, 1))


def follow(log):
    lists = HgmPublished()
    for event in log.events:
        lists.observe(event)
    return lists


def lists_of(policy):
    return list(zip(policy.resolved, policy.lengths, strict=True))


def next_of(name, log, seed=0):
    policy = named(name)
    for event in log.events:
        policy.observe(event)
    return policy.next(log.tree, Random(seed))


# The gate


@pytest.mark.parametrize("name", ["hgm", "random", "best-of-n"])
def test_the_archive_widens_with_the_0_6th_power_of_evaluations(name):
    log = archive("1111111111", "", "", "")
    assert 10**0.6 < 4 < 11**0.6
    assert isinstance(next_of(name, log), Evaluate)
    log.graded(1, [True])
    assert isinstance(next_of(name, log), Expand)
    number = log.start(Expand((SEED,), "self-edit"))
    assert isinstance(next_of(name, log), Evaluate), "a child being made counts"
    log.add(ActionLost(number, "given up", final=True))
    log.made((0,), "self-edit", dies="check")
    assert isinstance(next_of(name, log), Evaluate), "and so does a stillborn one"


# The paper's formulas


@pytest.mark.parametrize(
    ("budget", "solved", "flying", "tau"),
    [
        (Budget(evaluations=20), 4, [], 20 / 16),
        (Budget(evaluations=20), 19, [], 20.0),
        (
            Budget(evaluations=20, expansion_cost=5.0),
            3,
            [Evaluate(SEED, MANY[40]), Expand((SEED,), "self-edit")],
            20 / (20 - 4 - 5),
        ),
        (Budget(agents=5), 4, [], 1.0),
    ],
)
def test_draws_are_from_clades_and_own_results_sharpened_by_the_budget(budget, solved, flying, tau):
    log = archive("1" * solved, "0", "1", parents=(0, 1), budget=budget, tasks=MANY)
    log.graded(0, [False])
    solved_by, failed_by = np.array([solved, 0, 1]), np.array([1, 1, 0])
    if budget.evaluations:
        tau = budget.evaluations / max(budget.evaluations / tau - 3, 1)  # three more were graded here
    for action in flying:
        log.start(action)

    def best(a, b, seed):
        stream = np.random.RandomState(Random(seed).getrandbits(32))
        return int(np.argmax(stream.beta(tau * (1.0 + a), tau * (1.0 + b))))

    for seed in range(20):
        view = View(log.tree)
        clades = np.array([solved + 1, 1, 1]), np.array([2, 1, 0])
        assert hgm(view, Random(seed)).parent() == best(*clades, seed)
        assert hgm(view, Random(seed)).agent() == best(solved_by, failed_by, seed)


def test_parents_are_preferred_by_clade_and_not_by_own_tally():
    log = archive("101010", "0000", "1111111111", parents=(0, 1))
    drawn = Counter(next_of("hgm", log, seed).parents[0] for seed in range(300))
    # Clades: 1 has 10 of 14, 2 has 10 of 10. Own: 1 has 0 of 4, yet it is drawn through its child.
    assert drawn[2] > drawn[1] > 5


def test_best_of_n_has_children_of_the_seed_only_and_evaluates_as_hgm():
    log = chain_of_three()
    log.graded(1, [True] * 6)
    assert {next_of("best-of-n", log, seed) for seed in range(30)} == {Expand((SEED,), "self-edit")}
    for _ in range(3):
        log.born(0)
    for seed in range(30):
        assert next_of("best-of-n", log, seed) == next_of("hgm", log, seed)


# The program's double counting


def test_the_published_lists_grow_at_each_reading_of_a_tree_of_three():
    log = chain_of_three()
    lists = follow(log)
    readings = [lists_of(lists)]
    assert [tuple(int(x) for x in row) for row in zip(*lists.clades(), strict=True)] == [
        (3, 2),
        (2, 1),
        (1, 0),
    ]
    for _ in range(3):
        log.made((0,), "self-edit", dies="check")
        readings.append(lists_of(follow(log)))
    assert readings == [
        [(1, 2), (1, 2), (1, 1)],
        [(3, 5), (2, 3), (1, 1)],  # the first reading is right, but it stays in the lists
        [(6, 9), (3, 4), (1, 1)],  # so that the second counts 1 and 2 again
        [(10, 14), (4, 5), (1, 1)],
    ]
    number = log.tree.next_action - 1
    log.add(ActionStarted(number, Expand((SEED,), "self-edit"), again=True))
    log.graded(2, [False])
    assert lists_of(follow(log)) == [(10, 14), (4, 5), (1, 2)], "neither a repetition nor an evaluation reads"
    assert (log.tree.clade(SEED).resolved, log.tree.clade(SEED).n) == (3, 6), "the tree of hgm is free of it"


def test_a_full_list_is_left_alone_and_read_as_its_mean():
    lists = follow(chain_of_three())
    lists.resolved, lists.lengths = [4_000, 5_000, 2], [16_000, 9_999, 3]
    solved, failed = lists.clades()
    assert (solved[0], solved[0] + failed[0]) == pytest.approx((2_500 + 5_002, 10_000 + 10_002), rel=1e-12)
    for _ in range(2):
        lists._extend_lists()
        assert lists_of(lists) == [(4_000, 16_000), (5_002, 10_002), (2, 3)]


def test_a_withdrawn_verdict_leaves_the_lists():
    log = archive("10")
    log.withdrawn()
    assert lists_of(follow(log)) == [(1, 1)]


class Node:
    """The published program's rule, said with lists: whoever is asked for its clade extends its own."""

    def __init__(self):
        self.own, self.children = [], []

    def below(self):
        return [node for child in self.children for node in (child, *child.below())]

    def clade(self):
        for node in self.below():
            self.own.extend(node.own)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("born"), st.integers(0, 30)),
        st.tuples(st.just("graded"), st.integers(0, 30), st.booleans()),
        st.just(("read",)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_counts_are_those_of_lists_that_are_extended_in_place(steps):
    log, nodes = Log(tasks=MANY), [Node()]
    log.born()
    for step in steps:
        match step:
            case ("born", which):
                log.born(which % len(nodes))
                nodes.append(Node())
                nodes[which % (len(nodes) - 1)].children.append(nodes[-1])
            case ("graded", which, good):
                log.graded(which % len(nodes), [good])
                nodes[which % len(nodes)].own.append(int(good))
            case ("read",) if max(len(node.own) for node in nodes) < 1000:
                for node in [node for node in nodes if sum(node.own)]:
                    node.clade()
                log.made((0,), "self-edit", dies="check")
    assert lists_of(follow(log)) == [(sum(node.own), len(node.own)) for node in nodes]


def test_published_parents_have_solved_something():
    log = archive("1111110000", "0", "110", "")
    assert {next_of("hgm-published", log, seed).parents[0] for seed in range(300)} == {0, 2}
    assert {next_of("hgm", log, seed).parents[0] for seed in range(300)} == {0, 1, 2, 3}
    failed = archive("0" * len(TASKS))
    assert next_of("hgm-published", failed) is None, "no parent, and no task left"
    assert next_of("hgm", failed) == Expand((SEED,), "self-edit")


def test_published_draws_do_not_sharpen():
    def share(name, left):
        log = archive("111000", "111100", budget=Budget(evaluations=12 + left, agents=2))
        return np.mean([next_of(name, log, seed).agent == 1 for seed in range(400)])

    assert share("hgm-published", 1) == share("hgm-published", 1000)
    assert share("hgm", 1) > share("hgm", 1000) + 0.15


# The recommendation


@pytest.mark.parametrize(
    ("rows", "best"), [(("1" * 16 + "0" * 4, "1"), 0), (("00000", ""), 0), (("10", "11", "11"), 1)]
)
def test_the_best_belief_is_neither_the_luckiest_nor_an_unknown_agent(rows, best):
    assert best_belief(archive(*rows, tasks=MANY).tree) == AgentId(best)
