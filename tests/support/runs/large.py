"""A long search made by hand, as a hosted model would leave it: many agents, verdicts, calls, texts and diffs."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from dgm.archive.events import (
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    Event,
    ModelCalled,
    RunStarted,
    RunStopped,
    TaskGraded,
)
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Entry,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from tests.support.runs.builder import make_config

OPERATORS = ("self-edit", "module", "diagnose", "crossover")
_CALL = Usage(1, 4000, 300, 0.004, 2000)


def large_run(folder: Path, agents: int, evaluations: int, *, calls: int = 10, commits: bool = True) -> Run:
    """A finished run.

    Args:
        folder: of the run; must not exist.
        agents: each born from one of the last 40.
        evaluations: over all agents.
        calls: model calls of each action.
        commits: whether agents have sources, of which each changes 400 lines; there are no diffs otherwise.
    """
    settings = Settings(model="openai/x", operator="+".join(OPERATORS), seed=5)
    versions = {"dgm": "0.1.0", "python": "3.11.7", "benchmark": "c" * 64}
    config = make_config(settings, sandbox="docker", id="b" * 16, versions=versions)
    run = Run.create(folder, config)
    batch: list[Event] = []
    for event in _history(run, agents, evaluations // agents, calls, commits=commits):
        batch.append(event)
        if len(batch) >= 10_000:
            run.append_many(batch)
            batch.clear()
    run.append_many(batch)
    return run


def _history(run: Run, agents: int, each: int, calls: int, *, commits: bool) -> Iterator[Event]:
    rng = Random(0)
    tasks = tuple(TaskId(f"repository-{n % 40}/issue-{n:04}") for n in range(400))
    known: list[CommitId] = []
    action = ActionId(0)
    yield RunStarted(Budget(evaluations=agents * each), tasks)
    for number in range(agents):
        agent = AgentId(number)
        parents: tuple[AgentId, ...] = ()
        operator = "seed"
        if number:
            parents = (AgentId(rng.randrange(max(0, number - 40), number)),)
            operator = rng.choice(OPERATORS)
            if operator == "crossover" and number > 1:
                parents += (AgentId(rng.choice([n for n in range(number) if n != parents[0]])),)
            action = ActionId(action + 1)
            yield ActionStarted(action, Expand(parents, operator))
            yield from _called(action, calls, "improve")
            if rng.random() < 0.1:
                reason = f"the check fails with code {rng.randrange(9)}"
                yield AgentStillborn(action, Stillborn(parents, operator, "check", reason, Cost(seconds=9.0)))
                action = ActionId(action + 1)
                yield ActionStarted(action, Expand(parents, operator))
        known.append(_commit(run, number, [known[p] for p in parents]) if commits else CommitId("0" * 40))
        rationale = f"Change {number}. " + "The loop reads the failing test before it edits. " * 40
        yield AgentBorn(action, agent, Born(parents, operator, known[-1], rationale, Cost(seconds=20.0)))
        for task in rng.sample(tasks, each):
            action = ActionId(action + 1)
            yield ActionStarted(action, Evaluate(agent, task))
            yield from _called(action, calls, "solve")
            solved = rng.random() < 0.2 + 0.5 * number / agents
            verdict = Verdict.RESOLVED if solved else Verdict.UNRESOLVED
            reason = f"{rng.randrange(9)} of 9 hidden tests failed"
            yield TaskGraded(action, Evaluation(agent, task, 0, verdict, reason, 0.5, Cost(seconds=14.0)))
    yield RunStopped("goal reached")


def _called(action: ActionId, calls: int, role: str) -> Iterator[Event]:
    for number in range(1, calls + 1):
        yield ModelCalled(action, number, "openai/x", role, _CALL, 1.5)


def _commit(run: Run, number: int, parents: list[CommitId]) -> CommitId:
    lines = "".join(
        f"value_{n} = {number if n % 5 == 0 else n}  # a line of the agent\n" for n in range(2000)
    )
    return run.repository.commit({"agent/loop.py": Entry(lines.encode())}, parents)
