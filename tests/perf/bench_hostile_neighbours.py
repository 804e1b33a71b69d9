"""What two hostile agents do to an honest one beside them: its verdicts, and the time of its model calls.

    python tests/perf/bench_hostile_neighbours.py [--engine docker|bubblewrap] [--evaluations 40]

The honest agent works alone first, then beside two agents that take turns at hostile acts: refused bodies, deep JSON,
many connections, processor, queued signals, memory. Each evaluation is a job in a sandbox of its own, through the
gateway of a real run on disk. Prints the verdicts and the ratio of the median times; the bound is 1.3.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import statistics
import sys
import tempfile
import textwrap
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from gateway_lab import Instant  # noqa: E402

from dgm.archive.events import RunStarted  # noqa: E402
from dgm.archive.run import Run  # noqa: E402
from dgm.config import LimitSettings  # noqa: E402
from dgm.domain import ActionId, Budget, Entry, TaskId  # noqa: E402
from dgm.errors import DgmError, UserError  # noqa: E402
from dgm.gateway.journal import RunJournal  # noqa: E402
from dgm.gateway.ledger import Ledger  # noqa: E402
from dgm.gateway.server import Gateway  # noqa: E402
from dgm.models.pricing import Price, TokenRates  # noqa: E402
from dgm.protocols import Job, JobKind, SandboxEngine, Work  # noqa: E402
from dgm.sandboxes import recipes  # noqa: E402
from dgm.sandboxes.choose import choose  # noqa: E402
from dgm.worker.workbench import SandboxWorkbench  # noqa: E402

BOUND = 1.3
CALLS = 12
ACT_S = 3.0
LABELS = {"dgm.run": f"bench-{os.getpid()}"}
HEAD = """
import json, os, pathlib, socket, sys, threading, time, urllib.request
JOB = json.loads(pathlib.Path(sys.argv[-1]).read_text())
END = time.time() + ACT_S

def post(data):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", data,
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    return urllib.request.urlopen(request, timeout=60).read()

def raw(body, count):
    head = "POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n"
    head += "Authorization: Bearer %s\\r\\nContent-Length: %d\\r\\n\\r\\n" % (os.environ["OPENAI_API_KEY"], len(body))
    def send():
        while time.time() < END:
            try:
                with socket.socket(socket.AF_UNIX) as to:
                    to.settimeout(10)
                    to.connect("/run/dgm/gateway.sock")
                    to.sendall(head.encode() + body)
                    while to.recv(65536):
                        pass
            except OSError:
                time.sleep(0.02)
    threads = [threading.Thread(target=send) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""
HONEST = """
times = []
for number in range(CALLS):
    asked = time.perf_counter()
    post(json.dumps({"messages": [{"role": "user", "content": "call %d" % number}]}).encode())
    times.append(time.perf_counter() - asked)
    time.sleep(0.05)
(pathlib.Path(JOB["workdir"]) / "a.txt").write_text("mended\\n")
(pathlib.Path(JOB["workdir"]) / "times.json").write_text(json.dumps(times))
"""
ACTS = {
    "refused bodies": """raw(b'{"messages":[' + b'{"a":1},' * 440_000 + b'{}]}', 16)""",
    "deep JSON": """raw(b'{"messages":' + b'[' * 900_000, 16)""",
    "many connections": """
open_ones = []
while time.time() < END:
    try:
        one = socket.socket(socket.AF_UNIX)
        one.connect("/run/dgm/gateway.sock")
        one.sendall(b"GET /v1/models HTTP/1.1\\r\\n")
        open_ones.append(one)
    except OSError:
        open_ones.clear()
""",
    "processor": """
for _ in range(8):
    if not os.fork():
        break
while time.time() < END:
    pass
""",
    "queued signals": """
import ctypes, signal
libc = ctypes.CDLL(None)
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
while time.time() < END:
    if libc.sigqueue(os.getpid(), 40, ctypes.c_void_p(1)) < 0:
        time.sleep(0.02)
""",
    "memory": """
held = []
while time.time() < END:
    held.append(b"x" * 8_000_000)
    time.sleep(0.01)
""",
}


def job(act: str) -> Job:
    """A job whose agent performs an act."""
    constants = f"ACT_S, CALLS = {ACT_S}, {CALLS}\n"
    source = {
        "agent.toml": Entry(b'[agent]\ncommand = ["python3", "agent.py"]\ncheck = ["true"]\n'),
        "agent.py": Entry((constants + HEAD + textwrap.dedent(act)).encode()),
    }
    return Job(JobKind.SOLVE, "p", source, {"a.txt": Entry(b"broken\n")}, "python", "/work/repo", 30.0)


@contextlib.asynccontextmanager
async def opened(engine: SandboxEngine, folder: Path) -> AsyncIterator[Iterator[SandboxWorkbench]]:
    """Workbenches of one run, each for an action of its own."""
    model = Instant("instant")
    with Run.create(folder, {}) as run:
        run.append(RunStarted(Budget(), (TaskId("t"),)))
        prices = {model.name: Price(TokenRates(1.0, 0.1, 1.0, 10.0))}
        ledger = Ledger(prices, lambda: run.tree.spend, lambda: run.tree.budget)
        spec = recipes.load("python").spec(LABELS)
        async with Gateway(folder / "gateway", RunJournal(run), {"solve": model}, ledger) as gateway:
            yield (
                SandboxWorkbench(engine.open, gateway, ActionId(number), spec, LimitSettings())
                for number in itertools.count(1)
            )


async def work(bench: SandboxWorkbench, act: str) -> Work | DgmError:
    """The end of an evaluation; an error where it gives no verdict."""
    try:
        return await bench.work(job(act))
    except DgmError as error:
        return error


async def measure(engine: SandboxEngine, evaluations: int, *, beside: bool) -> tuple[int, list[float]]:
    """The number of solved evaluations of the honest agent, and the seconds of its model calls."""
    solved, times = 0, []
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as folder:
        async with opened(engine, Path(folder) / "run") as benches:

            async def attack(first: int) -> None:
                acts = list(ACTS.values())
                for number in range(evaluations):
                    await work(next(benches), acts[(first + number) % len(acts)])

            attacks = [asyncio.create_task(attack(first)) for first in ((0, 3) if beside else ())]
            for _ in range(evaluations):
                done = await work(next(benches), HONEST)
                if isinstance(done, DgmError):
                    print(f"  no verdict: {done}")
                    continue
                solved += b"+mended" in done.patch
                if b"+mended" not in done.patch:
                    print(f"  not solved: {done.completed.output[-300:].decode(errors='replace')}")
                if "times.json" in done.workspace:
                    times += json.loads(done.workspace["times.json"].data)
            for each in attacks:
                each.cancel()
            await asyncio.gather(*attacks, return_exceptions=True)
        await engine.reap(LABELS)
    return solved, times


async def compare(name: str, evaluations: int) -> bool:
    """Prints what the neighbours did with one engine; returns whether it is within the bound."""
    try:
        engine = choose(name)
    except UserError as error:
        print(f"{name}: skipped: {error}")
        return True
    began = time.monotonic()
    alone, quiet = await measure(engine, evaluations, beside=False)
    among, busy = await measure(engine, evaluations, beside=True)
    first, second = (statistics.median(times or [0.0]) for times in (quiet, busy))
    ratio = second / first if first else float("inf")
    late = [sorted(times)[len(times) * 95 // 100] * 1000 if times else 0.0 for times in (quiet, busy)]
    print(
        f"{name}: solved alone {alone}, beside two hostile agents {among} of {evaluations}; a model call takes "
        f"{first * 1000:.1f} and {second * 1000:.1f} ms at the median "
        f"(95 of 100 within {late[0]:.0f} and {late[1]:.0f}), "
        f"ratio {ratio:.2f} (bound {BOUND}); {time.monotonic() - began:.0f} s [load {os.getloadavg()[0]:.1f}]",
        flush=True,
    )
    return alone == among == evaluations and ratio <= BOUND


def main() -> int:
    """Compares; exit code 1 if a bound is not kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=["docker", "bubblewrap"])
    parser.add_argument("--evaluations", type=int, default=40)
    given = parser.parse_args()
    names = [given.engine] if given.engine else ["bubblewrap", "docker"]
    kept = [asyncio.run(compare(name, given.evaluations)) for name in names]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
