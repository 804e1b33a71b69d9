"""A run that a test writes while the browser reads it."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Self

from dgm.archive.events import AgentBorn
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Born, Budget, CommitId, Evaluate, Expand, TaskId, Verdict
from tests.support.runs.builder import RunBuilder, create_run, make_config

OPENING_S = 300.0
TASKS = tuple(TaskId(f"suite/task-{number}") for number in range(8))


class Growing(RunBuilder):
    """Appends steps to a run; ``run`` is the caller's to close."""

    def __init__(self, folder: Path, *, seed: bool = True) -> None:
        settings = Settings.model_validate({"model": "offline"})
        config = make_config(settings, id="0" * 16, name=folder.name, created=1_700_000_000.0, versions={})
        super().__init__(create_run(folder, config, Budget(evaluations=100), TASKS))
        if seed:
            self.born()

    @classmethod
    def on(cls, run: Run) -> Self:
        """Appends to a run that is there."""
        steps = cls.__new__(cls)
        RunBuilder.__init__(steps, run)
        return steps

    def born(self, *parents: int, rationale: str = "a change", operator: str = "self-edit") -> AgentId:
        """An agent, without source."""
        action = ActionId(0)
        agent = AgentId(len(self.run.tree.agents))
        whose = tuple(map(AgentId, parents))
        if whose:
            action = self.start(*parents)
        self.run.append(
            AgentBorn(
                action,
                agent,
                Born(whose, operator if whose else "seed", CommitId(f"{agent:040x}"), rationale),
            )
        )
        return agent

    def start(self, *parents: int) -> ActionId:
        """An expansion that is under way."""
        return self.begin(Expand(tuple(map(AgentId, parents)), "self-edit"))

    def graded(self, agent: int, task: int, *, good: bool) -> None:
        """A verdict."""
        action = self.begin(Evaluate(AgentId(agent), TASKS[task]))
        verdict = Verdict.RESOLVED if good else Verdict.UNRESOLVED
        self.record_verdict(action, agent, TASKS[task], verdict, "as the test says")


@contextlib.contextmanager
def growth(folder: Path, per_second: int) -> Iterator[None]:
    """Meanwhile a thread appends so many events to a run: births, verdicts, and the starts of both."""
    ready, stop = threading.Event(), threading.Event()

    def write() -> None:
        rng = Random(1)
        with Run.open(folder, write=True) as run:
            ready.set()
            steps = Growing.on(run)
            begun, first = time.monotonic(), run.tree.seq
            while not stop.wait(0.05):
                while run.tree.seq - first < (time.monotonic() - begun) * per_second:
                    agent, task = rng.randrange(len(run.tree.agents)), rng.randrange(len(TASKS))
                    steps.born(agent)
                    if TASKS[task] not in run.tree.tried(AgentId(agent)):
                        steps.graded(agent, task, good=rng.random() < 0.5)

    writer = threading.Thread(target=write)
    writer.start()
    ready.wait(OPENING_S)
    try:
        yield
    finally:
        stop.set()
        writer.join()
