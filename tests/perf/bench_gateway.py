"""What the gateway adds to a model call, and the launcher to a job: ``python tests/perf/bench_gateway.py``.

The model answers at once, so that all that is measured is ours; the journal is in memory. Milliseconds per
call through the socket, against calling the model's function; and a launched ``true`` against a bare one.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from dgm.gateway import launcher
from dgm.gateway.lease import CallLimits
from dgm.messages import Message, Request, Role
from tests.unit.gateway_bench import ACTION, Script, chat, client, gateway

CALLS = 1000
LAUNCHES = 15
TEXT = "x" * 2000


async def direct() -> float:
    model = Script()
    request = Request((Message(Role.USER, TEXT),))
    began = time.perf_counter()
    for _ in range(CALLS):
        await model.reply(request)
    return (time.perf_counter() - began) / CALLS * 1000


async def through(folder: Path, at_once: int, **more: object) -> float:
    limits = CallLimits(calls=10**9, concurrent=at_once)
    async with gateway(folder, limits=limits) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:

                async def caller() -> None:
                    for _ in range(CALLS // at_once):
                        answer = await http.post("/chat/completions", json=chat(TEXT, **more))
                        assert answer.status_code == 200

                began = time.perf_counter()
                await asyncio.gather(*(caller() for _ in range(at_once)))
                return (time.perf_counter() - began) / CALLS * 1000


def launched(folder: Path, files: int) -> tuple[float, float]:
    """Median seconds of ``true`` by the launcher in a workdir of so many files, and bare."""
    workdir = folder / "work"
    record = {"command": ["true"], "cwd": "/", "socket": "/none", "token": "t", "time_limit_s": 5.0}
    with_launcher, bare = [], []
    for turn in range(LAUNCHES):
        place = workdir / str(turn)
        place.mkdir(parents=True)
        for number in range(files):
            (place / f"{number}.py").write_text("pass\n")
        began = time.perf_counter()
        text = json.dumps({**record, "workdir": str(place)})
        subprocess.run([sys.executable, "-I", launcher.__file__], input=text.encode(), check=True)
        with_launcher.append(time.perf_counter() - began)
        began = time.perf_counter()
        subprocess.run(["true"], check=True)
        bare.append(time.perf_counter() - began)
    return statistics.median(with_launcher), statistics.median(bare)


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = asyncio.run(direct())
        print(f"model called directly: {plain:.4f} ms a call ({CALLS} calls, {len(TEXT)} characters)")
        for title, at_once, more in (
            ("one at a time", 1, {}),
            ("8 at once", 8, {}),
            ("one at a time, streamed", 1, {"stream": True}),
        ):
            took = asyncio.run(through(folder / "g", at_once, **more))
            print(f"through the gateway, {title}: {took:.2f} ms a call, client included")
        ours, bare = launched(folder, 20)
        print(
            f"launcher: {ours * 1000:.0f} ms for `true` in a workdir of 20 files; bare {bare * 1000:.0f} ms"
        )


if __name__ == "__main__":
    main()
