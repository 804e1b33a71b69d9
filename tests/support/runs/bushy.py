"""A long search made by hand, in the shape that policies leave: a few clades thrive, and many end after a child."""

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from dgm.archive.events import ActionStarted, AgentBorn, Event, RunStarted, RunStopped, TaskGraded
from dgm.archive.run import Run
from dgm.config import PolicySettings, Settings
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Evaluate,
    Evaluation,
    Expand,
    TaskId,
    Verdict,
)
from tests.support.runs.builder import make_config

OPERATORS = ("self-edit", "module", "diagnose", "crossover")
TASKS = tuple(TaskId(f"repository-{n % 20}/issue-{n:04}") for n in range(120))
BATCH = 20_000


def bushy_run(folder: Path, agents: int, *, per_agent: int = 5, tasks: int = len(TASKS)) -> Run:
    """A finished run.

    Args:
        folder: of the run; must not exist.
        agents: their number; every twentieth is a crossover, and agent 1 is a second root.
        per_agent: evaluations of an agent.
        tasks: number of search tasks, at most 120.
    """
    settings = Settings(
        model="openai/x", operator="+".join(OPERATORS), seed=5, policy=PolicySettings(name="hgm")
    )
    run = Run.create(folder, make_config(settings, sandbox="docker", id="c" * 16))
    batch: list[Event] = []
    for event in history(agents, per_agent, TASKS[:tasks]):
        batch.append(event)
        if len(batch) >= BATCH:
            run.append_many(batch)
            batch.clear()
    run.append_many(batch)
    return run


def history(agents: int, per_agent: int, tasks: tuple[TaskId, ...]) -> Iterator[Event]:
    """Yield the events of a search in their order, whatever becomes of them."""
    rng = Random(0)
    quality = [0.3]
    action = 0
    yield RunStarted(Budget(evaluations=agents * per_agent), tasks)
    for number in range(agents):
        parents: tuple[AgentId, ...] = ()
        operator = "seed"
        if number > 1:
            # The better ones of a few, drawn from all and from the newest, as a policy does it.
            few = [rng.randrange(number) for _ in range(3)] + [rng.randrange(max(0, number - 50), number)]
            few.sort(key=lambda agent: -quality[agent])
            operator = rng.choice(OPERATORS) if number % 20 == 0 else rng.choice(OPERATORS[:3])
            parents = (AgentId(few[0]),)
            if operator == "crossover" and few[1] != few[0]:
                parents += (AgentId(few[1]),)
            action += 1
            yield ActionStarted(ActionId(action), Expand(parents, operator))
        if number:
            base = quality[parents[0]] if parents else 0.25
            quality.append(min(0.9, max(0.05, base + rng.gauss(0.004, 0.03))))
        rationale = f"Change {number}: the loop reads the failing test before it edits."
        born = Born(parents, operator, CommitId(f"{number:040x}"), rationale, Cost(seconds=20.0))
        yield AgentBorn(ActionId(action if parents else 0), AgentId(number), born)
        for task in rng.sample(tasks, min(per_agent, len(tasks))):
            action += 1
            yield ActionStarted(ActionId(action), Evaluate(AgentId(number), task))
            verdict = Verdict.RESOLVED if rng.random() < quality[number] else Verdict.UNRESOLVED
            graded = Evaluation(
                AgentId(number), task, 0, verdict, "as the tests say", 0.5, Cost(seconds=14.0)
            )
            yield TaskGraded(ActionId(action), graded)
    yield RunStopped("goal reached")


if __name__ == "__main__":
    bushy_run(Path(sys.argv[1]), int(sys.argv[2]), per_agent=int(sys.argv[3])).close()
