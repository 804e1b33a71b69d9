"""How busy four workers are over 200 evaluations of uneven length; the bound is 90 % of four slots.

The archive and the loop are the real ones; only the work is a sleep, log-normal as evaluations are, so that what is
measured is the loop's own doing: deciding, recording, starting.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from random import Random

from dgm.archive.events import RunStarted
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, Born, Budget, Cost, Entry, Evaluation, TaskId, Usage, Verdict
from dgm.search.loop import Search
from dgm.search.orders import EvaluateOrder
from dgm.search.run_controller import RunController
from tests.support.runs.trees import named

WORKERS, EVALUATIONS = 4, 200
TASKS = tuple(TaskId(f"task-{n}") for n in range(40))


class Sleeper:
    """Sleeps as long as its stream says, and counts for how long slots were in use."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.busy_s = 0.0
        self._chance = Random(1)

    async def perform(self, order):
        began = time.monotonic()
        await asyncio.sleep(min(2.0, self._chance.lognormvariate(-1.5, 0.8)))
        self.busy_s += time.monotonic() - began
        if isinstance(order, EvaluateOrder):
            what = order.action
            verdict = Verdict.RESOLVED if self._chance.random() < 0.3 else Verdict.UNRESOLVED
            return Evaluation(what.agent, what.task, what.attempt, verdict, "", 0.0, Cost(Usage(1)))
        source = {"agent.py": Entry(b"%d" % order.id)}
        commit = self.run.repository.commit(source, [parent.commit for parent in order.parents])
        return Born(order.action.parents, "self-edit", commit, "")


def main() -> None:
    """Prints the share of slots in use."""
    with (
        tempfile.TemporaryDirectory(prefix="dgm-bench-") as scratch,
        Run.create(Path(scratch) / "run", {}) as run,
    ):
        run.append(RunStarted(Budget(evaluations=EVALUATIONS), TASKS))
        seed = run.repository.commit({"agent.py": Entry(b"seed")}, ())
        run.append(run.birth(Born((), "seed", seed, ""), ActionId(0)))
        sleeper = Sleeper(run)
        search = Search(
            RunController(run, Settings(workers=WORKERS)), named("hgm"), sleeper, Settings(workers=WORKERS)
        )
        began = time.monotonic()
        asyncio.run(search.go())
        wall = time.monotonic() - began
        share = sleeper.busy_s / (WORKERS * wall)
        print(
            f"{run.tree.evaluations} evaluations, {len(run.tree.agents)} agents, {WORKERS} workers, {wall:.1f} s"
        )
        print(f"slots in use {share:.1%}")


if __name__ == "__main__":
    main()
