"""A cluster inside one process for ``bench_many_nodes``: real keepers, hosts and forwarders, and sandboxes of 1 ms.

The network between head and nodes loses calls, before or after they are performed; nodes die and others come.
"""

import asyncio
import pickle
import sys
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[2])]

from dgm.errors import Infrastructure  # noqa: E402
from dgm.protocols import Completed, SandboxSpec  # noqa: E402
from dgm.sandboxes.ray.cluster import ClusterNode, HostNeeds  # noqa: E402
from dgm.sandboxes.ray.host import SandboxHost  # noqa: E402
from dgm.sandboxes.ray.keeper import NodeKeeper  # noqa: E402
from dgm.sandboxes.ray.wire import encode  # noqa: E402

ENGINE = "tests.perf.many_nodes_lab:QuickEngine"
COMMAND_S = 0.001


class QuickSandbox:
    """Commands take 1 ms, or ask the model once."""

    def __init__(self, spec: SandboxSpec) -> None:
        self._spec = spec

    async def exec(self, argv, *, timeout_s, stdin=b"", **_):
        if argv[0] != "ask":
            await asyncio.sleep(COMMAND_S)
            return Completed(0, stdin)
        async with asyncio.timeout(timeout_s):
            return Completed(0, await ask_model(self._spec.socket.source, argv[1], stdin))

    async def put(self, files, target):
        await asyncio.sleep(COMMAND_S)

    async def get(self, source, *, limit_bytes, exclude=()):
        await asyncio.sleep(COMMAND_S)
        return {}

    async def halt(self):
        pass


async def ask_model(socket: Path, token: str, body: bytes) -> bytes:
    """Return the model's answer to one request, by a connection of its own, as agents make them."""
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket))
    except OSError as error:
        raise Infrastructure(f"the socket of the gateway is gone: {error}") from error
    try:
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        said = await reader.readuntil(b"\r\n\r\n")
        if not said.startswith(b"HTTP/1.1 200"):
            raise Infrastructure(f"the gateway says {said[:40]!r}")
        fields = said.lower().split(b"\r\n")
        length = next(int(line.partition(b":")[2]) for line in fields if line.startswith(b"content-length"))
        return await reader.readexactly(length)
    except (OSError, EOFError) as error:
        raise Infrastructure(f"no answer of the gateway: {error}") from error
    finally:
        writer.close()


class QuickEngine:
    """Counts open sandboxes; one for all nodes."""

    name = "quick"
    open_sandboxes: Counter[str] = Counter()  # noqa: RUF012  (of all nodes together)

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[QuickSandbox]:
        await asyncio.sleep(COMMAND_S)
        session = spec.labels["dgm.node"]
        self.open_sandboxes[session] += 1
        try:
            yield QuickSandbox(spec)
        finally:
            self.open_sandboxes[session] -= 1

    async def reap(self, labels):
        return 0


class Faults:
    """What goes wrong between head and nodes."""

    def __init__(self, share: float, seed: int = 0) -> None:
        self.share = share
        self.done: Counter[str] = Counter()
        self._rng = Random(f"faults/{seed}")

    def loses(self, when: str) -> bool:
        """Return whether a call is lost now."""
        lost = self._rng.random() < self.share / 2
        self.done[f"calls lost {when}"] += lost
        return lost


class _Remote:
    def __init__(self, cluster: "ManyNodes", node: str, thing) -> None:
        self._cluster, self.node, self._thing = cluster, node, thing
        self._gone = False

    async def call(self, method: str, *args: object) -> object:
        if method == "where":
            self.node = await self._cluster.find_room()
            return encode(self.node)
        faults = self._cluster.faults if isinstance(self._thing, SandboxHost) else None
        if faults is not None and faults.loses("before"):
            raise Infrastructure("the network lost a call")
        self._check_alive()
        answer = await getattr(self._thing, method)(*pickle.loads(pickle.dumps(args)))
        self._check_alive()
        if faults is not None and faults.loses("after"):
            raise Infrastructure("the network lost an answer")
        return pickle.loads(pickle.dumps(answer))

    def kill(self) -> None:
        if not self._gone and isinstance(self._thing, SandboxHost):
            self._gone = True
            if self.node:
                self._cluster.give_room(self.node)
            # What the process held ends with it.
            self._cluster.closing.add(task := asyncio.ensure_future(self._thing.close()))
            task.add_done_callback(self._cluster.closing.discard)

    def _check_alive(self) -> None:
        if self._gone or self.node not in self._cluster.room:
            raise Infrastructure(f"{self.node} is lost")


class ManyNodes:
    """A cluster whose nodes are objects of this process."""

    head_host = "127.0.0.1"

    def __init__(self, nodes: int, slots: int, faults: Faults) -> None:
        self.faults = faults
        self.slots = slots
        self.room: dict[str, int] = {f"node-{number}": slots for number in range(nodes)}
        self.closing: set[asyncio.Future[object]] = set()
        self._keepers: dict[str, NodeKeeper] = {}
        self._came = nodes
        self._wanted = asyncio.Condition()

    async def nodes(self) -> Mapping[str, ClusterNode]:
        return {node: ClusterNode(node, float(self.slots), self.slots * 4096) for node in self.room}

    def keeper(self, node: str) -> _Remote:
        if node not in self._keepers:
            self._keepers[node] = NodeKeeper(lambda: None)
        return _Remote(self, node, self._keepers[node])

    def start_host(self, needs: HostNeeds, avoid: Collection[str], near: Collection[str] = ()) -> _Remote:
        return _Remote(self, "", SandboxHost())

    async def find_room(self) -> str:
        """Return the node with the most room, and take a place of it."""
        async with self._wanted:
            await self._wanted.wait_for(lambda: any(self.room.values()))
            node = max(self.room, key=self.room.__getitem__)
            self.room[node] -= 1
            return node

    def give_room(self, node: str) -> None:
        if node in self.room:
            self.room[node] += 1
            self.closing.add(task := asyncio.ensure_future(self._tell()))
            task.add_done_callback(self.closing.discard)

    async def _tell(self) -> None:
        async with self._wanted:
            self._wanted.notify()

    def kill_one(self, rng: Random) -> None:
        """Let a node die, and a new one come."""
        node = rng.choice(list(self.room))
        del self.room[node]
        self.room[f"node-{self._came}"] = self.slots
        self._came += 1
        self.faults.done["nodes killed"] += 1

    def close(self) -> None:
        for keeper in self._keepers.values():
            keeper.close()
