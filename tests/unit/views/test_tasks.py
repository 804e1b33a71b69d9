"""Attempts at a task, with what the agent and its model said."""

from pathlib import Path

import pytest

from dgm.archive.events import ActionStarted, TaskGraded, TasksChanged
from dgm.archive.run import Run
from dgm.domain import SEED, Cost, Evaluate, Evaluation, TaskId, Verdict
from dgm.errors import UserError
from dgm.views.events import Level, describe
from dgm.views.run import CurriculumView, find_highest
from dgm.views.tasks import AgentTaskView, TaskView, list_tasks
from tests.support.runs.packable import begin, child, evaluate

pytestmark = pytest.mark.starts_processes

HOSTILE = "hello\x1b[31m there"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The seed with two attempts at ``a``; agent 1 without an attempt."""
    where = tmp_path_factory.mktemp("tasks") / "run"
    with begin(where) as run:
        evaluate(run, HOSTILE)
        action = run.tree.next_action
        run.append(ActionStarted(action, Evaluate(SEED, TaskId("a"), 1)))
        traces = {"log": run.traces.put(b"once more")}
        graded = Evaluation(SEED, TaskId("a"), 1, Verdict.UNRESOLVED, "fails", 0.5, Cost(traces=traces))
        run.append(TaskGraded(action, graded))
        child(run)
    return where


def test_all_attempts_of_an_agent_are_there_in_full(folder: Path) -> None:
    with Run.open(folder) as run:
        view = AgentTaskView.load(run, run.tree.agents[0], "a")
    assert [(attempt.attempt, attempt.verdict) for attempt in view.attempts] == [
        (1, "resolved"),
        (2, "unresolved"),
    ]
    first, second = view.attempts
    assert first.documents == {"log": f"log of a\n{HOSTILE}\n"}
    assert (first.cost.calls, first.transcript.problem) == (3, None)
    (thread,) = first.transcript.threads
    turns = [turn for segment in thread.segments for turn in segment.turns]
    assert [turn.role for turn in turns] == ["user", "assistant"] * 3
    assert (turns[0].text, turns[0].model, turns[1].model) == (f"mend a: {HOSTILE}", None, "offline")
    assert (second.documents, second.transcript.threads) == ({"log": "once more"}, ())


def test_a_curriculum_shows_the_state_of_each_task(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        assert CurriculumView.load(run.tree) is None
        run.append(TasksChanged((TaskId("a"),)))
        evaluate(run, "hello")
        run.append(TasksChanged((TaskId("b"),), solved=(TaskId("a"),)))
        rows = [(row.task, row.state, row.tally.n) for row in list_tasks(run)]
        view = CurriculumView.load(run.tree)
        assert rows == [("a", "retired", 1), ("b", "active", 0)]
        assert view == CurriculumView(active=("b",), pool=(), retired=("a",), changes=2)
        assert find_highest(run.tree, SEED) is None
    text = (
        "tasks drawn: b; retired a (all recent agents resolve it); put back c (no recent agent resolves it)"
    )
    event = TasksChanged((TaskId("b"),), (TaskId("a"),), (TaskId("c"),))
    assert describe(event) == (Level.INFO, text)


def test_a_task_has_the_attempts_of_all_agents(folder: Path) -> None:
    with Run.open(folder) as run:
        view = TaskView.load(run, TaskId("a"))
        rows = list_tasks(run)
    assert [(attempt.agent, attempt.attempt) for attempt in view.attempts] == [(0, 1), (0, 2)]
    assert (view.tally.resolved, view.tally.n) == (1, 2)
    assert [(row.task, row.tally.n) for row in rows] == [("a", 1), ("b", 0)]


@pytest.mark.parametrize(
    ("agent", "task", "problem"),
    [
        (0, "aa", "did you mean 'a'?"),
        (0, "zzz", "it has verdicts on a"),
        (1, "a", "agents that tried it: 0"),
        (1, "b", "agents that tried it: none"),
    ],
)
def test_an_attempt_that_is_not_there_is_refused(folder: Path, agent: int, task: str, problem: str) -> None:
    with Run.open(folder) as run, pytest.raises(UserError, match=problem.replace("?", r"\?")):
        AgentTaskView.load(run, run.tree.agents[agent], task)
