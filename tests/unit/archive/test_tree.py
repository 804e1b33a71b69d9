from collections.abc import Sequence

import numpy
import pytest

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    Event,
    ModelCalled,
    Recorded,
    RunStarted,
    RunStopped,
    TaskGraded,
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
    Stillborn,
    Tally,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import ArchiveCorrupt

A, B = TaskId("a"), TaskId("b")


def tree_of(*events: Event) -> Tree:
    tree = Tree()
    for seq, event in enumerate(events, 1):
        tree.apply(Recorded(seq, float(seq), event))
    return tree


def born(agent: int, *parents: int) -> AgentBorn:
    return AgentBorn(
        ActionId(0),
        AgentId(agent),
        Born(tuple(AgentId(p) for p in parents), "op", CommitId(f"{agent:040x}"), "why"),
    )


def evaluate(
    action: int, agent: int, task: TaskId = A, attempt: int = 0, again: bool = False
) -> ActionStarted:
    return ActionStarted(ActionId(action), Evaluate(AgentId(agent), task, attempt), again)


def graded(
    action: int, agent: int, verdict: Verdict = Verdict.RESOLVED, task: TaskId = A, attempt: int = 0
) -> TaskGraded:
    return TaskGraded(ActionId(action), Evaluation(AgentId(agent), task, attempt, verdict, "because"))


FAMILY: Sequence[Event] = (born(0), born(1, 0), born(2, 0), born(3, 1, 2), born(4, 3))


def test_verdict_counts_for_the_agent_and_every_ancestor_once() -> None:
    tree = tree_of(*FAMILY, graded(1, 4))
    assert [tree.clade(AgentId(n)) for n in range(5)] == [Tally(1, 0)] * 5
    assert [tree.own(AgentId(n)).n for n in range(5)] == [0, 0, 0, 0, 1]


def test_ancestors_of_a_crossover_come_once_and_nearest_first() -> None:
    assert list(tree_of(*FAMILY).ancestors(AgentId(4))) == [3, 2, 1, 0]


def test_children_of_both_parents_and_depth_along_the_first() -> None:
    tree = tree_of(*FAMILY)
    assert tree.children(AgentId(1)) == [3]
    assert tree.children(AgentId(2)) == [3]
    assert [tree.depth(AgentId(n)) for n in range(5)] == [0, 1, 1, 2, 3]


def test_the_line_of_an_agent_goes_by_its_first_parent() -> None:
    tree = tree_of(*FAMILY)
    assert [tree.first_parent(AgentId(agent)) for agent in range(5)] == [None, 0, 0, 1, 3]


def test_an_agent_was_made_for_what_its_expansion_aimed_at() -> None:
    order = Expand((SEED,), "module", aim="context")
    tree = tree_of(
        born(0), ActionStarted(ActionId(1), order), ActionStarted(ActionId(2), Expand((SEED,), "op"))
    )
    for agent in (1, 2):
        event = AgentBorn(ActionId(agent), AgentId(agent), Born((SEED,), "op", CommitId(f"{agent:040x}"), ""))
        tree.apply(Recorded(10 + agent, 1.0, event))
    assert [tree.aim(AgentId(agent)) for agent in range(3)] == ["", "context", ""]


def test_started_evaluation_is_pending_and_its_task_tried() -> None:
    tree = tree_of(born(0), evaluate(1, 0))
    assert tree.pending == {1: Evaluate(SEED, A)}
    assert tree.tried(SEED) == {A}
    assert tree.verdict(SEED, A) is None
    assert list(tree.pending_evaluations) == [1]


def test_graded_evaluation_is_no_longer_pending() -> None:
    tree = tree_of(born(0), evaluate(1, 0), graded(1, 0, Verdict.UNRESOLVED))
    assert not tree.pending
    assert tree.verdict(SEED, A) is Verdict.UNRESOLVED
    assert (list(tree.pending_evaluations), list(tree.tried_count)) == ([0], [1])


def test_invalid_verdict_counts_nowhere_and_is_to_be_redone() -> None:
    tree = tree_of(born(0), evaluate(1, 0), graded(1, 0, Verdict.INVALID))
    assert (tree.evaluations, tree.invalid, tree.clade(SEED)) == (0, 1, Tally())
    assert tree.to_redo() == {1: Evaluate(SEED, A)}


def test_redone_action_is_pending_again_under_its_id() -> None:
    tree = tree_of(born(0), evaluate(1, 0), graded(1, 0, Verdict.INVALID), evaluate(1, 0, again=True))
    assert not tree.to_redo()
    assert list(tree.pending) == [1]
    assert (tree.tries(ActionId(1)), tree.next_action, list(tree.tried_count)) == (2, 2, [1])


def test_lost_action_is_to_be_redone_until_it_is_given_up() -> None:
    lost = ActionLost(ActionId(1), "killed")
    tree = tree_of(born(0), evaluate(1, 0), lost)
    assert list(tree.to_redo()) == [1]
    given_up = tree_of(born(0), evaluate(1, 0), lost, ActionLost(ActionId(1), "too often", final=True))
    assert not given_up.to_redo()
    assert given_up.tried(SEED) == {A}
    assert given_up.own(SEED) == Tally()


def test_later_attempts_count_but_leave_the_first_verdict() -> None:
    tree = tree_of(born(0), graded(1, 0, Verdict.UNRESOLVED), evaluate(2, 0, A, 1), graded(2, 0, attempt=1))
    assert tree.own(SEED) == Tally(1, 1)
    assert tree.verdict(SEED, A) is Verdict.UNRESOLVED


def test_child_number_counts_earlier_expansions_and_survives_a_redo() -> None:
    def expand(action: int, again: bool = False) -> ActionStarted:
        return ActionStarted(ActionId(action), Expand((SEED,), "op"), again)

    tree = tree_of(born(0), expand(1), expand(2), ActionLost(ActionId(1), "killed"), expand(1, again=True))
    assert (tree.child_number(ActionId(1)), tree.child_number(ActionId(2))) == (0, 1)
    assert list(tree.expansions) == [2]


def test_stillborn_children_are_counted_by_stage() -> None:
    dead = Stillborn((SEED,), "op", "check", "does not start")
    tree = tree_of(born(0), AgentStillborn(ActionId(1), dead), AgentStillborn(ActionId(2), dead))
    assert tree.stillborn == {"check": 2}
    assert list(tree.barren) == [2]


@pytest.mark.parametrize(
    ("stage", "by"), [("rejected", "a person"), ("expired", "time-out"), ("duplicate", "a person")]
)
def test_what_was_decided_of_a_child_does_not_make_its_parent_barren(stage: str, by: str) -> None:
    dead = Stillborn((SEED,), "op", stage, "no", decided=by)
    failed = Stillborn((SEED,), "op", "check", "does not start")
    tree = tree_of(born(0), AgentStillborn(ActionId(1), failed), AgentStillborn(ActionId(2), dead))
    assert tree.stillborn == {"check": 1, stage: 1}
    assert list(tree.barren) == [1]


def test_spend_is_the_sum_of_model_calls_and_of_nothing_else() -> None:
    def call(action: int, number: int) -> ModelCalled:
        usage = Usage(1, 100, 10, 0.25)
        return ModelCalled(ActionId(action), number, "m", "solve", usage)

    tree = tree_of(born(0), call(1, 1), call(3, 1), call(3, 2), graded(3, 0))
    assert tree.spend == Usage(3, 300, 30, 0.75)
    assert tree.spend_of(ActionId(3)) == Usage(2, 200, 20, 0.5)
    assert tree.spend_of(ActionId(2)) == tree.spend_of(ActionId(99)) == Usage()


def test_latest_start_sets_budget_and_tasks() -> None:
    first, second = Budget(evaluations=5), Budget(evaluations=9, usd=1.5)
    tree = tree_of(RunStarted(first, (A,)), RunStopped("budget"), RunStarted(second, (A, B), resumed=True))
    assert (tree.budget, tree.tasks, tree.stop_reason) == (second, (A, B), "")


def test_time_between_sessions_is_not_wall_time() -> None:
    tree = Tree()
    start = RunStarted(Budget(), ())
    for at, event in ((100.0, start), (130.0, born(0)), (1000.0, start), (1005.0, RunStopped("budget"))):
        tree.apply(Recorded(1, at, event))
    assert tree.wall_seconds == 35.0


def test_agents_out_of_order_are_refused() -> None:
    with pytest.raises(ArchiveCorrupt, match="agent 2"):
        tree_of(born(0), born(2, 0))
    with pytest.raises(ArchiveCorrupt, match="agent 1"):
        tree_of(born(0), born(1, 1))


def test_columns_become_numpy_arrays_without_blocking_growth() -> None:
    tree = tree_of(born(0), graded(1, 0))
    column = numpy.array(tree.clade_resolved)
    tree.apply(Recorded(3, 3.0, born(1, 0)))
    assert column.tolist() == [1]
    assert column.dtype == numpy.int64
