"""What it takes to replay a run's decisions: of a made-up run of 10,000 events, and of the example run.

The big run is made by the real loop with ``hgm`` and a worker whose outcomes are made up. Printed with the time that
reading and folding the same log takes, in the same process.

    python tests/perf/bench_replay.py [--events 10000] [--rounds 3]
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from random import Random

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from dgm import replay  # noqa: E402
from dgm.archive.events import RunStarted  # noqa: E402
from dgm.archive.fold import fold  # noqa: E402
from dgm.archive.packed import unpack  # noqa: E402
from dgm.archive.run import Run  # noqa: E402
from dgm.archive.tree import Tree  # noqa: E402
from dgm.config import Settings  # noqa: E402
from dgm.domain import ActionId, Born, Budget, Cost, Entry, Evaluation, TaskId, Usage, Verdict  # noqa: E402
from dgm.policies.registry import open_policy  # noqa: E402
from dgm.search.loop import Search  # noqa: E402
from dgm.search.orders import EvaluateOrder, ExpandOrder  # noqa: E402
from dgm.search.run_controller import RunController  # noqa: E402

EXAMPLE = REPOSITORY / "archive" / "example" / "example.dgm"
TASKS = tuple(TaskId(f"made-up/task-{n:04}") for n in range(500))


class Fates:
    """Decides at once how each order ends."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.rng = Random(0)

    async def perform(self, order: EvaluateOrder | ExpandOrder) -> Evaluation | Born:
        """The outcome."""
        # Outcomes come back in the order of the orders; the loop must get its turn between them.
        await asyncio.sleep(0)
        if isinstance(order, EvaluateOrder):
            what = order.action
            verdict = Verdict.RESOLVED if self.rng.random() < 0.3 else Verdict.UNRESOLVED
            cost = Cost(Usage(1))
            return Evaluation(what.agent, what.task, what.attempt, verdict, "made up", 0.0, cost)
        source = {"agent.py": Entry(b"%d" % order.id)}
        commit = self.run.repository.commit(source, [parent.commit for parent in order.parents])
        return Born(order.action.parents, "self-edit", commit, "made up")


def make(folder: Path, events: int, settings: Settings) -> None:
    """A run of about so many events: two for each action."""
    config = {"settings": settings.model_dump(mode="json")}
    with Run.create(folder, config) as run:
        run.append(RunStarted(Budget(evaluations=10**6), TASKS))
        commit = run.repository.commit({"agent.py": Entry(b"seed")}, ())
        run.append(run.birth(Born((), "seed", commit, ""), ActionId(0)))
        worker = Fates(run)
        search = Search(RunController(run, settings), open_policy(settings), worker, settings)

        async def until_long() -> None:
            searching = asyncio.create_task(search.go())
            while run.tree.seq < events and not searching.done():
                await asyncio.sleep(0.05)
            search.ask_to_stop("long enough")
            await searching

        asyncio.run(until_long())


def measure(folder: Path, title: str, rounds: int) -> None:
    """Prints the quickest of the rounds."""
    asked, again, folding = 0, [], []
    with Run.open(folder) as run:
        for _ in range(rounds):
            began = time.perf_counter()
            fold(run.store, Tree())
            folding.append(time.perf_counter() - began)
            began = time.perf_counter()
            found = replay.decisions(run)
            again.append(time.perf_counter() - began)
            asked = found.asked
            if found.differing:
                raise SystemExit(f"{title}: {found.differing} decisions differ, the first at {found.first}")
    seconds, load = min(again), os.getloadavg()[0]
    what = f"{run.tree.seq} events, {len(run.tree.agents)} agents, {asked} decisions"
    print(
        f"{title}: {what} again in {seconds:.2f} s ({seconds / max(1, asked) * 1000:.2f} ms each) [load {load:.1f}]"
    )
    print(f"  {seconds / min(folding):.1f} x the folding of its log ({min(folding):.2f} s)")


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        make(folder / "big", given.events, Settings(workers=4))
        print(f"made in {time.perf_counter() - began:.0f} s", flush=True)
        measure(folder / "big", "a made-up run", given.rounds)
        if EXAMPLE.exists():
            unpack(EXAMPLE, folder / "example")
            measure(folder / "example", "the example", given.rounds)


if __name__ == "__main__":
    main()
