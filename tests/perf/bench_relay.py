"""What the relay of a Docker sandbox costs beside a mounted socket: calls, streamed events, whole evaluations.

A mounted socket is what dgm had before: a folder of the host in the sandbox, which only works where engine and dgm see
the same files. Both ways are measured in turn in one run, by a program inside that goes through the launcher's port as
agents do, and by evaluations of the offline model.

    python tests/perf/bench_relay.py [--rounds 5] [--evaluations 5]
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2])]

from starlette.applications import Starlette  # noqa: E402
from starlette.responses import Response, StreamingResponse  # noqa: E402
from starlette.routing import Route  # noqa: E402

from dgm import assemble  # noqa: E402
from dgm.config import Settings  # noqa: E402
from dgm.domain import ActionId, Entry, Evaluate, Split  # noqa: E402
from dgm.gateway.sockets import SocketServer  # noqa: E402
from dgm.protocols import Sandbox, SandboxSpec, SharedSocket  # noqa: E402
from dgm.sandboxes import container, recipes  # noqa: E402
from dgm.sandboxes.choose import choose  # noqa: E402
from dgm.sandboxes.docker import DockerEngine  # noqa: E402
from dgm.search.orders import EvaluateOrder  # noqa: E402

FOLDER, NAME = "/run/dgm", "gateway.sock"
WAYS = ("mounted socket", "relay")
LABELS = {"dgm.run": f"bench-relay-{os.getpid()}"}
CLIENT = """
import http.client, json, statistics, sys, threading, time
sys.path.insert(0, "/job")
from launcher import Forwarder
port = Forwarder("/run/dgm/gateway.sock").start()
found = {}

def connect():
    return http.client.HTTPConnection("127.0.0.1", port)

def ask(to, path="/small", body=None):
    to.request("POST" if body else "GET", path, body)
    return to.getresponse().read()

def timed(times, what, *given):
    took = []
    for _ in range(times):
        began = time.perf_counter()
        what(*given)
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6

def anew():
    to = connect()
    ask(to)
    to.close()

kept = connect()
timed(30, ask, kept)
found["small request, µs"] = timed(400, ask, kept)
found["new connection, µs"] = timed(60, anew)
found["200 kB request, µs"] = timed(40, ask, kept, "/echo", bytes(200_000))
began = time.perf_counter()
found["32 MB down, ms"] = timed(1, ask, kept, "/large") / 1000
found["32 MB up, ms"] = timed(1, ask, kept, "/echo", bytes(32 << 20)) / 1000
kept.request("GET", "/events")
answer, lags = kept.getresponse(), []
while piece := answer.read1(4096):
    now = time.time()
    lags += [now - float(line) for line in piece.split()]
found["streamed event, µs late"] = statistics.median(lags) * 1e6
assert len(lags) == 60

def many():
    to = connect()
    for _ in range(60):
        ask(to)

threads = [threading.Thread(target=many) for _ in range(8)]
began = time.perf_counter()
for each in threads:
    each.start()
for each in threads:
    each.join()
found["8 connections, ms for 480 requests"] = (time.perf_counter() - began) * 1000
stalled = connect()
stalled.request("GET", "/large")
time.sleep(0.2)
found["small request beside a stalled reader, µs"] = timed(100, ask, kept)
print(json.dumps(found))
"""


async def echo(request: Any) -> Response:
    size = 0
    async for piece in request.stream():
        size += len(piece)
    return Response(str(size))


async def small(_request: Any) -> Response:
    return Response(b"s" * 1000)


async def large(_request: Any) -> StreamingResponse:
    return StreamingResponse(iter([bytes(1 << 16)] * 512), headers={"content-length": str(32 << 20)})


async def events(_request: Any) -> StreamingResponse:
    async def each() -> AsyncIterator[bytes]:
        for _ in range(60):
            yield f"{time.time()}\n".encode()
            await asyncio.sleep(0.01)

    return StreamingResponse(each())


APP = Starlette(
    routes=[
        Route("/small", small),
        Route("/large", large),
        Route("/events", events),
        Route("/echo", echo, methods=["POST"]),
    ]
)


class MountingEngine:
    """Docker as it was before: the socket's folder is mounted, and there is no relay."""

    name = "docker"

    def __init__(self, engine: DockerEngine) -> None:
        self._engine = engine

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        made = container.creation_arguments
        if spec.socket:
            folder = str(spec.socket.source.parent)

            def with_mount(*given: Any) -> dict[str, Any]:
                return {**made(*given), "volumes": {folder: {"bind": FOLDER, "mode": "ro"}}}

            container.creation_arguments = with_mount
        async with contextlib.AsyncExitStack() as stack:
            try:
                sandbox = await stack.enter_async_context(self._engine.open(replace(spec, socket=None)))
            finally:
                container.creation_arguments = made
            yield sandbox

    async def reap(self, labels: Any) -> int:
        return await self._engine.reap(labels)


async def measure_calls(engines: dict[str, Any], rounds: int) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    job = {
        "launcher.py": Entry(files("dgm.gateway").joinpath("launcher.py").read_bytes()),
        "client.py": Entry(CLIENT.encode()),
    }
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as place:
        shared = SharedSocket(Path(place, NAME), f"{FOLDER}/{NAME}")
        spec = replace(recipes.load("python").spec(LABELS), socket=shared)
        async with SocketServer(APP, Path(place), NAME):
            for _ in range(rounds):
                for way, engine in engines.items():
                    began = time.perf_counter()
                    async with engine.open(spec) as sandbox:
                        found[way].setdefault("open a sandbox, ms", []).append(
                            (time.perf_counter() - began) * 1000
                        )
                        await sandbox.put(job, "/job")
                        done = await sandbox.exec(["python3", "/job/client.py"], timeout_s=300)
                    for name, value in json.loads(done.output.splitlines()[-1]).items():
                        found[way].setdefault(name, []).append(value)
    return found


async def measure_evaluations(engines: dict[str, Any], evaluations: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    settings = Settings(model="offline", sandbox="docker")
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as place:
        for number in range(evaluations + 1):
            for way, engine in engines.items():
                parts = assemble.RunParts(engine, assemble.open_suite(settings.benchmark, engine))
                with assemble.create(Path(place, f"{way[0]}{number}"), settings, parts) as run:
                    task = parts.benchmark.tasks(Split.SEARCH)[number]
                    async with assemble.open_worker(run, settings, parts) as worker:
                        action = Evaluate(run.tree.agents[0].id, task.id)
                        began = time.perf_counter()
                        await worker.perform(EvaluateOrder(ActionId(1), action, run.tree.agents[0]))
                        if number:
                            found[way].append((time.perf_counter() - began) * 1000)
    return found


def tell(name: str, mounted: list[float], relayed: list[float]) -> None:
    before, after = median(mounted), median(relayed)
    print(f"{name:<42} {before:10.0f} {after:10.0f} {after / before:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=5)
    given = parser.parse_args()
    engine = choose("docker")
    assert isinstance(engine, DockerEngine)
    engines = dict(zip(WAYS, (MountingEngine(engine), engine), strict=True))
    calls = asyncio.run(measure_calls(engines, given.rounds))
    print(f"medians of {given.rounds} sandboxes each, load {os.getloadavg()[0]:.1f}")
    print(f"{'':<42} {'mounted':>10} {'relay':>10} {'ratio':>8}")
    for name, mounted in calls[WAYS[0]].items():
        tell(name, mounted, calls[WAYS[1]][name])
    if given.evaluations:
        whole = asyncio.run(measure_evaluations(engines, given.evaluations))
        tell("evaluation, offline model, ms", *(whole[way] for way in WAYS))


if __name__ == "__main__":
    main()
