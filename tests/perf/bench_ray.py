"""A search on three nodes of a Ray cluster on this machine against the same search without Ray: verdicts and time.

Both search the starter suite with the offline model in bubblewrap, with one seed and as many workers. Decisions depend
on what ends first, so that evaluations are compared that both performed: the same agent's code on the same task. Needs
the extra ``ray``.

    python tests/perf/bench_ray.py [--evaluations 200] [--workers 3] [--nodes 3] [--seed 3]
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path[:0] = [str(REPOSITORY)]
os.environ["PYTHONPATH"] = str(REPOSITORY)
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from dgm import assemble  # noqa: E402
from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, AgentStillborn, TaskGraded  # noqa: E402
from dgm.archive.run import Run  # noqa: E402
from dgm.benchmarks.opening import open_suite  # noqa: E402
from dgm.config import Settings, resolve  # noqa: E402
from dgm.domain import Verdict  # noqa: E402
from dgm.protocols import SandboxEngine  # noqa: E402
from dgm.sandboxes.bubblewrap import BubblewrapEngine  # noqa: E402
from dgm.sandboxes.ray.engine import RayEngine  # noqa: E402

Key = tuple[str, str, int]
"""Commit of the agent, task, attempt."""
_STORE_BYTES = 100 * 2**20
_MOST_RATIO, _MOST_MS = 1.15, 150.0


@dataclass(frozen=True, slots=True)
class Performed:
    """One search."""

    verdicts: dict[Key, Verdict]
    seconds: dict[Key, float]
    """Seconds of each evaluation."""
    wall_s: float
    busy: float
    """Share of the workers' time in which an action was under way."""
    lost: int
    agents: int


@contextlib.contextmanager
def ray_engine(nodes: int, settings: Settings) -> Iterator[RayEngine]:
    """The engine on a cluster of this machine: a head without processors, and nodes of two processors."""
    import ray
    from ray.cluster_utils import Cluster

    from dgm.sandboxes.ray.cluster import connect

    common = {"object_store_memory": _STORE_BYTES, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **common})
    try:
        for _ in range(nodes):
            made.add_node(num_cpus=2, memory=4 * 2**30, object_store_memory=_STORE_BYTES)
        yield RayEngine(connect(made.address), settings.scale)
    finally:
        ray.shutdown()
        made.shutdown()


def perform(folder: Path, engine: SandboxEngine, settings: Settings) -> Performed:
    """Search to the end."""
    parts = assemble.RunParts(engine, open_suite(settings.benchmark, engine, settings.benchmarks))
    begun: dict[int, float] = {}
    busy_s, lost = 0.0, 0
    verdicts: dict[Key, Verdict] = {}
    seconds: dict[Key, float] = {}

    def note(recorded, run: Run) -> None:
        nonlocal busy_s, lost
        event = recorded.event
        if isinstance(event, ActionStarted):
            begun[event.id] = time.monotonic()
            return
        if not isinstance(event, ActionLost | AgentBorn | AgentStillborn | TaskGraded):
            return
        lost += isinstance(event, ActionLost)
        busy_s += time.monotonic() - begun.pop(event.action, time.monotonic())
        if isinstance(event, TaskGraded) and event.outcome.verdict is not Verdict.INVALID:
            done = event.outcome
            key = (run.tree.agents[done.agent].commit, done.task, done.attempt)
            verdicts[key], seconds[key] = done.verdict, done.cost.seconds

    async def go(run: Run) -> None:
        async with assemble.search(run, settings, parts, lambda recorded: note(recorded, run)) as search:
            await search.go()

    with assemble.create(folder, settings, parts) as run:
        began = time.monotonic()
        asyncio.run(go(run))
        wall_s = time.monotonic() - began
        agents = len(run.tree.agents)
    return Performed(verdicts, seconds, wall_s, busy_s / wall_s / settings.workers, lost, agents)


def main() -> None:
    """Print the figures; exit 1 if a verdict differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("evaluations", 200), ("workers", 3), ("nodes", 3), ("seed", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    settings = resolve(
        None,
        (),
        {
            "model": "offline",
            "benchmark": "starter",
            "workers": given.workers,
            "seed": given.seed,
            "limits.check_s": 60,
            "budget.evaluations": given.evaluations,
            "scale.node_engine": "bubblewrap",
        },
    )
    # Ray's sockets have long names below its folder, and a path of a socket may not.
    with tempfile.TemporaryDirectory(prefix="r-", dir="/tmp", ignore_cleanup_errors=True) as scratch:
        os.environ["HOME"] = os.environ["RAY_TMPDIR"] = scratch
        print(f"load before {os.getloadavg()[0]:.1f}", flush=True)
        here = perform(Path(scratch, "here"), BubblewrapEngine(), settings)
        tell("without Ray", here)
        with ray_engine(given.nodes, settings) as engine:
            far = perform(Path(scratch, "far"), engine, settings)
            tell(f"{given.nodes} nodes", far)
    sys.exit(0 if compare(here, far) else 1)


def tell(name: str, done: Performed) -> None:
    """Print one search."""
    print(
        f"{name}: {len(done.verdicts)} evaluations, {done.agents} agents in {done.wall_s:.0f} s, slots busy "
        f"{done.busy:.1%}, {done.lost} lost, median {statistics.median(done.seconds.values()):.2f} s [load "
        f"{os.getloadavg()[0]:.1f}]",
        flush=True,
    )


def compare(here: Performed, far: Performed) -> bool:
    """Print how the evaluations of both compare; return whether all verdicts are equal."""
    common = sorted(here.verdicts.keys() & far.verdicts.keys())
    equal = sum(here.verdicts[key] is far.verdicts[key] for key in common)
    print(f"{len(common)} evaluations of the same agents on the same tasks: {equal} verdicts equal")
    if common:
        near_s, far_s = (sum(each.seconds[key] for key in common) for each in (here, far))
        more_ms = statistics.median(1000 * (far.seconds[key] - here.seconds[key]) for key in common)
        ratio = far_s / near_s
        holds = ratio <= _MOST_RATIO or more_ms <= _MOST_MS
        print(
            f"an evaluation {ratio:.2f} x (sums), {more_ms:+.0f} ms at the median of the differences; bound "
            f"{_MOST_RATIO} x or {_MOST_MS:.0f} ms: {'holds' if holds else 'not shown'}"
        )
    return equal == len(common)


if __name__ == "__main__":
    main()
