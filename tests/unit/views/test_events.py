"""Events with a sentence for those that a user wants to see."""

from pathlib import Path

import pytest

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentStillborn,
    CallRefused,
    Event,
    RunPaused,
    TaskGraded,
)
from dgm.domain import SEED, ActionId, Cost, Evaluate, Evaluation, Stillborn, TaskId, Verdict
from dgm.views.events import Level, describe, read_events
from tests.support.runs.packable import begin, evaluate

pytestmark = pytest.mark.starts_processes

GRADED = Evaluation(
    SEED, TaskId("lru/evict"), 0, Verdict.UNRESOLVED, "2 of 5 tests failed", 0.6, Cost(seconds=14.25)
)


@pytest.mark.parametrize(
    ("event", "level", "message"),
    [
        (
            TaskGraded(ActionId(1), GRADED),
            Level.BAD,
            "agent 0 unresolved lru/evict in 14.2 s: 2 of 5 tests failed",
        ),
        (
            AgentStillborn(ActionId(1), Stillborn((SEED,), "op", "check", "no")),
            Level.INFO,
            "a child of 0 was stillborn (check): no",
        ),
        (ActionLost(ActionId(7), "killed"), Level.WARNING, "action 7 was lost: killed"),
        (RunPaused("529"), Level.WARNING, "paused until the provider answers again: 529"),
        (
            CallRefused(ActionId(3), "solve", 400, "bad", "no"),
            Level.WARNING,
            "a request of action 3 was refused (bad): no",
        ),
        (ActionStarted(ActionId(3), Evaluate(SEED, TaskId("t"))), Level.DETAIL, ""),
    ],
)
def test_an_event_is_described(event: Event, level: Level, message: str) -> None:
    assert describe(event) == (level, message)


def test_events_are_read_and_followed_until_nobody_writes(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        evaluate(run, "it")
    every = list(read_events(run := type(run).open(tmp_path / "run")))
    assert [event.seq for event in every] == list(range(1, run.tree.seq + 1))
    assert list(read_events(run, tail=2)) == every[-2:]
    assert list(read_events(run, follow=True)) == every
    outcome = every[-1].body["outcome"]
    assert (outcome["task"], outcome["attempt"]) == ("a", 1)
    run.close()
