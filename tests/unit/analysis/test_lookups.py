"""The search among the agents of a run."""

import pytest

from dgm.analysis.agents import find_matching, next_match
from dgm.archive.events import AgentBorn, Event, Recorded, TaskGraded
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Born, CommitId, Evaluation, TaskId, Verdict


def born(agent: int, operator: str, rationale: str) -> Event:
    parents = (AgentId(0),) if agent else ()
    return AgentBorn(
        ActionId(0), AgentId(agent), Born(parents, operator, CommitId(f"{agent:x}" * 40), rationale)
    )


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
    words: str, agents: list[int]
) -> None:
    tree = Tree()
    for seq, event in enumerate(EVENTS, 1):
        tree.apply(Recorded(seq, float(seq), event))
    assert find_matching(tree, words) == agents


def test_the_next_of_those_found_comes_round_again() -> None:
    found = [AgentId(1), AgentId(4), AgentId(7)]
    assert [next_match(found, AgentId(n)) for n in (0, 1, 5, 7)] == [1, 4, 7, 1]
    assert [next_match(found, AgentId(n), backwards=True) for n in (0, 1, 5, 7)] == [7, 7, 4, 4]
    assert next_match([], AgentId(3)) is None
