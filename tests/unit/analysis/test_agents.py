"""The best agent of a run, the agents that words mean, and abandoned tasks."""

from dataclasses import replace

import pytest

from dgm.analysis.agents import best_of, count_abandoned, find_matching, next_match
from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, Event, Recorded, TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import SEED, ActionId, AgentId, Born, CommitId, Evaluate, Evaluation, Tally, TaskId, Verdict
from dgm.stats import lower_bound
from dgm.views.agents import TreeView
from tests.support.runs.trees import Log


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Agent 1 has the highest rate by two lucky verdicts, agent 2 the most reason to be believed in."""
    log = Log()
    log.born()
    log.graded(0, [True] * 5 + [False] * 5)
    log.graded(log.born(0), [True] * 2)
    log.graded(log.born(0), [True] * 9 + [False])
    settings = Settings().model_dump(mode="json")
    with Run.create(
        tmp_path_factory.mktemp("best") / "run", {"settings": settings, "sandbox": "bubblewrap"}
    ) as made:
        for recorded in log.events:
            event = recorded.event
            if isinstance(event, AgentBorn):
                event = AgentBorn(event.action, event.id, replace(event.outcome, commit=CommitId("c" * 40)))
            made.append(event)
        yield made


@pytest.mark.parametrize("policy", ["hgm", "lineage", "greedy"])
def test_best_is_what_the_policy_recommends_with_the_bound_of_its_own_verdicts(run, policy):
    run.config["settings"]["policy"]["name"] = policy
    assert best_of(run) == 2, "never the highest rate so far"
    row = TreeView.load(run).agents[2]
    assert (row.best, row.own.resolved, row.own.n) == (True, 9, 10)
    assert row.lower_bound == pytest.approx(lower_bound(Tally(9, 1)))


TASKS = tuple(TaskId(f"t{n}") for n in range(6))


def started(log, task):
    action = log.tree.next_action
    log.add(ActionStarted(action, Evaluate(SEED, task)))
    return action


def test_only_tasks_without_a_verdict_and_without_further_tries_are_abandoned():
    log = Log(tasks=TASKS)
    log.born()
    log.graded(SEED, [True, False])
    started(log, TASKS[2])
    log.add(ActionLost(started(log, TASKS[3]), "failed"))
    assert count_abandoned(log.tree, SEED) == 0
    for task in TASKS[4:]:
        log.add(ActionLost(started(log, task), "given up: failed", final=True))
    assert count_abandoned(log.tree, SEED) == 2


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
