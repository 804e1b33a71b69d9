"""Prints what the archive costs: opening a big one, recording on a deep tree, an agent's commit, a patch.

Run as ``python tests/perf/bench_archive.py [AGENTS EVALUATIONS]``; by default 100,000 and 1,000,000.
"""

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from dgm.archive.events import ActionStarted, AgentBorn, Event, RunStarted, TaskGraded
from dgm.archive.log import Log
from dgm.archive.repository import patch
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Digest,
    Entry,
    Evaluate,
    Evaluation,
    Expand,
    TaskId,
    Usage,
    Verdict,
)
from dgm.gateway.journal import RunJournal
from dgm.messages import CallKey, Message, PaidCall, Reply, Request, Role
from dgm.policies.hgm import best_belief
from tests.support.runs.trees import named


def history(agents: int, evaluations: int) -> Iterator[Event]:
    """A run's events: each agent born from a random earlier one, evaluations spread over them all."""
    rng = Random(0)
    tasks = tuple(TaskId(f"starter/task-{n:04}") for n in range(5000))
    cost = Cost(
        Usage(12, 20_000, 800, 0.0125), 14.25, {n: Digest("0" * 64) for n in ("patch", "log", "tests")}
    )
    yield RunStarted(Budget(evaluations=2 * evaluations), tasks)
    yield AgentBorn(ActionId(0), AgentId(0), Born((), "seed", CommitId("0" * 40), "the seed"))
    action = 0
    each = evaluations // agents
    for agent in range(agents):
        action += 1
        if agent:
            parents = (AgentId(rng.randrange(agent)),)
            yield ActionStarted(ActionId(action), Expand(parents, "self-edit"))
            yield AgentBorn(
                ActionId(action),
                AgentId(agent),
                Born(parents, "self-edit", CommitId(f"{agent:040x}"), "a longer limit", cost),
            )
        for task in rng.sample(tasks, each):
            action += 1
            verdict = Verdict.RESOLVED if rng.random() < 0.3 else Verdict.UNRESOLVED
            yield ActionStarted(ActionId(action), Evaluate(AgentId(agent), task))
            outcome = Evaluation(AgentId(agent), task, 0, verdict, "2 of 5 hidden tests failed", 0.6, cost)
            yield TaskGraded(ActionId(action), outcome)


def build(path: Path, agents: int, evaluations: int) -> None:
    with Log.open(path, write=True) as store:
        batch: list[Event] = []
        for event in history(agents, evaluations):
            batch.append(event)
            if len(batch) == 20_000:
                store.append_many(batch)
                batch.clear()
        store.append_many(batch)


def opening(path: Path) -> None:
    for write in (False, True):
        start, busy = time.perf_counter(), time.process_time()
        with Log.open(path, write=write) as store:
            opened = time.perf_counter() - start
            tree = Tree()
            for item in store.read():
                tree.apply(item)
        seconds, cpu = time.perf_counter() - start, time.process_time() - busy
        who = "writer" if write else "reader"
        print(f"  {who}: {seconds:.1f} s (the file alone {opened:.1f} s; processor time {cpu:.1f} s)")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  {len(tree.agents)} agents, {tree.evaluations} evaluations, peak {peak:.0f} MB")
    deciding(tree)


def deciding(tree: Tree) -> None:
    """Decisions of ``hgm``, made to evaluate and made to expand, on the whole tree."""
    for what, alpha in (("evaluate", 0.6), ("expand", 0.9)):
        policy, took = named("hgm", alpha=alpha), []
        for n in range(21):
            start = time.perf_counter()
            action = policy.next(tree, Random(n))
            took.append((time.perf_counter() - start) * 1000)
        print(f"  a decision to {type(action).__name__.lower()} ({what}): median {sorted(took)[10]:.1f} ms")
    start = time.perf_counter()
    best_belief(tree)
    print(f"  the best-belief agent: {(time.perf_counter() - start) * 1000:.0f} ms")


def recording(folder: Path, depth: int = 1000) -> None:
    tree = Tree()
    with Log.open(folder / "deep.db", write=True) as store:
        for n in range(depth + 1):
            parents = (AgentId(n - 1),) if n else ()
            tree.apply(
                store.append(AgentBorn(ActionId(n), AgentId(n), Born(parents, "x", CommitId("0" * 40), "")))
            )
        took = []
        for n in range(200):
            outcome = Evaluation(
                AgentId(depth), TaskId(f"t{n}"), 0, Verdict.RESOLVED, "all tests passed", 1.0
            )
            start = time.perf_counter()
            tree.apply(store.append(TaskGraded(ActionId(depth + 1 + n), outcome)))
            took.append((time.perf_counter() - start) * 1000)
    took.sort()
    print(f"  median {took[100]:.2f} ms, 99 of 100 within {took[198]:.2f} ms")


def storing(folder: Path) -> None:
    run = Run.create(folder / "run", {})
    files = {f"agent/part{n}.py": Entry(b"def step():\n    return 1\n" * 80) for n in range(20)}
    seed = run.repository.commit(files, ())
    commits, patches, calls = [], [], []
    journal, messages = RunJournal(run), [Message(Role.SYSTEM, "x" * 3000)]
    runner = asyncio.Runner()
    for n in range(50):
        child = {**files, f"agent/part{n % 20}.py": Entry(b"def step():\n    return %d\n" % n * 80)}
        start = time.perf_counter()
        run.repository.name(AgentId(n), run.repository.commit(child, (seed,)))
        commits.append(time.perf_counter() - start)
        start = time.perf_counter()
        patch(files, child)
        patches.append(time.perf_counter() - start)
        messages.append(Message(Role.TOOL, f"{n} lines of output\n" * 100))
        start = time.perf_counter()
        key = CallKey(ActionId(1), n + 1)
        call = PaidCall(key, "m", "solve", Request(tuple(messages)), Reply("ok"), 1.0)
        runner.run(journal.record(call))
        calls.append(time.perf_counter() - start)
    runner.close()
    everything = {name: Entry(entry.data + b"# changed\n") for name, entry in files.items()}
    start = time.perf_counter()
    patch(files, everything)
    whole = time.perf_counter() - start
    for what, took in (
        ("agent's commit and ref", commits),
        ("patch, 1 of 20 files", patches),
        ("model call", calls),
    ):
        print(f"  {what}: median {sorted(took)[25] * 1000:.1f} ms")
    print(f"  patch, 20 of 20 files: {whole * 1000:.1f} ms")


def main() -> None:
    if sys.argv[1:2] == ["open"]:
        opening(Path(sys.argv[2]))
        return
    agents, evaluations = (int(n) for n in sys.argv[1:3] or ("100000", "1000000"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        build(folder / "run.db", agents, evaluations)
        size = (folder / "run.db").stat().st_size / 1e6
        took = time.perf_counter() - start
        print(f"written: {agents} agents, {evaluations} evaluations, {size:.0f} MB, {took:.0f} s")
        print("opening (a process of its own):", flush=True)
        subprocess.run([sys.executable, __file__, "open", str(folder / "run.db")], check=True)
        print("recording an evaluation at depth 1,000, commit included:")
        recording(folder)
        print("storing durably:")
        storing(folder)


if __name__ == "__main__":
    main()
