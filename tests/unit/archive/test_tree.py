"""The tree as a fold of events made by hand; its laws are in tests/property/test_tree.py."""

import networkx
import pytest
from msgspec import structs

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ModelCalled,
    PromotionDecided,
    PromotionStarted,
    Recorded,
    RunChanged,
    RunStarted,
    RunStopped,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.tree import Tree
from dgm.domain import (
    SEED,
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Evaluate,
    Evaluation,
    Expand,
    Finding,
    FindingKind,
    Stillborn,
    Tally,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import ArchiveCorrupt
from dgm.policies.limits import fertile, may_expand
from tests.support.runs.trees import TASKS, Log

A, B = TaskId("a"), TaskId("b")
YES, NO = Verdict.RESOLVED, Verdict.UNRESOLVED


def fold(*events):
    tree = Tree()
    for seq, event in enumerate(events, 1):
        tree.apply(Recorded(seq, float(seq), event))
    return tree


def born(agent, *parents, action=0):
    return AgentBorn(
        ActionId(action),
        AgentId(agent),
        Born(tuple(map(AgentId, parents)), "op", CommitId(f"{agent:040x}"), "why"),
    )


def started(action, what=Evaluate(SEED, A), again=False):  # noqa: B008  (frozen)
    return ActionStarted(ActionId(action), what, again)


def graded(action, agent=0, verdict=Verdict.RESOLVED, attempt=0):
    return TaskGraded(ActionId(action), Evaluation(AgentId(agent), A, attempt, verdict, "because"))


def lost(action, final=False):
    return ActionLost(ActionId(action), "killed", final=final)


def stillborn(action, stage="check", decided=""):
    return AgentStillborn(ActionId(action), Stillborn((SEED,), "op", stage, "no", decided=decided))


FAMILY = (born(0), born(1, 0), born(2, 0), born(3, 1, 2), born(4, 3))


def test_descent() -> None:
    tree = fold(*FAMILY)
    assert [list(tree.ancestors(AgentId(agent))) for agent in range(5)] == [
        [],
        [0],
        [0],
        [2, 1, 0],
        [3, 2, 1, 0],
    ]
    assert [list(tree.children(AgentId(agent))) for agent in range(5)] == [[1, 2], [3], [3], [4], []]
    assert [tree.depth(AgentId(agent)) for agent in range(5)] == tree.depths.tolist() == [0, 1, 1, 2, 3]
    assert [tree.first_parent(AgentId(agent)) for agent in range(5)] == [None, 0, 0, 1, 3]
    assert [tree.common_ancestor(AgentId(4), AgentId(other)) for other in range(5)] == [0, 1, 2, 3, 4]
    assert tree.common_ancestor(AgentId(1), AgentId(2)) == 0
    assert list(tree.graph.edges(data="order")) == [(0, 1, 0), (0, 2, 0), (1, 3, 0), (2, 3, 1), (3, 4, 0)]
    tree.apply(Recorded(9, 9.0, born(5, 2)))
    assert networkx.ancestors(tree.graph, 5) == {2, 0}


def test_a_crossing_of_two_roots_counts_for_the_clades_of_both() -> None:
    tree = fold(born(0), born(1), born(2, 0), born(3, 2, 1), graded(1, 3))
    assert (tree.roots, tree.depths.tolist()) == ([0, 1], [0, 0, 1, 2])
    assert [tree.clade(AgentId(agent)) for agent in range(4)] == [Tally(1, 0)] * 4
    assert [tree.clade_members(AgentId(agent)) for agent in range(4)] == [{0, 2, 3}, {1, 3}, {2, 3}, {3}]
    assert tree.common_ancestor(AgentId(2), AgentId(1)) is None
    assert tree.common_ancestor(AgentId(3), AgentId(1)) == 1


def test_a_verdict_counts_for_the_agent_and_every_ancestor_once() -> None:
    tree = fold(*FAMILY, graded(1, 4))
    assert [tree.clade(AgentId(agent)) for agent in range(5)] == [Tally(1, 0)] * 5
    assert [tree.own(AgentId(agent)).n for agent in range(5)] == [0, 0, 0, 0, 1]


def test_many_verdicts_at_once_count_like_one_by_one() -> None:
    events = [*FAMILY, *(graded(action, action % 5, list(Verdict)[action % 2]) for action in range(1, 30))]
    tree = fold(*events[:20])
    with tree.many():
        for seq, event in enumerate(events[20:], 21):
            tree.apply(Recorded(seq, float(seq), event))
    assert [tree.clade(AgentId(n)) for n in range(5)] == [fold(*events).clade(AgentId(n)) for n in range(5)]


def test_columns_can_be_kept_as_copies_while_the_tree_grows() -> None:
    tree = fold(born(0), graded(1))
    column = tree.clade_resolved.copy()
    for agent in range(1, 40):
        tree.apply(Recorded(3, 3.0, born(agent, agent - 1)))
    assert column.tolist() == [1]
    assert tree.clade_resolved.tolist() == [1] + [0] * 39


def test_an_agent_was_made_for_what_its_expansion_aimed_at() -> None:
    expansions = started(1, Expand((SEED,), "module", aim="context")), started(2, Expand((SEED,), "op"))
    tree = fold(born(0), *expansions, born(1, 0, action=1), born(2, 0, action=2))
    assert [tree.aim(AgentId(agent)) for agent in range(3)] == ["", "context", ""]


@pytest.mark.parametrize(
    ("events", "pending", "redo", "verdict", "tries", "tally"),
    [
        ([], 1, 0, None, 1, Tally()),
        ([graded(1, verdict=Verdict.UNRESOLVED)], 0, 0, Verdict.UNRESOLVED, 1, Tally(0, 1)),
        ([graded(1, verdict=Verdict.INVALID)], 0, 1, None, 1, Tally()),
        ([graded(1, verdict=Verdict.INVALID), started(1, again=True)], 1, 0, None, 2, Tally()),
        ([lost(1)], 0, 1, None, 1, Tally()),
        ([lost(1), lost(1, final=True)], 0, 0, None, 1, Tally()),
        (
            [graded(1), started(2, Evaluate(SEED, A, 1)), graded(2, attempt=1)],
            0,
            0,
            Verdict.RESOLVED,
            1,
            Tally(2, 0),
        ),
        (
            [graded(1), started(2, Evaluate(SEED, A, 1)), graded(2, verdict=Verdict.UNRESOLVED, attempt=1)],
            *(0, 0, Verdict.RESOLVED, 1, Tally(1, 1)),
        ),
    ],
)
def test_an_evaluation_until_it_is_graded_repeated_or_given_up(
    events, pending, redo, verdict, tries, tally
) -> None:
    tree = fold(born(0), started(1), *events)
    assert list(tree.pending) == [1] * pending
    assert list(tree.to_redo()) == [1] * redo
    assert (tree.pending_evaluations.tolist(), tree.tried_count.tolist()) == ([pending], [1])
    assert (tree.tried(SEED), tree.verdict(SEED, A)) == ({A}, verdict)
    assert (tree.tries(ActionId(1)), tree.own(SEED), tree.clade(SEED), tree.evaluations) == (
        tries,
        tally,
        tally,
        tally.n,
    )
    assert tree.invalid == sum(
        isinstance(e, TaskGraded) and e.outcome.verdict is Verdict.INVALID for e in events
    )


def test_an_expansion_is_counted_once_however_often_it_is_repeated() -> None:
    what = Expand((SEED,), "op")
    tree = fold(born(0), started(1, what), started(2, what), lost(1), started(1, what, again=True))
    assert (tree.child_number(ActionId(1)), tree.child_number(ActionId(2))) == (0, 1)
    assert (tree.expansions.tolist(), tree.expansions_begun, tree.expansions_in_flight) == ([2], 2, 2)


def test_stillborn_children_count_by_stage_and_against_their_parent_unless_a_person_decided() -> None:
    tree = fold(
        born(0),
        stillborn(1),
        stillborn(2),
        stillborn(3, "rejected", "a person"),
        stillborn(4, "expired", "time-out"),
    )
    assert tree.stillborn == {"check": 2, "rejected": 1, "expired": 1}
    assert tree.barren.tolist() == [2]
    assert [death.action for death in tree.deaths] == [1, 2]


@pytest.mark.parametrize(
    ("events", "barren", "deaths"),
    [
        ([], 2, 2),
        ([born(1, 0, action=3)], 0, 0),
        ([RunChanged({"workers": 2, "budget": {}})], 2, 2),
        ([RunChanged({"limits": {}})], 0, 2),
        ([RunStopped("budget"), RunStarted(Budget(), ())], 2, 0),
        ([RunStopped("cannot go on"), RunStarted(Budget(), ())], 0, 0),
    ],
)
def test_what_resets_the_count_of_stillborn_children(events, barren, deaths) -> None:
    tree = fold(born(0), stillborn(1), stillborn(2), *events)
    assert (tree.barren[0], len(tree.deaths)) == (barren, deaths)


def test_spend_is_the_sum_of_model_calls_and_of_nothing_else() -> None:
    calls = [
        ModelCalled(ActionId(action), 1, "m", "solve", usage=Usage(1, 100, 10, 0.25)) for action in (1, 3, 3)
    ]
    tree = fold(born(0), *calls, graded(3))
    assert tree.spend == Usage(3, 300, 30, 0.75)
    assert [tree.spend_of(ActionId(action)) for action in (3, 2, 99)] == [
        Usage(2, 200, 20, 0.5),
        Usage(),
        Usage(),
    ]


def test_latest_start_sets_budget_and_tasks() -> None:
    second = Budget(evaluations=9, usd=1.5)
    tree = fold(
        RunStarted(Budget(evaluations=5), (A,)),
        RunStopped("budget"),
        RunStarted(second, (A, B), resumed=True),
    )
    assert (tree.budget, tree.tasks, tree.stop_reason) == (second, (A, B), "")


def test_time_between_sessions_is_not_wall_time() -> None:
    tree = Tree()
    start = RunStarted(Budget(), ())
    for at, event in ((100.0, start), (130.0, born(0)), (1000.0, start), (1005.0, RunStopped("budget"))):
        tree.apply(Recorded(1, at, event))
    assert tree.wall_seconds == 35.0


@pytest.mark.parametrize(("agent", "parent"), [(2, 0), (1, 1)])
def test_agents_out_of_order_are_refused(agent, parent) -> None:
    with pytest.raises(ArchiveCorrupt, match=f"agent {agent}"):
        fold(born(0), born(agent, parent))


# Flips


@pytest.mark.parametrize(
    ("parents", "verdicts", "balance"),
    [
        # The seed resolved tasks 0 to 3 of six, and has not tried the rest.
        ([(0,)], {1: "ynnyy"}, [0, -1]),
        ([(0,)], {1: "ynnyyy"}, [0, 0]),
        ([(0,)], {1: "yyyynnyn"}, [0, 0]),
        ([(0,)], {1: "yyyynnnn", 0: "y"}, [0, -1]),
        ([(0,), (0,), (1, 2)], {1: "nn", 2: "yn", 3: "ny"}, [0, -2, -1, 0]),
    ],
)
@pytest.mark.parametrize("counts", [True, False])
def test_lost_and_gained_tasks_are_set_off_against_each_other(parents, verdicts, balance, counts) -> None:
    log = Log()
    log.add(RunStarted(Budget(evaluations=100), TASKS, flips=counts))
    log.born()
    log.graded(0, [True] * 4 + [False] * 2)
    for those in parents:
        log.born(*those)
    for agent, word in verdicts.items():
        log.graded(agent, [letter == "y" for letter in word])
    assert log.tree.flip_balance.tolist() == (balance if counts else [0] * len(balance))
    assert fertile(log.tree).tolist() == [not counts or lead >= 0 for lead in balance]
    assert may_expand(log.tree)


BLAMED = Finding(FindingKind.SOCKET, "left listening")
IN_EDIT = Finding(FindingKind.SPECIAL_CASE, "names a task", "a.py:3")


def flawed(action, agent, findings, verdict=Verdict.RESOLVED):
    return TaskGraded(
        ActionId(action), Evaluation(AgentId(agent), A, 0, verdict, "because", findings=findings)
    )


def test_findings_count_for_the_agent_and_are_summed_by_clade() -> None:
    child = Born((AgentId(0),), "op", CommitId("1" * 40), "why", findings=(IN_EDIT, BLAMED))
    events = [
        born(0),
        AgentBorn(ActionId(1), AgentId(1), child),
        born(2, 1),
        started(2, Evaluate(AgentId(2), A)),
        flawed(2, 2, (BLAMED, BLAMED)),
        AgentStillborn(ActionId(3), Stillborn((AgentId(2),), "op", "conduct", "no", findings=(IN_EDIT,))),
    ]
    tree = fold(*events)
    assert tree.own_findings.tolist() == [
        1,
        1,
        3,
    ]  # the seed made the first child; the second's parent died with one
    assert tree.clade_findings.tolist() == [5, 4, 3]
    assert tree.flagged == {1}
    later = Tree()
    with later.many():
        for seq, event in enumerate(events, 1):
            later.apply(Recorded(seq, float(seq), event))
    assert later.clade_findings.tolist() == [5, 4, 3]


def test_predictions_are_kept_or_broken_by_first_attempts_and_summed_by_clade() -> None:
    log = Log()
    log.born()
    log.made((0,), "self-edit", promises=TASKS[:3])
    log.made((1,), "self-edit", promises=TASKS[:1])
    log.tried(0, **{TASKS[1]: True})
    assert (log.tree.promises(AgentId(1)), log.tree.clade_promises(SEED)) == (Tally(), Tally())
    log.tried(1, **{TASKS[0]: True, TASKS[1]: False, TASKS[5]: True})
    log.tried(2, **{TASKS[0]: True})
    assert log.tree.promises(AgentId(1)) == Tally(1, 1)
    assert [log.tree.clade_promises(AgentId(n)) for n in range(3)] == [Tally(2, 1), Tally(2, 1), Tally(1, 0)]
    log.withdrawn()
    assert [log.tree.promises(AgentId(2)), log.tree.clade_promises(SEED)] == [Tally(), Tally(1, 1)]


def test_the_gain_of_a_clade_is_the_mean_over_expansions_within_it() -> None:
    log = Log()
    for parents in ((), (0,), (0,), (1, 2), (3,)):
        log.made(parents, "self-edit") if parents else log.born()
    log.tried(0, **{TASKS[0]: False, TASKS[1]: False, TASKS[2]: True})
    log.tried(1, **{TASKS[0]: True, TASKS[2]: True, TASKS[3]: False})
    log.tried(2, **{TASKS[3]: False, TASKS[4]: True})
    # 3 is compared with 1, the better parent, on the tasks 0 and 3; 2 and 4 have no task in common with their parents.
    log.tried(3, **{TASKS[0]: False, TASKS[3]: False, TASKS[5]: True})
    log.tried(4, **{TASKS[1]: True})
    first, second = 1 / (2 + 2), -1 / (2 + 2)
    tree = log.tree
    assert tree.clade_gain(AgentId(0)) == (pytest.approx((first + second) / 2), 2)
    assert tree.clade_gain(AgentId(1)) == (pytest.approx(second), 1)
    assert [tree.clade_gain(AgentId(agent)) for agent in (2, 3, 4)] == [(0.0, 0)] * 3
    tree.apply(Recorded(98, 98.0, stillborn(98)))
    tree.apply(Recorded(99, 99.0, stillborn(99, "rejected", decided="a person")))
    assert tree.clade_gain(AgentId(0)) == (pytest.approx((first + second) / 3), 3)
    assert tree.clade_gain(AgentId(1)) == (pytest.approx(second), 1)


@pytest.mark.parametrize("solved", [0, 1, 3, 6])
def test_a_child_that_solves_what_its_parent_solved_has_no_gain(solved: int) -> None:
    log = Log()
    log.born()
    for agent in range(4):
        if agent:
            log.made((agent - 1,), "self-edit")
        log.tried(agent, **{task: number < solved for number, task in enumerate(TASKS[:6])})
    assert log.tree.clade_gain(SEED) == (0.0, 3)


def test_a_verdict_that_does_not_count_has_no_findings() -> None:
    events = [born(0), started(1), flawed(1, 0, (BLAMED,), Verdict.INVALID)]
    assert fold(*events).own_findings.tolist() == [0]
    events = [born(0), started(1), flawed(1, 0, (BLAMED,))]
    withdrawn = VerdictWithdrawn(ActionId(1), 3, Evaluate(SEED, A), Verdict.RESOLVED, "refused")
    assert fold(*events).own_findings.tolist() == [1]
    assert fold(*events, withdrawn).clade_findings.tolist() == [0]


@pytest.mark.parametrize(
    "odd",
    [
        PromotionStarted(1, AgentId(0), (AgentId(1),), 0.0, 1),
        PromotionStarted(1, AgentId(0), (AgentId(1),), 7.0, 1),
        PromotionStarted(1, AgentId(0), (AgentId(1),), 0.05, 0),
        PromotionStarted(1, AgentId(0), (AgentId(1), AgentId(2)), 0.05, 1),
        PromotionStarted(1, AgentId(0), (AgentId(0),), 0.05, 1),
        PromotionStarted(1, AgentId(0), (AgentId(3),), 0.05, 1),
        PromotionStarted(1, AgentId(1), (AgentId(2),), 0.05, 1),
        PromotionStarted(2, AgentId(0), (AgentId(1),), 0.05, 1),
    ],
)
def test_a_round_that_no_search_begins_is_damage(odd) -> None:
    fold(born(0), born(1, 0), born(2, 0), PromotionStarted(1, AgentId(0), (AgentId(1),), 0.05, 1))
    with pytest.raises(ArchiveCorrupt, match="does not fit"):
        fold(born(0), born(1, 0), born(2, 0), odd)


def test_all_rounds_have_the_rules_of_the_first() -> None:
    begun = PromotionStarted(1, AgentId(0), (AgentId(1),), 0.05, 1)
    events = [born(0), born(1, 0), begun, PromotionDecided(1)]
    fold(*events, structs.replace(begun, number=2))
    with pytest.raises(ArchiveCorrupt, match="does not fit"):
        fold(*events, structs.replace(begun, number=2, alpha=0.5))
