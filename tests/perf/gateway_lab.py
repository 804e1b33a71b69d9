"""What ``bench_gateway`` measures: the test server, the gateway of a real run, and clients, a process each.

As a program it is the gateway: ``python tests/perf/gateway_lab.py FOLDER MODEL [--url URL] [--cpu N] [--leases N]``
prints its socket and its leases' tokens as a line of JSON, and serves until its input ends.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from dgm.archive.events import RunStarted  # noqa: E402
from dgm.archive.run import Run  # noqa: E402
from dgm.config import Settings  # noqa: E402
from dgm.domain import ActionId, Budget, TaskId, Usage  # noqa: E402
from dgm.gateway.journal import RunJournal  # noqa: E402
from dgm.gateway.lease import CallLimits  # noqa: E402
from dgm.gateway.ledger import Ledger  # noqa: E402
from dgm.gateway.server import Gateway  # noqa: E402
from dgm.messages import Reply, Request  # noqa: E402
from dgm.models.choose import open_model  # noqa: E402
from dgm.models.pricing import Price, TokenRates  # noqa: E402
from dgm.protocols import LentModel  # noqa: E402

KEY = "test-key"
LIMITS = CallLimits(calls=10**9, tokens=10**15)
HEADERS = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


class Instant:
    """Answers at once."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def reply(self, request: Request) -> Reply:
        text = request.messages[-1].text
        return Reply(text, usage=Usage(1, sum(len(m.text) for m in request.messages) // 4, len(text) // 4))

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class Door:
    """Where a gateway is, and what it lends."""

    socket: str
    tokens: Sequence[str]
    pid: int

    def busy_s(self) -> float:
        """Processor time of the gateway so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def serve(given: argparse.Namespace) -> None:
    """The gateway of a new run, until the input ends."""
    model: LentModel = Instant(given.model)
    if given.url:
        hosted = {"base_url": given.url, "concurrency": 64}
        vendor = given.model.partition("/")[0]
        if vendor == "openai":
            hosted["api"] = "chat"
        model = open_model(given.model, Settings(providers={vendor: hosted}))
    with Run.create(given.folder, {}) as run:
        run.append(RunStarted(Budget(usd=1e9), (TaskId("t"),)))
        ledger = Ledger(
            {model.name: Price(TokenRates(1.0, 0.1, 1.0, 10.0))},
            lambda: run.tree.spend,
            lambda: run.tree.budget,
        )
        gateway = Gateway(given.folder / "gateway", RunJournal(run), {"solve": model}, ledger, LIMITS)
        async with gateway:
            with contextlib.ExitStack() as stack:
                lent = [
                    stack.enter_context(gateway.lend(ActionId(n + 1), "solve")) for n in range(given.leases)
                ]
                path = str(gateway.folder / gateway.socket_name)
                print(json.dumps([path, [lease.token for lease in lent]]), flush=True)
                await asyncio.to_thread(sys.stdin.read)
        await model.close()


@contextlib.contextmanager
def gateway(
    folder: Path, model: str, url: str = "", cpu: int | None = None, leases: int = 1
) -> Iterator[Door]:
    """A gateway in a process of its own; without ``url`` its model answers at once."""
    command = [sys.executable, __file__, str(folder), model, "--url", url, "--leases", str(leases)]
    if cpu is not None:
        command += ["--cpu", str(cpu)]
    keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **keys}
    )
    try:
        assert process.stdout
        yield Door(*json.loads(process.stdout.readline()), process.pid)
    finally:
        process.communicate(timeout=30)


@contextlib.contextmanager
def provider(cpu: int | None = None) -> Iterator[str]:
    """The test server, which says again what was said last, in a process of its own."""
    command = [sys.executable, "-m", "tests.support.wire_server", "--brain", "echo", "--key", KEY]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY, text=True)
    try:
        assert process.stdout
        if cpu is not None:
            os.sched_setaffinity(process.pid, {cpu})
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=30)


@contextlib.contextmanager
def chunks(number: int) -> Iterator[str]:
    """A provider of Chat Completions that streams so many chunks as fast as it can, in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, __file__, "chunks", str(number)], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    try:
        assert process.stdout
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=30)


async def stream_chunks(number: int) -> None:
    """Serves on a free port; every answer is a stream."""
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = [{"role": "assistant", "content": ""}, *({"content": f"word{n} "} for n in range(number - 2)), {}]
    events = [{**head, "choices": [{"index": 0, "delta": one, "finish_reason": None}]} for one in said]
    events[-1]["choices"][0]["finish_reason"] = "stop"  # type: ignore[index]
    usage = {"prompt_tokens": 1500, "completion_tokens": number, "total_tokens": 1500 + number}
    records = [json.dumps(event) for event in (*events, {**head, "choices": [], "usage": usage})]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                asked = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return
            length = next(
                int(line.partition(b":")[2])
                for line in asked.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            await reader.readexactly(length)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            for record in (*records, "[DONE]"):
                data = f"data: {record}\n\n".encode()
                writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


async def _client(path: str, requests: Sequence[bytes]) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    for request in requests:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.partition(b":")[2]))
    writer.close()


def request(token: str, messages: int, size: int, number: int) -> bytes:
    """A raw request of so many messages of ``size`` characters, the last one told apart by its number."""
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": "word " * (size // 5)} for n in range(messages - 1)]
    said.append({"role": "user", "content": f"{number} " + "word " * (size // 5)})
    body = json.dumps({"model": "default", "messages": said}).encode()
    return HEADERS % (token.encode(), len(body)) + body


def load(door: Door, calls: int, messages: int, size: int) -> tuple[float, float]:
    """Calls a second, and milliseconds of the gateway's processor a call; every lease has a client of its own."""
    each = calls // len(door.tokens)
    prepared = [[request(token, messages, size, n) for n in range(each)] for token in door.tokens]

    async def all_of_them() -> float:
        began = time.perf_counter()
        await asyncio.gather(*(_client(door.socket, requests) for requests in prepared))
        return time.perf_counter() - began

    busy = door.busy_s()
    took = asyncio.run(all_of_them())
    done = each * len(door.tokens)
    return done / took, (door.busy_s() - busy) / done * 1000


def main() -> None:
    """Serves."""
    if sys.argv[1] == "chunks":
        asyncio.run(stream_chunks(int(sys.argv[2])))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("model")
    parser.add_argument("--url", default="")
    parser.add_argument("--cpu", type=int)
    parser.add_argument("--leases", type=int, default=1)
    given = parser.parse_args()
    if given.cpu is not None:
        os.sched_setaffinity(0, {given.cpu})
    asyncio.run(serve(given))


if __name__ == "__main__":
    main()
