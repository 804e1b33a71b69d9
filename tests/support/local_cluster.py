"""A cluster inside this process: nodes with room for some hosts, which can be killed; and an engine without walls."""

import asyncio
import pickle
import time
from contextlib import asynccontextmanager
from dataclasses import replace

from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.protocols import Completed
from dgm.sandboxes.image_store import StoredImage
from dgm.sandboxes.ray.cluster import ClusterNode
from dgm.sandboxes.ray.engine import RayEngine
from dgm.sandboxes.ray.host import SandboxHost
from dgm.sandboxes.ray.keeper import NodeKeeper
from dgm.sandboxes.ray.wire import encode

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
                said, _ = await process.communicate(stdin)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Completed(process.returncode, said[:output_limit], truncated=len(said) > output_limit)

    async def put(self, files, target):
        self.files |= {f"{target}/{path}": entry for path, entry in files.items()}

    async def get(self, source, *, limit_bytes, exclude=()):
        if sum(len(each.data) for each in self.files.values()) > limit_bytes:
            raise AgentFault("size", "too large")
        return {path.removeprefix(f"{source}/"): entry for path, entry in self.files.items()}

    async def halt(self):
        pass


class PlainEngine:
    """Counts what is open by its labels; shared by all nodes, as the engine of one machine is."""

    name = "plain"
    left: list = []  # noqa: RUF012  (what is left after its process died)
    broken_nodes: set = set()  # noqa: RUF012  (nodes whose engine opens nothing)

    @asynccontextmanager
    async def open(self, spec):
        if spec.labels["dgm.node"] in self.broken_nodes:
            raise Infrastructure("the engine is dead")
        self.left.append(dict(spec.labels))
        try:
            yield PlainSandbox(spec)
        finally:
            if dict(spec.labels) in self.left:
                self.left.remove(dict(spec.labels))

    async def reap(self, labels):
        found = [each for each in self.left if all(each.get(key) == labels[key] for key in labels)]
        for each in found:
            self.left.remove(each)
        return len(found)


class _Remote:
    def __init__(self, cluster, node, thing):
        self.cluster, self.node, self.thing, self.gone = cluster, node, thing, asyncio.Event()

    async def call(self, method, *args):
        if method == "where":
            return await self._find_room()
        await self.cluster.wait_for_reach(self.node)
        died = self.cluster.died[self.node]
        if died.is_set() or self.gone.is_set():
            raise Infrastructure(f"{self.node} is lost")
        plain = pickle.loads(pickle.dumps(args))
        answer = asyncio.ensure_future(getattr(self.thing, method)(*plain))
        ends = [asyncio.ensure_future(event.wait()) for event in (died, self.gone)]
        try:
            await asyncio.wait([answer, *ends], return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise Infrastructure(f"{self.node} is lost")
            await self.cluster.wait_for_reach(self.node)
            return pickle.loads(pickle.dumps(answer.result()))
        finally:
            for each in (answer, *ends):
                each.cancel()

    async def _find_room(self):
        while True:
            alive = await self.cluster.nodes()
            for node in [*(each for each in self.cluster.near if each in alive), *alive]:
                if self.cluster.room[node] and node not in self.cluster.avoided:
                    self.cluster.room[node] -= 1
                    self.cluster.started.append(node)
                    self.node = node
                    return encode(node)
            await asyncio.sleep(0.01)

    def kill(self):
        if not self.gone.is_set() and self.node and isinstance(self.thing, SandboxHost):
            self.cluster.room[self.node] += 1
        self.gone.set()


class LocalCluster:
    """Nodes of this process; build it inside an event loop."""

    head_host = "127.0.0.1"

    def __init__(self, **room):
        self.room = dict(room)
        self.died = {node: asyncio.Event() for node in room}
        self.keepers, self.started, self.avoided, self.near = {}, [], (), ()
        self.cpus = 2.0
        self.wishes = []
        self.out_of_reach = set()
        """Nodes that hear nothing and say nothing, and go on."""

    async def nodes(self):
        alive = [node for node in self.room if not self.died[node].is_set()]
        return {node: ClusterNode(node, self.cpus, 4096) for node in alive}

    async def ask_for_room(self, needs, count):
        self.wishes.append((needs.cpus, needs.memory_mb, count))

    def keeper(self, node):
        if node not in self.keepers:
            self.keepers[node] = NodeKeeper(lambda: None)
        return _Remote(self, node, self.keepers[node])

    def start_host(self, needs, avoid, near):
        self.avoided, self.near = tuple(avoid), tuple(near)
        return _Remote(self, "", SandboxHost())

    async def wait_for_reach(self, node):
        while node in self.out_of_reach:
            await asyncio.sleep(0.01)

    def add_node(self, node, room):
        self.died[node] = asyncio.Event()
        self.room[node] = room

    def kill_node(self, node):
        self.died[node].set()

    def close(self):
        for keeper in self.keepers.values():
            keeper.close()


def labelled(spec, run="r1"):
    return replace(spec, labels={"dgm.run": run})


IMAGE_ENGINE = "tests.support.local_cluster:ImageEngine"


class ImageShop:
    """The images of one engine: what is made or pulled is noted, and nothing else happens."""

    def __init__(self, engine):
        self.engine, self.images, self.used = engine, set(engine.everywhere), {}

    def has(self, reference):
        return reference in self.images

    def resolve(self, reference):
        return self.engine.offered.get(reference, "")

    def pull_as(self, reference, digest, name):
        self.engine.log.append(("pull", f"{reference}@{digest}", name))
        self.images.add(name)

    def note_use(self, tag):
        if tag in self.used:
            self.used[tag] = self.used.pop(tag)

    def prepare(self, reference, tag):
        self._make("prepare", reference, tag)

    def build(self, context, tag, *, network):
        if "broken" in context:
            raise UserError("a task's Dockerfile cannot be built")
        self._make("build", context["Dockerfile"].data.decode(), tag)

    def hold(self, image, folder, tag):
        self._make("hold", f"{image}{folder}", tag)

    def check(self, image):
        self.engine.log.append(("check", image))

    def _make(self, how, source, tag):
        if self.engine.broken:
            raise Infrastructure("the Docker engine says: no")
        time.sleep(0.02)
        if tag not in self.images:
            self.engine.log.append((how, source, tag))
        self.images.add(tag)
        self.used[tag] = ""

    def list_images(self):
        return [StoredImage(tag, 0, 0.0) for tag in self.used]

    def disk_bytes(self):
        return len(self.used) * 10**9

    def collect(self, limit_bytes, spared):
        gone = [tag for tag in self.used if tag not in spared][
            : max(0, len(self.used) - limit_bytes // 10**9)
        ]
        for tag in gone:
            del self.used[tag]
            self.images.discard(tag)
        return gone


class ImageEngine(PlainEngine):
    """An engine with images of its own on each node."""

    name = "docker"
    everywhere: set = set()  # noqa: RUF012  (images that every node has)
    offered: dict = {}  # noqa: RUF012  (reference → digest in registries)
    log: list = []  # noqa: RUF012  (what all nodes did)
    broken = False

    def __init__(self):
        self.task_images = ImageShop(self)


def perform_on_cluster(test, scale, **room):
    """Run ``test(cluster, engine)`` with an engine on a cluster of its own; ``room``: sandboxes at once by node."""

    async def go():
        cluster = LocalCluster(**(room or {"a": 3}))
        engine = RayEngine(cluster, scale)
        try:
            await test(cluster, engine)
        finally:
            if engine._session is not None:
                engine._session.keeping.cancel()
                await asyncio.gather(engine._session.keeping, return_exceptions=True)
            cluster.close()

    asyncio.run(asyncio.wait_for(go(), 60))
