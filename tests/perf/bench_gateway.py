"""What the gateway adds to a model call, how many calls one core carries, and what the launcher adds to a job.

The journal is a real run's, on disk. Latency: a vendor's package asks the test server directly and through the gateway,
in turn, in one growing conversation; and once more through a gateway whose model answers at once, which leaves out the
second client, with which the gateway asks the provider, and the provider. Throughput: raw sockets against a gateway
that is held to one core; its processor time a call says what it carries where the machine does other things beside.

    python tests/perf/bench_gateway.py [--calls 200] [--rounds 3] [--only path|latency|throughput|launcher]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import gateway_lab as lab  # noqa: E402

from dgm.gateway import launcher  # noqa: E402

MODELS = {"openai": "openai/gpt-test", "anthropic": "anthropic/claude-test"}
SAID = "a line of what a tool printed\n" * 20
LAUNCHES = 15
WARM = 10
Ask = Callable[[Sequence[dict[str, str]]], None]


def loaded() -> str:
    """How busy the machine is."""
    return f"[load {os.getloadavg()[0]:.1f}]"


def openai_at(where: dict[str, Any], key: str, model: str, *, stream: bool) -> Ask:
    """Asks with the openai package."""
    import httpx2
    import openai

    transport = httpx2.HTTPTransport(uds=where["uds"]) if "uds" in where else None
    client = openai.OpenAI(
        base_url=where["url"] + "/v1",
        api_key=key,
        max_retries=0,
        http_client=httpx2.Client(transport=transport),
    )

    def ask(messages: Sequence[dict[str, str]]) -> None:
        told = client.chat.completions.create(model=model, messages=list(messages), stream=stream)  # type: ignore[call-overload]
        if stream:
            assert sum(len(chunk.choices) for chunk in told)
        else:
            assert told.choices[0].message.content

    return ask


def anthropic_at(where: dict[str, Any], key: str, model: str, *, stream: bool) -> Ask:
    """Asks with the anthropic package."""
    import anthropic
    import httpx2

    transport = httpx2.HTTPTransport(uds=where["uds"]) if "uds" in where else None
    client = anthropic.Anthropic(
        base_url=where["url"], api_key=key, max_retries=0, http_client=httpx2.Client(transport=transport)
    )

    def ask(messages: Sequence[dict[str, str]]) -> None:
        asked = {"model": model, "messages": list(messages), "max_tokens": 1000}
        if stream:
            with client.messages.stream(**asked) as told:  # type: ignore[arg-type]
                assert told.get_final_message().content
        else:
            assert client.messages.create(**asked).content  # type: ignore[call-overload]

    return ask


def in_turn(asks: Sequence[Ask], calls: int) -> list[list[float]]:
    """Milliseconds of each way to ask, for the same growing conversation."""
    took: list[list[float]] = [[] for _ in asks]
    messages: list[dict[str, str]] = []
    for number in range(-WARM, calls):
        if number == 0:
            messages.clear()
        messages.append({"role": "user", "content": f"{number} {SAID}"})
        for ask, times in zip(asks, took, strict=True):
            began = time.perf_counter()
            ask(messages)
            if number >= 0:
                times.append((time.perf_counter() - began) * 1000)
        messages.append({"role": "assistant", "content": f"{number} {SAID}"})
    return took


def latency(folder: Path, calls: int, rounds: int) -> None:
    """Prints medians and 95th percentiles; of several rounds the one in which the direct calls were quickest."""
    for vendor, at in (("openai", openai_at), ("anthropic", anthropic_at)):
        for stream in (False, True):
            found = [
                _round(folder / f"{vendor}-{stream}-{n}", vendor, at, stream, calls) for n in range(rounds)
            ]
            direct, hosted, instant, load = min(found, key=lambda r: statistics.median(r[0]))
            parts = [
                f"{name} {_told(t)}" for name, t in (("direct", direct), ("through the gateway", hosted))
            ]
            added = [b - a for a, b in zip(direct, hosted, strict=True)]
            kind = "streamed" if stream else "whole"
            print(
                f"{vendor}, {kind}, {calls} calls of a growing conversation: " + ", ".join(parts) + f" {load}"
            )
            ratio = statistics.median(hosted) / statistics.median(direct)
            print(f"  added: {statistics.median(added):.2f} ms at the median, {ratio:.2f} x")
            print(f"  through the gateway to a model that answers at once: {_told(instant)}")


def path(folder: Path, calls: int) -> None:
    """Prints what the gateway adds to a streamed call of 20 messages and 50 chunks, and its processor time."""
    import httpx2

    messages = [{"role": "user", "content": "x" * 300} for _ in range(20)]
    with lab.chunks(50) as url, lab.gateway(folder, "openai-compatible/m", url + "/v1") as door:
        direct = httpx2.Client(base_url=url + "/v1")
        through = httpx2.Client(
            base_url="http://gateway/v1",
            transport=httpx2.HTTPTransport(uds=door.socket),
            headers={"Authorization": f"Bearer {door.tokens[0]}"},
        )
        took: dict[int, list[float]] = {0: [], 1: []}
        busy = 0.0
        for number in range(-WARM, calls):
            if number == 0:
                busy = door.busy_s()
            for which, client in enumerate((direct, through)):
                # Every call asks something else, or the gateway would join or repeat it.
                said = [*messages, {"role": "user", "content": f"{number}"}]
                body = {"model": "default", "stream": True, "messages": said, "max_tokens": 1000}
                began = time.perf_counter()
                answer = client.post("/chat/completions", json=body)
                assert answer.content.count(b"data: ") >= 51, answer.content[:500]
                if number >= 0:
                    took[which].append((time.perf_counter() - began) * 1000)
        processor = (door.busy_s() - busy) / calls * 1000
    added = statistics.median(took[1]) - statistics.median(took[0])
    print(f"20 messages, 50 streamed chunks, {calls} calls each in turn: direct {_told(took[0])}, ", end="")
    print(f"through the gateway {_told(took[1])} {loaded()}")
    print(f"  added: {added:.2f} ms at the median; {processor:.2f} ms of the gateway's processor a call")


def _told(times: Sequence[float]) -> str:
    ordered, n = sorted(times), len(times)
    tails = f"10 of 100 within {ordered[n // 10]:.2f}, 95 within {ordered[n * 95 // 100]:.2f}"
    return f"{statistics.median(times):.2f} ms ({tails})"


def _round(folder: Path, vendor: str, at: Callable[..., Ask], stream: bool, calls: int) -> tuple[Any, ...]:
    name = MODELS[vendor]
    with lab.provider() as url:
        base = url + "/v1" if vendor == "openai" else url
        with lab.gateway(folder / "h", name, base) as hosted, lab.gateway(folder / "i", name) as instant:
            asks = [at({"url": url}, lab.KEY, name.partition("/")[2], stream=stream)]
            places = [({"url": "http://gateway", "uds": door.socket}, door) for door in (hosted, instant)]
            asks += [at(place, door.tokens[0], "default", stream=stream) for place, door in places]
            return (*in_turn(asks, calls), loaded())


def throughput(folder: Path, calls: int, rounds: int) -> None:
    """Prints calls a second with the gateway on one core and everything else on the other; the best of the rounds."""
    cores = sorted(os.sched_getaffinity(0))
    own, others = cores[0], cores[-1]
    os.sched_setaffinity(0, {others})
    with lab.provider(others) as url:
        for what, where in (("answers at once", ""), ("is the test server's", url + "/v1")):
            for messages, size in ((1, 100), (20, 500)):
                found = []
                for n in range(rounds):
                    place = folder / f"{bool(where)}-{messages}-{n}"
                    with lab.gateway(place, MODELS["openai"], where, own, leases=32) as door:
                        lab.load(door, calls // 4, messages, size)
                        found.append((*lab.load(door, calls, messages, size), loaded()))
                rate, _, load = max(found)
                busy = min(one[1] for one in found)
                print(
                    f"a model that {what}, {messages} x {size} characters, 32 clients: {rate:.0f} calls/s {load}"
                )
                print(f"  {busy:.2f} ms of processor a call: one core carries {1000 / busy:.0f} calls/s")
    os.sched_setaffinity(0, cores)


def launched(folder: Path, files: int) -> tuple[float, float]:
    """Median seconds of ``true`` by the launcher in a workdir of so many files, and bare."""
    workdir = folder / "work"
    record = {
        "command": ["true"],
        "cwd": "/",
        "socket": "/none",
        "token": "t",
        "model": "m",
        "time_limit_s": 5.0,
    }
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("path", "latency", "throughput", "launcher"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.only in (None, "path"):
            path(folder / "p", given.calls)
        if given.only in (None, "latency"):
            latency(folder / "l", given.calls, given.rounds)
        if given.only in (None, "throughput"):
            throughput(folder / "t", given.calls * 10, given.rounds)
        if given.only in (None, "launcher"):
            ours, bare = launched(folder, 20)
            print(
                f"launcher: {ours * 1000:.0f} ms for `true` in a workdir of 20 files; bare {bare * 1000:.0f} ms"
            )


if __name__ == "__main__":
    main()
