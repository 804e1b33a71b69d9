"""Agents: their tree, one in full, lineages and differences."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dgm.archive.tree import WaitingChild
from dgm.domain import SEED, ActionId, AgentId, Born, CommitId, Evaluate, Expand, TaskId
from dgm.policies.limits import BARREN
from dgm.views.agents import AgentState, AgentView, DiffView, LineageView, TreeView, agent_states
from dgm.views.values import FEW_ATTEMPTS, DeltaView
from tests.support.runs.paid import PaidRun, small
from tests.support.runs.trees import Log

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def paid(tmp_path: Path) -> Iterator[PaidRun]:
    made = small(tmp_path / "paid")
    yield made
    made.run.close()


def test_the_tree_has_every_agent_with_its_tallies(paid: PaidRun) -> None:
    view = TreeView.load(paid.run)
    assert (view.run, view.state, view.best) == ("paid", "running", 0)
    seed, first, crossed = view.agents
    assert (seed.parents, seed.children, seed.depth, seed.best) == ((), (1, 2), 0, True)
    assert (first.own.resolved, first.own.unresolved, first.abandoned) == (0, 1, 1)
    assert (seed.clade.n, seed.own.n, crossed.parents) == (2, 1, (1, 0))
    assert seed.lower_bound == pytest.approx(0.1)
    assert first.delta is not None
    assert (first.delta.tasks, first.delta.difference, first.delta.few) == (1, -1.0, True)
    assert (seed.delta, crossed.delta) == (None, None)


def test_an_agent_has_its_spend_by_purpose_and_action(paid: PaidRun) -> None:
    paid.refused(ActionId(4))
    view = AgentView.load(paid.run, paid.run.tree.agents[1])
    spend = view.spend
    assert [usage.calls for usage in (spend.making, spend.evaluating, spend.stillborn, spend.unfinished)] == [
        2,
        4,
        0,
        0,
    ]
    assert (spend.total.calls, spend.clade.calls, spend.making.usd) == (6, 13, pytest.approx(0.02))
    assert [(line.action, line.purpose, line.by.calls) for line in spend.actions] == [
        (2, "making", 2),
        (4, "evaluating", 3),
        (5, "evaluating", 1),
    ]
    (evaluation,) = view.evaluations
    assert (evaluation.task, evaluation.attempt, evaluation.verdict, evaluation.cost.calls) == (
        "ledger-a",
        1,
        "unresolved",
        3,
    )
    assert evaluation.cost.by[0].model == "openai/cheap"
    assert [(refusal.code, refusal.times) for refusal in view.refusals] == [("model_not_found", 1)]


@pytest.mark.starts_processes
def test_a_lineage_goes_from_the_seed_along_first_parents(paid: PaidRun) -> None:
    view = LineageView.load(paid.run, AgentId(2))
    assert [step.agent for step in view.lineage] == [0, 1, 2]
    assert [bool(step.patch) for step in view.lineage] == [False, True, True]


@pytest.mark.starts_processes
def test_a_difference_is_to_the_parent_by_default(paid: PaidRun) -> None:
    agents = paid.run.tree.agents
    view = DiffView.load(paid.run, agents[2])
    assert (view.base, view.agent, view.model_dump()["from"]) == (1, 2, 1)
    assert view.patch.startswith("diff --git a/agent.toml b/agent.toml")
    assert DiffView.load(paid.run, agents[2], agents[0]).base == 0
    assert DiffView.load(paid.run, agents[0]).patch == ""


def test_states_name_the_most_remarkable_activity(paid: PaidRun) -> None:
    assert agent_states(paid.run) == {2: AgentState.EXPANDING}
    tree = paid.run.tree
    tree._pending[ActionId(20)] = Evaluate(AgentId(2), TaskId("a"))
    tree._pending[ActionId(21)] = Evaluate(AgentId(1), TaskId("a"))
    tree.barren[0] = BARREN
    assert agent_states(paid.run) == {
        0: AgentState.BARREN,
        1: AgentState.EVALUATING,
        2: AgentState.EXPANDING,
    }
    child = Born((AgentId(2),), "op", CommitId("c" * 40), "why")
    tree._waiting[ActionId(9)] = WaitingChild(child, 0.0)
    assert agent_states(paid.run)[AgentId(2)] is AgentState.WAITING


def test_a_dead_process_expands_nothing(tmp_path: Path) -> None:
    made = small(tmp_path / "run")
    made.start(Expand((SEED,), "op"))
    made.run.close()
    assert agent_states(made.run) == {}


def test_a_delta_compares_tasks_that_both_attempted() -> None:
    log = Log()
    log.born()
    log.born(0)
    log.tried(0, a=True, b=False, c=False, d=True, e=False)
    log.tried(1, a=True, b=True, c=True, d=False, e=True, f=True)
    delta = DeltaView.between(log.tree, AgentId(0), AgentId(1))
    assert delta is not None
    assert (delta.tasks, delta.difference, delta.few) == (5, pytest.approx(0.4), FEW_ATTEMPTS > 5)
    assert delta.interval[0] < 0 < delta.interval[1]
    log.born(1)
    assert DeltaView.between(log.tree, AgentId(1), AgentId(2)) is None
