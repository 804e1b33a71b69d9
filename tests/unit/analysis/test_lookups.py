"""What is asked of a long log without its tree."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dgm.analysis.lookups import (
    find_matching,
    find_verdicts,
    next_match,
    read_births,
    read_last_events,
    tally_tasks,
)
from dgm.archive.events import AgentBorn, Event, TaskGraded
from dgm.archive.store import EventStore
from dgm.domain import ActionId, AgentId, Evaluation, Tally, TaskId, Verdict


def born(agent: int, operator: str, rationale: str) -> Event:
    parents = (AgentId(0),) if agent else ()
    return AgentBorn(ActionId(0), AgentId(agent), parents, f"{agent:x}" * 40, operator, rationale)


def graded(agent: int, task: str, verdict: Verdict, attempt: int = 0) -> Event:
    return TaskGraded(
        ActionId(10 * agent + attempt), Evaluation(AgentId(agent), TaskId(task), attempt, verdict, "")
    )


EVENTS = [
    born(0, "seed", "the seed"),
    born(1, "self-edit", "100% sure: a Longer limit"),
    born(2, "module", "under_score and back\\slash"),
    born(3, "module", "längere Grenzen"),
    graded(2, "lru/evict", Verdict.RESOLVED),
    graded(1, "lru/evict", Verdict.INVALID),
    graded(1, "lru/evict", Verdict.UNRESOLVED),
    graded(1, "lru/evict", Verdict.RESOLVED, attempt=1),
    graded(0, "router/match", Verdict.UNRESOLVED),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    with EventStore.open(tmp_path / "events.db", write=True) as store:
        store.append_many(EVENTS)
        yield store


@pytest.mark.parametrize(
    ("words", "agents"),
    [
        ("2", [2]),
        ("222", [2]),
        ("longer", [1]),
        ("100%", [1]),
        ("%", [1]),
        ("r_s", [2]),
        ("back\\s", [2]),
        ("module", [2, 3]),
        ("längere", [3]),
        ("LRU/", [1, 2]),
        ("no such thing", []),
        ("  ", []),
    ],
)
def test_words_point_to_numbers_commits_operators_rationales_and_then_tasks(
    store: EventStore, words: str, agents: list[int]
) -> None:
    assert find_matching(store, words, until=store.newest()) == agents


def test_what_came_later_is_not_found(store: EventStore) -> None:
    assert find_matching(store, "module", until=3) == [2]
    assert [one.agent for one in find_verdicts(store, TaskId("lru/evict"), until=5)] == [2]
    assert tally_tasks(store, until=7) == {"lru/evict": Tally(1, 1)}


def test_the_next_of_those_found_comes_round_again() -> None:
    found = [AgentId(1), AgentId(4), AgentId(7)]
    assert [next_match(found, AgentId(n)) for n in (0, 1, 5, 7)] == [1, 4, 7, 1]
    assert [next_match(found, AgentId(n), backwards=True) for n in (0, 1, 5, 7)] == [7, 7, 4, 4]
    assert next_match([], AgentId(3)) is None


def test_verdicts_on_a_task_come_by_agent_and_attempt_without_invalid_ones(store: EventStore) -> None:
    found = find_verdicts(store, TaskId("lru/evict"), until=store.newest())
    assert [(one.agent, one.attempt, one.verdict.value) for one in found] == [
        (1, 0, "unresolved"),
        (1, 1, "resolved"),
        (2, 0, "resolved"),
    ]
    assert [one.seq for one in found] == [7, 8, 5]
    assert [one.action for one in found] == [10, 11, 20]


def test_tasks_are_tallied_over_all_attempts(store: EventStore) -> None:
    assert tally_tasks(store, until=store.newest()) == {
        "lru/evict": Tally(2, 1),
        "router/match": Tally(0, 1),
    }


def test_births_are_looked_up_and_those_that_never_were_are_left_out(store: EventStore) -> None:
    found = read_births(store, [AgentId(3), AgentId(1), AgentId(99)])
    assert set(found) == {1, 3}
    assert found[AgentId(3)].rationale == "längere Grenzen"


def test_the_last_events_are_those_at_the_end_of_the_log(store: EventStore) -> None:
    assert [item.seq for item in read_last_events(store, 4)] == [6, 7, 8, 9]
    assert len(read_last_events(store, 100)) == 9
