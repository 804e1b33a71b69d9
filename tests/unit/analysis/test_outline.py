"""A long log is outlined from its indices: what is read, what is refused, what older logs lack."""

import contextlib
import sqlite3
import sys
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from dgm.analysis.lookups import find_matching, find_verdicts, read_births, tally_tasks
from dgm.analysis.outline import _BIRTHS, _GRADED, _RESOLVED, Outline, has_indices
from dgm.archive.clades import sum_clades
from dgm.archive.events import ActionStarted, AgentBorn, Event, RunStarted, TaskGraded
from dgm.archive.store import EventStore
from dgm.domain import ActionId, AgentId, Budget, Evaluate, Evaluation, Tally, TaskId, Verdict
from dgm.errors import ArchiveCorrupt, UserError

pytestmark = pytest.mark.slow

AGENTS, EACH = 200, 20


def born(agent: int, *parents: int) -> Event:
    said = f"rationale of {agent} " * 40
    return AgentBorn(ActionId(0), AgentId(agent), tuple(map(AgentId, parents)), f"{agent:040x}", "op", said)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose verdicts are 800 bytes each."""
    path = tmp_path_factory.mktemp("long") / "events.db"
    events: list[Event] = [RunStarted(Budget(), ()), born(0)]
    events += [born(agent, agent // 2) for agent in range(1, AGENTS)]
    for number in range(AGENTS * EACH):
        agent, task = AgentId(number % AGENTS), TaskId(f"task-{number // AGENTS}")
        verdict = Verdict.RESOLVED if number % 3 else Verdict.UNRESOLVED
        events.append(TaskGraded(ActionId(number + 1), Evaluation(agent, task, 0, verdict, "r" * 700)))
    with EventStore.open(path, write=True) as store:
        store.append_many(events)
    return path


def bytes_read(path: Path, ask: Callable[[EventStore], object]) -> int:
    def said() -> int:
        return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])

    with EventStore.open(path, write=False) as store:
        before = said()
        ask(store)
        return said() - before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
def test_an_outline_and_what_is_asked_of_tasks_read_indices_and_not_the_table(long: Path) -> None:
    whole = long.stat().st_size
    assert whole > 3_000_000
    for query in (_BIRTHS, _GRADED, _RESOLVED):
        assert bytes_read(long, lambda store: store.query(query)) < whole / 15, query  # noqa: B023
    assert bytes_read(long, lambda store: tally_tasks(store, sys.maxsize)) < whole / 5
    assert bytes_read(long, lambda store: find_verdicts(store, TaskId("none"), sys.maxsize)) < whole / 5
    assert bytes_read(long, lambda store: read_births(store, [AgentId(100)])) < whole / 20
    assert bytes_read(long, lambda store: store.query("SELECT sum(length(body)) FROM events")) > whole / 2


def test_tallies_of_an_outline_are_those_of_the_log(long: Path) -> None:
    with EventStore.open(long, write=False) as store:
        outline = Outline.read(store)
        tasks = tally_tasks(store, store.newest())
        some = find_verdicts(store, TaskId("task-3"), store.newest())
    assert len(outline) == AGENTS
    assert outline.clade(AgentId(0)) == sum((outline.own(AgentId(n)) for n in range(AGENTS)), Tally())
    assert outline.clade(AgentId(0)) == sum(tasks.values(), Tally())
    assert tasks[TaskId("task-3")].n == len(some) == AGENTS
    assert tasks[TaskId("task-3")].resolved == sum(one.verdict is Verdict.RESOLVED for one in some)


def test_a_log_that_an_older_dgm_made_is_outlined_from_its_next_event(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with EventStore.open(path, write=True) as store:
        store.append_many([born(0), born(1, 0)])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("DROP INDEX births; DROP INDEX resolved;")
    with EventStore.open(path, write=False) as store:
        assert not has_indices(store)
        with pytest.raises(UserError, match="no such index"):
            Outline.read(store)
        assert read_births(store, [AgentId(1)])[AgentId(1)].parents == (0,)
        assert find_matching(store, "1", 99) == [1]
    with EventStore.open(path, write=True) as store:
        assert not has_indices(store)
        store.append(born(2, 1))
    with EventStore.open(path, write=False) as store:
        assert has_indices(store)
        assert len(Outline.read(store)) == 3


def test_a_log_without_an_agent_has_an_empty_outline(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db", write=True) as store:
        assert len(Outline.read(store)) == 0
        store.append(RunStarted(Budget(), ()))
        assert Outline.read(store).seq == 1


@pytest.mark.parametrize(
    "events",
    [
        [born(1)],
        [born(0), born(1, 1)],
        [born(0), TaskGraded(ActionId(1), Evaluation(AgentId(4), TaskId("t"), 0, Verdict.RESOLVED, ""))],
    ],
)
def test_what_cannot_be_a_run_is_refused(tmp_path: Path, events: list[Event]) -> None:
    with EventStore.open(tmp_path / "events.db", write=True) as store:
        store.append_many(events)
        with pytest.raises(ArchiveCorrupt, match="restore the run from a copy"):
            Outline.read(store)


def test_what_is_appended_while_an_outline_is_read_is_in_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with (
        EventStore.open(path, write=True) as writer,
        EventStore.open(path, write=False) as reader,
        reader.at_one_moment(),
    ):
        assert reader.newest() == 0
        writer.append(born(0))
        assert reader.newest() == 0
    with EventStore.open(path, write=False) as reader:
        assert reader.newest() == 1


def test_actions_that_ended_are_not_under_way(tmp_path: Path) -> None:
    def order(number: int) -> Evaluate:
        return Evaluate(AgentId(0), TaskId(f"t{number}"))

    with EventStore.open(tmp_path / "events.db", write=True) as store:
        store.append_many([born(0), *(ActionStarted(ActionId(n), order(n)) for n in (1, 2))])
        store.append(TaskGraded(ActionId(1), Evaluation(AgentId(0), TaskId("t1"), 0, Verdict.INVALID, "")))
        assert Outline.read(store).in_flight == {2: order(2)}


def test_clades_with_too_many_crossovers_are_said_to_be_uncounted() -> None:
    first = [-1, 0, *range(1, 39)]
    further = {agent: (agent - 2,) for agent in range(3, 40)}
    counts = [array("q", [1] * 40)]
    assert sum_clades(first, further, counts, most_steps=100) is None
    sums = sum_clades(first, further, counts)
    assert sums is not None
    assert list(sums[0]) == list(range(40, 0, -1))
    assert list(counts[0]) == [1] * 40
