"""A cluster inside this process: nodes with room for sandboxes, which can be killed; and an engine without walls."""

import asyncio
import io
import pickle
import shutil
from contextlib import asynccontextmanager, contextmanager

from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Completed
from dgm.sandboxes.ray.cluster import ClusterNode, NodeLost, Room
from dgm.sandboxes.ray.engine import RayEngine
from dgm.sandboxes.ray.node import Node

ENGINE = "tests.support.local_cluster:PlainEngine"
"""Name of the engine without walls, for settings that are not checked."""


class PlainSandbox:
    """Programs run as this user, in no sandbox."""

    def __init__(self, spec):
        self.spec, self.files = spec, {}

    async def exec(self, argv, *, timeout_s, stdin=b"", output_limit=1_000_000, **_):
        if argv[0] == "fault":
            raise AgentFault("processes", "too many", b"so far")
        if argv[0] == "fail":
            raise Infrastructure("the engine could not start a program")
        process = await asyncio.create_subprocess_exec(*argv, stdin=-1, stdout=-1, stderr=-2)
        try:
            async with asyncio.timeout(timeout_s):
                output, _ = await process.communicate(stdin)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Completed(process.returncode, output[:output_limit], truncated=len(output) > output_limit)

    async def put(self, files, target):
        self.files |= {f"{target}/{path}": entry for path, entry in files.items()}

    async def get(self, source, *, limit_bytes, exclude=()):
        if sum(len(entry.data) for entry in self.files.values()) > limit_bytes:
            raise AgentFault("size", "too large")
        return {path.removeprefix(f"{source}/"): entry for path, entry in self.files.items()}

    async def halt(self):
        pass


class PlainEngine:
    """Sandboxes of all nodes by their labels; shared, as the engine of one machine is."""

    name = "plain"
    specs: list = []  # noqa: RUF012  (of open sandboxes)
    broken_nodes: set = set()  # noqa: RUF012  (nodes whose engine opens nothing)
    close_s = 0.0

    @asynccontextmanager
    async def open(self, spec):
        if spec.labels["dgm.node"] in self.broken_nodes:
            raise Infrastructure("the engine is dead")
        self.specs.append(spec)
        try:
            yield PlainSandbox(spec)
        finally:
            await asyncio.sleep(self.close_s)
            if spec in self.specs:
                self.specs.remove(spec)

    async def reap(self, labels):
        found = [spec for spec in self.specs if labels.items() <= dict(spec.labels).items()]
        for spec in found:
            self.specs.remove(spec)
        return len(found)


class _Actor:
    """A ``Node`` that is reached by pickled values, until it or its node dies."""

    def __init__(self, cluster, node):
        self.cluster, self.ident, self.gone = cluster, node, asyncio.Event()
        self.node = Node(lambda *_: io.BytesIO())

    async def call(self, method, *args):
        self.cluster.calls.append((self.ident, method))
        work = asyncio.ensure_future(self._perform(method, pickle.dumps(args)))
        ends = [asyncio.ensure_future(event.wait()) for event in (self.cluster.died[self.ident], self.gone)]
        try:
            await asyncio.wait([work, *ends], return_when=asyncio.FIRST_COMPLETED)
            if any(end.done() for end in ends):
                raise NodeLost(f"{self.ident} is lost")
            return pickle.loads(work.result())
        except Infrastructure as error:
            raise pickle.loads(pickle.dumps(error)) from None
        finally:
            for task in (work, *ends):
                task.cancel()

    async def _perform(self, method, args):
        return pickle.dumps(await getattr(self.node, method)(*pickle.loads(args)))

    def kill(self):
        self.gone.set()


class LocalCluster:
    """Nodes of this process; build it inside an event loop."""

    head_host = "127.0.0.1"

    def __init__(self, **room):
        self.room = dict(room)
        self.died = {node: asyncio.Event() for node in room}
        self.actors, self.calls, self.placed = [], [], []

    async def nodes(self):
        alive = [node for node in self.room if not self.died[node].is_set()]
        return {node: ClusterNode(node, 2.0, 4096) for node in alive}

    async def reserve(self, cpus, memory_mb, avoid, wait_s):
        ends = asyncio.get_running_loop().time() + wait_s
        while True:
            for node in await self.nodes():
                if self.room[node] and node not in avoid:
                    self.room[node] -= 1
                    self.placed.append(node)
                    return Room(node, lambda node=node: self._release(node))
            if asyncio.get_running_loop().time() > ends:
                return None
            await asyncio.sleep(0.01)

    def _release(self, node):
        self.room[node] += 1

    def start_actor(self, node):
        self.actors.append(_Actor(self, node))
        return self.actors[-1]

    def share(self, data):
        return data


@contextmanager
def empty_engine():
    """Begin and end without sandboxes."""
    PlainEngine.specs.clear()
    PlainEngine.broken_nodes.clear()
    yield
    PlainEngine.specs.clear()
    PlainEngine.broken_nodes.clear()


def perform_on_cluster(test, scale, **room):
    """Run ``test(cluster, engine)`` with an engine on a cluster of its own; ``room``: sandboxes at once by node."""

    async def go():
        cluster = LocalCluster(**room)
        try:
            await test(cluster, RayEngine(cluster, scale))
        finally:
            for actor in cluster.actors:
                if actor.node._engine is not None:
                    await actor.node._watch.__aexit__(None, None, None)
                    shutil.rmtree(actor.node._folder)

    asyncio.run(asyncio.wait_for(go(), 60))
