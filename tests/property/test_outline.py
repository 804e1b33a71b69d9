"""An outline, read from indices, says what the tree says that was folded from all events."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.analysis.outline import Members, Outline
from dgm.archive.events import ActionStarted, AgentBorn, Event, ModelCalled, RunStarted, TaskGraded
from dgm.archive.fold import fold
from dgm.archive.store import EventStore
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Budget, Evaluate, Evaluation, TaskId, Verdict
from tests.property.test_tree import histories


@contextmanager
def stored(events: list[Event]) -> Iterator[EventStore]:
    with (
        tempfile.TemporaryDirectory() as folder,
        EventStore.open(Path(folder, "events.db"), write=True) as store,
    ):
        store.append_many(events)
        yield store


def with_further_attempts(events: list[Event], verdicts: list[Verdict]) -> list[Event]:
    """The history, and after it attempts 1, 2 … of the youngest agent on one task."""
    calls = set()
    kept = []
    for event in events:
        if isinstance(event, ModelCalled):
            if (event.action, event.number) in calls:
                continue
            calls.add((event.action, event.number))
        kept.append(event)
    last = max((event.id for event in kept if isinstance(event, ActionStarted)), default=0)
    agent = AgentId(sum(isinstance(event, AgentBorn) for event in kept) - 1)
    for attempt, verdict in enumerate(verdicts, 1):
        action = ActionId(last + attempt)
        kept += [
            ActionStarted(action, Evaluate(agent, TaskId("task-0"), attempt)),
            TaskGraded(action, Evaluation(agent, TaskId("task-0"), attempt, verdict, "")),
        ]
    return kept


def agree(outline: Members, tree: Tree) -> None:
    assert outline.seq == tree.seq
    for column in ("own_resolved", "own_unresolved", "clade_resolved", "clade_unresolved"):
        assert getattr(outline, column) == getattr(tree, column), column
    for agent in tree.agents:
        assert list(outline.children(agent.id)) == list(tree.children(agent.id))
        assert outline.first_parent(agent.id) == tree.first_parent(agent.id)
        assert outline.own(agent.id) == tree.own(agent.id)
        assert outline.clade(agent.id) == tree.clade(agent.id)


@pytest.mark.slow
@given(histories(), st.lists(st.sampled_from(Verdict), max_size=4))
@settings(max_examples=40, deadline=None)
def test_an_outline_is_the_tree(events: list[Event], verdicts: list[Verdict]) -> None:
    with stored(with_further_attempts(events, verdicts)) as store:
        outline, tree = Outline.read(store), Tree()
        fold(store, tree)
    agree(outline, tree)
    assert len(outline) == len(tree.agents)
    assert dict(outline.in_flight) == dict(tree.pending)
    assert list(outline.in_flight) == list(tree.pending)


@pytest.mark.slow
@given(histories(), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_a_tree_folded_in_two_goes_has_the_clades_of_one_that_grew(events: list[Event], cut: int) -> None:
    """Sums that are brought up to date at once are those that were kept up to date event by event."""
    again = RunStarted(Budget(evaluations=20), events[0].tasks, True, events[0].flips)
    whole = with_further_attempts([*events, again], [Verdict.RESOLVED])
    slow = Tree()
    with (
        tempfile.TemporaryDirectory() as folder,
        EventStore.open(Path(folder, "events.db"), write=True) as store,
    ):
        fast = Tree()
        for part in (whole[:cut], whole[cut:]):
            for recorded in store.append_many(part):
                slow.apply(recorded)
            fold(store, fast)
    assert fast.clade_resolved == slow.clade_resolved
    assert fast.clade_unresolved == slow.clade_unresolved
