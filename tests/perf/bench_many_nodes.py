"""One head with 64 nodes that are objects of this process: events per second, memory, and that nothing is lost.

Loop, log, gateway, engine, door, forwarders and keepers are the real ones. Sandboxes take 1 ms a command. Calls to
nodes are lost, connections to the gateway are cut, and nodes die meanwhile. Head and nodes share one thread here: what
is measured is what both take together.

    python tests/perf/bench_many_nodes.py [--nodes 64] [--slots 32] [--workers 512] [--evaluations 1000] [--calls 4]
        [--faults 0.002] [--kill-every-s 5]
"""

import argparse
import asyncio
import json
import logging
import os
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from many_nodes_lab import ENGINE, Faults, ManyNodes, QuickEngine  # noqa: E402

from dgm.archive.events import RunStarted  # noqa: E402
from dgm.archive.run import Run  # noqa: E402
from dgm.config import ScaleSettings, Settings  # noqa: E402
from dgm.domain import (  # noqa: E402
    ActionId,
    Born,
    Budget,
    Cost,
    Entry,
    Evaluation,
    TaskId,
    Usage,
    Verdict,
)
from dgm.gateway.journal import RunJournal  # noqa: E402
from dgm.gateway.lease import CallLimits  # noqa: E402
from dgm.gateway.ledger import Ledger  # noqa: E402
from dgm.gateway.server import Gateway  # noqa: E402
from dgm.models.pricing import Price, TokenRates  # noqa: E402
from dgm.policies.registry import open_policy  # noqa: E402
from dgm.protocols import SandboxSpec, SharedSocket  # noqa: E402
from dgm.sandboxes.ray.engine import RayEngine  # noqa: E402
from dgm.search.loop import Search  # noqa: E402
from dgm.search.orders import EvaluateOrder  # noqa: E402
from dgm.search.run_controller import RunController  # noqa: E402
from tests.support.gateway.wire_provider import Provider, whole  # noqa: E402

COMMANDS = 6
"""Commands of an evaluation beside those that ask the model."""
CUT_EVERY_S = 1.0
SAID = "a line of what a tool printed\n" * 30


class Instant(Provider):
    """Answers in its provider's protocol, after no time, and counts what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self._answer = whole("done")

    async def send(self, request, delivery):
        await delivery.begin()
        delivery.sending()
        # From here on a provider has the request.
        said = str(request.body["messages"][-1]["content"])
        self.counts[said.partition("\n")[0]] += 1
        return await self._answer(request, delivery)


class Performer:
    """Performs an evaluation as commands and model calls in a sandbox on a node, and makes children at once."""

    def __init__(self, run: Run, engine: RayEngine, gateway: Gateway, calls: int) -> None:
        self._run, self._engine, self._gateway, self._calls = run, engine, gateway, calls
        self._chance = Random(1)
        self.running = self.most = 0

    async def perform(self, order):
        if not isinstance(order, EvaluateOrder):
            source = {"agent.py": Entry(b"%d" % order.id)}
            commit = self._run.repository.commit(source, [parent.commit for parent in order.parents])
            return Born(order.action.parents, "self-edit", commit, "")
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self._evaluate(order)
        finally:
            self.running -= 1
        what = order.action
        verdict = Verdict.RESOLVED if self._chance.random() < 0.3 else Verdict.UNRESOLVED
        return Evaluation(what.agent, what.task, what.attempt, verdict, "", 0.0, Cost(Usage(1)))

    async def _evaluate(self, order) -> None:
        with self._gateway.lend(order.id, "solve") as lease:
            socket = SharedSocket(self._gateway.folder / self._gateway.socket_name, "/gateway/gateway.sock")
            labels = {"dgm.run": "bench", "dgm.action": str(order.id)}
            async with self._engine.open(SandboxSpec("python", labels, socket=socket)) as sandbox:
                for _ in range(COMMANDS):
                    await sandbox.exec(["true"], timeout_s=60)
                for number in range(self._calls):
                    asked = f"action {order.id} call {number}\n{SAID}"
                    body = {"model": "own", "messages": [{"role": "user", "content": asked}]}
                    await sandbox.exec(["ask", lease.token], timeout_s=300, stdin=json.dumps(body).encode())


async def disturb(cluster: ManyNodes, engine: RayEngine, kill_every_s: float) -> None:
    """Cut connections to the gateway, and kill nodes, until cancelled."""
    rng, began, killed = Random(2), time.monotonic(), 0
    while True:
        await asyncio.sleep(CUT_EVERY_S)
        session = engine._session
        links = [link for use in session._uses.values() for link in use.links.values()] if session else []
        if links and (writer := rng.choice(links).pipe._writer) is not None:
            writer.transport.abort()
            cluster.faults.done["connections cut"] += 1
        if kill_every_s and time.monotonic() - began > (killed + 1) * kill_every_s:
            killed += 1
            cluster.kill_one(rng)


async def search(run: Run, folder: Path, given: argparse.Namespace) -> tuple[Performer, Instant, Faults]:
    """Perform the whole search."""
    model, faults = Instant(), Faults(given.faults)
    ledger = Ledger(
        {model.name: Price(TokenRates(1.0, 0.1, 1.0, 10.0))}, lambda: run.tree.spend, lambda: run.tree.budget
    )
    cluster = ManyNodes(given.nodes, given.slots, faults)
    engine = RayEngine(cluster, ScaleSettings().model_copy(update={"node_engine": ENGINE}))
    settings = Settings(workers=given.workers, limits={"failures_in_a_row": 10**6, "tries": 100})
    limits = CallLimits(calls=10**9, tokens=10**15)
    try:
        async with Gateway(folder, RunJournal(run), {"solve": model}, ledger, limits) as gateway:
            performer = Performer(run, engine, gateway, given.calls)
            policy = open_policy(Settings(policy={"name": given.policy}))
            disturbing = asyncio.create_task(disturb(cluster, engine, given.kill_every_s))
            await Search(RunController(run, settings), policy, performer, settings).go()
            disturbing.cancel()
            engine._session.keeping.cancel()
            await asyncio.gather(
                disturbing, engine._session.keeping, *cluster.closing, return_exceptions=True
            )
            return performer, model, faults
    finally:
        cluster.close()


def resident_mb() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Print the figures; exit 1 if something was lost or paid twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind, default in (
        ("nodes", int, 64),
        ("slots", int, 32),
        ("workers", int, 512),
        ("evaluations", int, 1000),
        ("calls", int, 4),
        ("faults", float, 0.002),
        ("kill-every-s", float, 5.0),
        ("policy", str, "hgm"),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default)
    given = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    logging.disable(logging.WARNING)
    tasks = tuple(TaskId(f"task-{number}") for number in range(max(500, given.workers)))
    with (
        tempfile.TemporaryDirectory(prefix="dgm-b-", dir="/tmp") as scratch,
        Run.create(Path(scratch, "run"), {}) as run,
    ):
        run.append(RunStarted(Budget(evaluations=given.evaluations), tasks))
        seed = run.repository.commit({"agent.py": Entry(b"seed")}, ())
        run.append(run.birth(Born((), "seed", seed, ""), ActionId(0)))
        before_mb, began, used = resident_mb(), time.monotonic(), time.process_time()
        performer, model, faults = asyncio.run(search(run, Path(scratch, "gateway"), given))
        wall, used = time.monotonic() - began, time.process_time() - used
        tell(run, given, wall, used, performer.most, resident_mb() - before_mb)
        print("faults: " + ", ".join(f"{count} {name}" for name, count in sorted(faults.done.items())))
        sys.exit(1 if check(run, given, model) else 0)


def tell(run: Run, given: argparse.Namespace, wall: float, used: float, most: int, grown_mb: float) -> None:
    """Print the figures."""
    load = os.getloadavg()[0]
    evaluations = run.tree.evaluations
    print(
        f"{given.nodes} nodes x {given.slots} slots, {given.workers} workers, at most {most} at once: {evaluations} "
        f"evaluations, {len(run.tree.agents)} agents, {run.tree.seq} events in {wall:.1f} s [load {load:.1f}]"
    )
    print(
        f"{run.tree.seq / wall:.0f} events/s, {evaluations / wall:.1f} evaluations/s; processor "
        f"{1000 * used / evaluations:.1f} ms an evaluation, head and nodes together; memory grew by {grown_mb:.0f} MB "
        f"({1000 * grown_mb / max(most, 1):.0f} kB for each evaluation at once)"
    )


def check(run: Run, given: argparse.Namespace, model: Instant) -> bool:
    """Print what was lost or done twice; return whether something was."""
    kinds = dict(run.store.query("SELECT kind, count(*) FROM events GROUP BY kind", ()))
    graded = run.store.query(
        "SELECT count(DISTINCT agent || ' ' || task || ' ' || attempt) FROM evaluations", ()
    )
    twice = sum(count - 1 for count in model.counts.values())
    found = {
        "paid twice": twice,
        "answers not journaled": len(model.counts) - kinds.get("model_called", 0),
        "evaluations missing": given.evaluations - run.tree.evaluations,
        "graded twice": run.tree.evaluations - graded[0][0],
        "actions pending": len(run.tree.pending),
        "sandboxes left": sum(QuickEngine.open_sandboxes.values()),
    }
    lost = run.store.query("SELECT json_extract(body, '$.reason') FROM events WHERE kind = 'action_lost'", ())
    reasons = Counter(re.sub(r"\d+", "#", str(reason))[:90] for (reason,) in lost)
    for reason, count in reasons.most_common(5):
        print(f"  {count} actions repeated: {reason}")
    print(
        f"repeated: {kinds.get('action_lost', 0)} actions; " + ", ".join(f"{n} {k}" for k, n in found.items())
    )
    return any(found.values())


if __name__ == "__main__":
    main()
