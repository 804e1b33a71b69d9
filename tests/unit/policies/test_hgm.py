"""``hgm`` as in the paper, ``hgm-published`` as in its program, and ``best-of-n``: where they part."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.analysis.budgets import has_room_for
from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, AgentStillborn, TaskGraded
from dgm.domain import (
    SEED,
    AgentId,
    Born,
    Budget,
    CommitId,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    TaskId,
    Verdict,
)
from dgm.policies.hgm import tau
from dgm.policies.hgm_published import FULL_LIST, CladeOfLists, Lists
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import TASKS, Log, named

pytestmark = pytest.mark.slow

MANY = tuple(TaskId(f"task-{n:02}") for n in range(60))


class Watched(Log):
    """A log whose lists of outcomes are folded event by event, clades read at each expansion as the policy does."""

    def __init__(self, *args, **kwargs):
        self.lists = Lists()
        super().__init__(*args, **kwargs)

    def add(self, event):
        super().add(event)
        self.lists.observe(self.events[-1])

    def read(self):
        self.lists.read()
        return self.held()

    def held(self):
        return list(zip(self.lists.resolved, self.lists.lengths, strict=True))

    def clades(self):
        return [(good, good + bad) for good, bad in zip(*self.lists.clades(), strict=True)]


def chain_of_three():
    """0 → 1 → 2 with outcomes [1, 0], [0, 1] and [1]."""
    log = Watched(Budget(evaluations=100))
    log.born()
    log.born(0)
    log.born(1)
    log.graded(0, [True, False])
    log.graded(1, [False, True])
    log.graded(2, [True])
    return log


def follow(name, log, **policy):
    """The policy after it has seen the whole log."""
    made = named(name, **policy)
    for event in log.events:
        made.observe(event)
    return made


def held_by_rule(log):
    """The lists of the parent rule after it has seen the whole log."""
    kit = PolicyContext()
    rule = CladeOfLists(kit)
    for event in log.events:
        for observer in (*kit.observers, rule):
            observer.observe(event)
    lists = kit.shared(Lists)
    return list(zip(lists.resolved, lists.lengths, strict=True))


def expansions(log, count, parent=SEED):
    """Adds started expansions that give nothing."""
    for _ in range(count):
        number = log.tree.next_action
        log.add(ActionStarted(number, Expand((parent,), "self-edit")))
        log.add(AgentStillborn(number, Stillborn((parent,), "self-edit", "check", "")))


# The double counting


def test_the_published_lists_grow_at_each_reading_of_a_tree_of_three():
    log = chain_of_three()
    assert log.held() == [(1, 2), (1, 2), (1, 1)]
    assert log.clades() == [(3, 5), (2, 3), (1, 1)], "the first reading is right"
    assert log.read() == [(3, 5), (2, 3), (1, 1)], "but it stays in the lists"
    assert log.clades() == [(6, 9), (3, 4), (1, 1)], "so that the second counts 1 and 2 again"
    assert log.read() == [(6, 9), (3, 4), (1, 1)]
    assert log.read() == [(10, 14), (4, 5), (1, 1)]
    log.graded(2, [False])
    assert log.held() == [(10, 14), (4, 5), (1, 2)]
    assert log.clades() == [(15, 21), (5, 7), (1, 2)]


def test_the_tree_that_hgm_reads_is_free_of_it():
    log = chain_of_three()
    made = follow("hgm", log)
    for seed in range(20):
        made.next(log.tree, Random(seed))
    expansions(log, 5)
    assert [(log.tree.clade(a).resolved, log.tree.clade(a).n) for a in (0, 1, 2)] == [(3, 5), (2, 3), (1, 1)]
    assert not made.keeps_state


def test_each_new_expansion_is_one_reading():
    log = chain_of_three()
    assert held_by_rule(log) == [(1, 2), (1, 2), (1, 1)]
    expansions(log, 2)
    assert held_by_rule(log) == [(6, 9), (3, 4), (1, 1)]


def test_an_expansion_that_is_performed_again_is_not_another_reading():
    log = chain_of_three()
    number = log.tree.next_action
    action = Expand((SEED,), "self-edit")
    log.add(ActionStarted(number, action))
    log.add(ActionLost(number, "the power went"))
    log.add(ActionStarted(number, action, again=True))
    assert held_by_rule(log) == [(3, 5), (2, 3), (1, 1)]


def test_an_evaluation_reads_no_clade():
    log = chain_of_three()
    log.graded(0, [True])
    assert held_by_rule(log) == [(2, 3), (1, 2), (1, 1)]


def test_asking_leaves_no_trace():
    log = chain_of_three()
    made = follow("hgm-published", log)
    first = [made.next(log.tree, Random(seed)) for seed in range(20)]
    assert first == [made.next(log.tree, Random(seed)) for seed in range(20)]
    assert first == [follow("hgm-published", log).next(log.tree, Random(seed)) for seed in range(20)]


def test_an_agent_without_a_success_is_not_read():
    log = Watched()
    log.born()
    log.born(0)
    log.graded(0, [False])
    log.graded(1, [True, True])
    assert log.read() == [(0, 1), (2, 2)]


def test_a_full_list_is_left_alone_and_read_as_its_mean():
    log = chain_of_three()
    log.lists.resolved, log.lists.lengths = [4_000, 5_000, 2], [16_000, 9_999, 3]
    assert FULL_LIST == 10_000
    assert log.clades()[0] == pytest.approx((2_500 + 5_002, 10_000 + 10_002), rel=1e-12)
    assert log.read() == [(4_000, 16_000), (5_002, 10_002), (2, 3)]
    assert log.read() == [(4_000, 16_000), (5_002, 10_002), (2, 3)], "nothing grows any more"


class Node:
    """The published program's rule, said with lists: whoever is asked for its clade extends its own."""

    def __init__(self):
        self.own, self.children = [], []

    def below(self):
        return [node for child in self.children for node in (child, *child.below())]

    def clade(self):
        for node in self.below():
            self.own.extend(node.own)
        return self.own


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("born"), st.integers(0, 30)),
        st.tuples(st.just("graded"), st.integers(0, 30), st.booleans()),
        st.just(("read",)),
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_counts_are_those_of_lists_that_are_extended_in_place(steps):
    log, nodes = Watched(tasks=MANY), [Node()]
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
                log.read()
    assert log.held() == [(sum(node.own), len(node.own)) for node in nodes]


# Where else they part


def test_published_starves_where_the_seed_solves_nothing_and_hgm_does_not():
    log = Log(Budget(evaluations=100))
    log.born()
    while isinstance(action := follow("hgm-published", log).next(log.tree, Random(0)), Evaluate):
        log.graded(action.agent, [False])
    assert action is None, "no parent, and no task left"
    assert log.tree.own(SEED).n == len(TASKS)
    assert follow("hgm", log).next(log.tree, Random(0)) == Expand((SEED,), "self-edit")


@pytest.mark.slow
def test_published_parents_have_solved_something():
    log = Log(Budget(evaluations=100))
    for parent in ((), (0,), (0,), (0,)):
        log.born(*parent)
    log.graded(0, [True] * 6 + [False] * 4)
    log.graded(1, [False])
    log.graded(2, [True, True, False])

    def drawn(name):
        made = follow(name, log)
        return {made.next(log.tree, Random(seed)).parents[0] for seed in range(300)}

    assert drawn("hgm-published") == {0, 2}
    assert drawn("hgm") == {0, 1, 2, 3}


@pytest.mark.slow
def test_published_draws_do_not_sharpen():
    def shares(name):
        return [
            np.mean([chosen(name, left, seed) == 1 for seed in range(400)])  # the better of two agents
            for left in (1, 1000)
        ]

    def chosen(name, left, seed):
        log = Log(Budget(evaluations=12 + left, agents=2))
        log.born()
        log.born(0)
        log.graded(0, [True] * 3 + [False] * 3)
        log.graded(1, [True] * 4 + [False] * 2)
        return follow(name, log).next(log.tree, Random(seed)).agent

    late, early = shares("hgm-published")
    assert late == early
    late, early = shares("hgm")
    assert late > early + 0.15


# The paper's formulas


@pytest.mark.parametrize(("begun", "expected"), [(0, 1.0), (4, 20 / 16), (19, 20.0)])
def test_the_scheduler_is_budget_over_what_is_left(begun, expected):
    log = Log(Budget(evaluations=20), MANY)
    log.born()
    log.graded(0, [True] * begun)
    assert tau(log.tree) == pytest.approx(expected, rel=1e-12)


def test_the_scheduler_counts_what_is_under_way_and_what_expansions_take():
    log = Log(Budget(evaluations=20, expansion_cost=5.0), MANY)
    log.born()
    log.graded(0, [True] * 3)
    log.add(ActionStarted(log.tree.next_action, Evaluate(SEED, MANY[3])))
    log.add(ActionStarted(log.tree.next_action, Expand((SEED,), "self-edit")))
    assert tau(log.tree) == pytest.approx(20 / (20 - 4 - 5), rel=1e-12)


def test_there_is_no_scheduler_without_a_budget():
    log = Log(Budget(agents=5))
    log.born()
    assert tau(log.tree) == 1.0


def test_hgm_draws_parents_from_the_clades_and_agents_to_evaluate_from_their_own():
    def best(resolved, unresolved, scale):
        stream = np.random.RandomState(Random(3).getrandbits(32))
        return int(
            np.argmax(stream.beta(scale * (1.0 + np.array(resolved)), scale * (1.0 + np.array(unresolved))))
        )

    log = chain_of_three()
    log.graded(0, [False, False, False])
    assert len(log.tree.agents) <= log.tree.evaluations**0.6
    parent = best([3, 2, 1], [5, 1, 0], 100 / 92)
    assert named("hgm").next(log.tree, Random(3)) == Expand((AgentId(parent),), "self-edit")
    log.born(2)
    assert len(log.tree.agents) > log.tree.evaluations**0.6
    assert named("hgm").next(log.tree, Random(3)).agent == best([1, 1, 1, 0], [4, 1, 0, 0], 100 / 92)


# Best of n


def test_best_of_n_has_children_of_the_seed_only():
    log = chain_of_three()
    log.graded(1, [True] * 6)
    decided = [named("best-of-n").next(log.tree, Random(seed)) for seed in range(30)]
    assert set(decided) == {Expand((SEED,), "self-edit")}


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(0, 2**32), st.lists(st.lists(st.booleans(), max_size=10), min_size=1, max_size=6))
def test_best_of_n_evaluates_as_hgm_does(seed, results):
    log = Log(Budget(evaluations=100))
    log.born()
    for _ in results[1:]:
        log.born(0)
    for agent, verdicts in enumerate(results):
        log.graded(agent, verdicts)
    ours, theirs = (named(name).next(log.tree, Random(seed)) for name in ("best-of-n", "hgm"))
    assert type(ours) is type(theirs)
    if isinstance(ours, Evaluate):
        assert ours == theirs


# A search of each, to its end


def perform(log, number, action, world):
    """Carries an action out, with an outcome that ``world`` draws."""
    log.add(ActionStarted(number, action))
    if isinstance(action, Expand):
        agent = AgentId(len(log.tree.agents))
        log.add(AgentBorn(number, agent, Born(action.parents, action.operator, CommitId(f"c{agent}"), "")))
        return
    verdict = Verdict.RESOLVED if world.random() < 0.4 else Verdict.UNRESOLVED
    log.add(TaskGraded(number, Evaluation(action.agent, action.task, 0, verdict, "")))


@pytest.mark.parametrize(
    "name", ["hgm", "hgm-published", "best-of-n", "dgm", "no-archive", "no-self-improvement"]
)
def test_a_search_spends_its_budget_and_decides_alike_after_a_restart(name):
    log, world, made, seen = Log(Budget(evaluations=60, expansion_cost=1.0)), Random(7), named(name), 0
    log.born()
    for _ in range(60):
        for event in log.events[seen:]:
            made.observe(event)
        seen, number = len(log.events), log.tree.next_action
        action = made.next(log.tree, Random(f"5/{number}"))
        assert action == follow(name, log).next(log.tree, Random(f"5/{number}"))
        assert has_room_for(log.tree, action)
        if isinstance(action, Evaluate):
            assert action.task not in log.tree.tried(action.agent)
        perform(log, number, action, world)
    assert log.tree.evaluations + log.tree.expansions_begun == 60
    assert len(log.tree.agents) > 2
