"""The facts that a list of runs shows are those of the tree, after every event, and are read without folding."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from dgm.analysis.budgets import count_ended_expansions
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentStillborn,
    CallBooked,
    ChildProposed,
    Event,
    ModelCalled,
    ModelLearned,
    RunPaused,
    RunStarted,
    RunStopped,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.history import state
from dgm.archive.overview import read_overview
from dgm.archive.run import Run
from dgm.domain import (
    SEED,
    ActionId,
    Born,
    Budget,
    CommitId,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from tests.support.runs.packable import begin

pytestmark = pytest.mark.slow

TASK = TaskId("a")
TRIED = Evaluate(SEED, TASK)
GRADED = Evaluation(SEED, TASK, 0, Verdict.RESOLVED, "ok")
CHILD = Born((SEED,), "op", CommitId("c" * 40), "longer")
BUDGET = Budget(evaluations=9, usd=2.0, expansion_cost=2.0)


def act(number: int) -> ActionId:
    return ActionId(number)


EVENTS: list[Event] = [
    RunStarted(BUDGET, (TASK,), resumed=True),
    ActionStarted(act(1), TRIED),
    ModelCalled(act(1), 1, "m", "solve", "1" * 64, "2" * 64, Usage(1, 10, 5, 0.25)),
    TaskGraded(act(1), GRADED),
    ActionStarted(act(2), Expand((SEED,), "op")),
    CallBooked(act(2), 1, "m", "improve", Usage(1, 7, 3, 0.5)),
    CallBooked(act(2), 1, "m", "improve", Usage(0, -2, 0, -0.125)),
    ActionLost(act(2), "away"),
    RunPaused("away"),
    ActionStarted(act(2), Expand((SEED,), "op"), again=True),
    ChildProposed(act(2), CHILD),
    ActionStarted(act(3), Expand((SEED,), "op")),
    AgentStillborn(act(3), Stillborn((SEED,), "op", "check", "no")),
    ActionStarted(act(4), Expand((SEED,), "op")),
    ActionLost(act(4), "given up", final=True),
    ActionStarted(act(5), Evaluate(SEED, TASK, 1)),
    TaskGraded(act(5), Evaluation(SEED, TASK, 1, Verdict.INVALID, "away")),
    RunStopped("stopped"),
    RunStarted(replace(BUDGET, usd=4.0), (TASK,), resumed=True),
    ModelLearned("m", {}, "no temperature", Usage(1, 4, 1, 0.01)),
    VerdictWithdrawn(act(1), 5, TRIED, Verdict.RESOLVED, "refused"),
    AgentStillborn(act(2), Stillborn((SEED,), "op", "rejected", "no", decided="person")),
    RunStopped("budget spent"),
]


def test_the_overview_says_what_the_tree_says(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        for event in EVENTS:
            run.append(event)
            seen, tree = read_overview(run.folder), run.tree
            assert seen.state == state(run), event
            assert (seen.events, seen.budget, seen.agents) == (tree.seq, tree.budget, len(tree.agents))
            assert (seen.evaluations, seen.waiting) == (tree.evaluations, len(tree.waiting)), event
            assert (seen.tokens, seen.usd) == (tree.spend.tokens, pytest.approx(tree.spend.usd)), event
            assert seen.seconds == pytest.approx(tree.wall_seconds)
            assert seen.paused == bool(tree.paused), event
            assert seen.expansions == (count_ended_expansions(tree) if tree.budget.expansion_cost else 0), (
                event
            )


def test_a_writer_that_died_leaves_an_interrupted_run(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        assert read_overview(run.folder).writer is not None
    assert read_overview(tmp_path / "run").state == "interrupted"


def test_a_run_whose_creator_died_before_its_first_event_is_interrupted(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", {}) as run:
        made = read_overview(run.folder)
    assert (made.state, made.events, made.seconds) == ("running", 0, 0.0)
    assert read_overview(tmp_path / "run").state == "interrupted"


def test_a_lock_of_another_host_is_taken_for_alive(tmp_path: Path) -> None:
    begin(tmp_path / "run").close()
    holder = json.dumps({"pid": 7, "host": f"not-{socket.gethostname()}"})
    (tmp_path / "run" / "run.lock").write_text(holder)
    seen = read_overview(tmp_path / "run")
    assert (seen.state, seen.writer[:2]) == ("running", (7, f"not-{socket.gethostname()}"))
