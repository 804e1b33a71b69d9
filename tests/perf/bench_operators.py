"""What one operator's children are worth: so many expansions with the offline model in bubblewrap, one row of a table.

    python tests/perf/bench_operators.py --operator diagnose --expansions 40 [--folder FOLDER] [--evaluations 6]

Parents are drawn with equal chances among the fertile agents that have what the operator needs, so that no policy
favours an operator, and every agent is evaluated on the same few tasks of the starter suite's search split. Where the
archive cannot yet give anyone what the operator needs (a mate, a failure, several members), self-edit makes the child;
those are not in the row. A run in
``--folder`` is kept, and the same command goes on with it.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from dgm import assemble
from dgm.analysis.operator_accounts import OperatorLine, operators_of
from dgm.archive.events import ActionStarted, AgentBorn, AgentStillborn, Recorded, TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import Action, AgentId, Evaluate, Expand, Split, TaskId
from dgm.policies.limits import fertile
from dgm.policies.operators import open_operators
from dgm.protocols import Needs
from dgm.search.loop import LoopHooks, Search
from dgm.search.run_controller import RunController

FIRST = "self-edit"
PREFERRED = 1e9
HEADER = (
    "| operator | tried | born | stillborn, by stage | judged | better | mean gain [95 %], points "
    "| tokens a better child | s an expansion | vetting, mean s a run |\n|---|---|---|---|---|---|---|---|---|---|"
)


class EveryChild:
    """A policy: all evaluations of all agents, then a child of anyone, until the operator had its expansions."""

    keeps_state = True
    name = "bench-operators"

    def __init__(
        self, settings: Settings, needs: Mapping[str, Needs], wanted: int, tasks: tuple[TaskId, ...]
    ):
        self._operators, self._observers = open_operators(settings, needs)
        self._operator = settings.operator_names[-1]
        self._wanted = wanted
        self._tasks = tasks
        self._begun = 0
        self._others = 0

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """The next step; None when all is done, or what is missing runs."""
        for agent in tree.agents:
            for task in self._tasks:
                if task not in tree.tried(agent.id):
                    return Evaluate(agent.id, task)
        # Many more than wanted would say that the archive never gives the operator what it needs.
        if self._begun >= self._wanted or self._others >= 3 * self._wanted + 10:
            return None
        done = np.array(tree.own_resolved) + np.array(tree.own_unresolved) >= len(self._tasks)
        able = np.flatnonzero(fertile(tree) & done)
        parents = [AgentId(int(agent)) for agent in able]
        rng.shuffle(parents)
        steps = (self._operators.choose(tree, parent, rng) for parent in parents)
        other: Expand | None = None
        for step in steps:
            if step is not None and step.operator == self._operator:
                return step
            other = other or step
        return other

    def observe(self, event: Recorded) -> None:
        """Counts expansions, and passes the event on."""
        match event.event:
            case ActionStarted(_, Expand(operator=operator), again=False):
                self._begun += operator == self._operator
                self._others += operator != self._operator
            case _:
                pass
        for observer in self._observers:
            observer.observe(event)


def settings_for(operator: str, workers: int, seed: int) -> Settings:
    """Self-edit makes what the operator cannot make yet."""
    several = operator != FIRST
    return Settings(
        benchmark="starter",
        model="offline",
        sandbox="bubblewrap",
        operator=f"{FIRST}+{operator}" if several else FIRST,
        operators={"weights": {operator: PREFERRED}} if several else {},
        workers=workers,
        seed=seed,
        budget={"evaluations": 10**6},
    )


def chosen_tasks(parts: assemble.RunParts, count: int, seed: int) -> tuple[TaskId, ...]:
    """The same for every operator."""
    tasks = sorted(task.id for task in parts.benchmark.tasks(Split.SEARCH))
    return tuple(Random(f"bench-operators/{seed}").sample(tasks, min(count, len(tasks))))


async def perform(run: Run, settings: Settings, parts: assemble.RunParts, policy: EveryChild) -> None:
    """Searches until the policy is content."""
    began = time.monotonic()

    def told(recorded: Recorded) -> None:
        if isinstance(recorded.event, AgentBorn | AgentStillborn | TaskGraded):
            print(f"{time.monotonic() - began:7.0f} s  {type(recorded.event).__name__}", file=sys.stderr)

    async with assemble.open_worker(run, settings, parts) as worker:
        controller = RunController(run, settings, assemble.needs_of(settings))
        over = await Search(controller, policy, worker, settings, LoopHooks(told)).go()
    print(over.message, file=sys.stderr)


def row(line: OperatorLine) -> str:
    """Of the table in docs/operators.md."""
    dead = ", ".join(f"{stage} {count}" for stage, count in sorted(line.stillborn.items())) or "–"
    each = f"{line.spend.tokens / line.better:,.0f}" if line.better else "–"
    ended = max(1, line.tried - line.unfinished)
    cells = (
        f"`{line.operator}`",
        str(line.tried),
        str(line.born),
        dead,
        str(line.judged),
        str(line.better),
        f"{100 * line.gain.mean:+.1f}" if line.gain else "–",
        each,
        f"{line.seconds / ended:.1f}",
        ", ".join(f"{name} {took.seconds / took.runs:.2f} s" for name, took in line.vetting.items()) or "–",
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Prints the row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--operator", required=True)
    parser.add_argument("--expansions", type=int, default=40)
    parser.add_argument("--evaluations", type=int, default=6, help="of every agent")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--folder", type=Path, help="keep the run here, and go on with it where it is there already"
    )
    given = parser.parse_args()
    settings = settings_for(given.operator, given.workers, given.seed)
    parts = assemble.parts_of(settings)
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as scratch:
        folder = given.folder or Path(scratch) / "run"
        before = (folder / "run.json").exists()
        run = Run.open(folder, write=True) if before else assemble.create(folder, settings, parts)
        with run:
            if before:
                settings = assemble.settings_of(run)
                assemble.record_resume(run, run.tree.budget, parts)
            tasks = chosen_tasks(parts, given.evaluations, given.seed)
            policy = EveryChild(settings, assemble.needs_of(settings), given.expansions, tasks)
            asyncio.run(perform(run, settings, parts, policy))
            lines = operators_of(run)
            print(HEADER)
            for line in lines:
                if line.operator == given.operator:
                    print(row(line))


if __name__ == "__main__":
    main()
