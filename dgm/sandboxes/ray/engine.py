"""The engine whose sandboxes are on the nodes of a Ray cluster: finds a node with room, and forwards what is asked."""

import asyncio
import functools
import hashlib
import logging
import secrets
import threading
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from operator import methodcaller
from typing import Any

from dgm.config import ScaleSettings, Settings
from dgm.domain import Snapshot
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.protocols import BuildError, Completed, Mount, SandboxSpec
from dgm.sandboxes import recipes
from dgm.sandboxes.choose import choose
from dgm.sandboxes.engine_address import RAY, find_cluster, find_named_engine
from dgm.sandboxes.image_store import ImagePlans
from dgm.sandboxes.probes import DiagnosisRow
from dgm.sandboxes.ray.cluster import ClusterNode, NodeActor, NodeLost, RayCluster, connect
from dgm.sandboxes.ray.connection import HeadListener
from dgm.sandboxes.ray.node import OpenRequest, ShownFolder, describe_build
from dgm.sandboxes.threads import complete, finish_work
from dgm.sandboxes.volumes import pack_folders

_START_S = 120.0
_OPEN_S = 1800.0
"""Maximum seconds to open a sandbox: an image may have to be built first."""
_CLOSE_S = 60.0
_FILES_S = 900.0
_SPARE_S = 300.0
"""Seconds beyond a command's own time for a node that is busy."""
_LOOK_AGAIN_S = 60.0
"""Seconds of waiting for room after which it is decided anew which nodes are left alone."""
REST_S, UNREADY_S = 30.0, 300.0
"""Seconds for which a node that failed, or cannot be used, is left alone while others are there."""

log = logging.getLogger(__name__)


def open_ray(settings: Settings) -> "RayEngine":
    """Return the engine for the cluster that is named, else for the one that this machine is a node of.

    Raises:
        UserError: the package ray is missing, no cluster answers, or a Docker engine is named.
    """
    address = find_cluster()
    if address is None and (named := find_named_engine()):
        raise UserError(
            f"{named.by}={named.address}: a Docker engine, and the sandbox is ray: write ray or ray://HOST:PORT"
        )
    return RayEngine(connect(address or "auto"), settings.scale)


class _Node:
    """One node as the head knows it."""

    def __init__(self, ident: str, node: ClusterNode) -> None:
        self.ident, self.name, self.cpus, self.memory_mb = ident, node.name, node.cpus, node.memory_mb
        self.actor: NodeActor | None = None
        self.engine = ""
        """Name of its own engine; empty: not known yet."""
        self.rests_until = 0.0

    def leave_alone(self, why: object, seconds: float = REST_S) -> None:
        """Open no sandbox there for a while."""
        self.rests_until = time.monotonic() + seconds
        log.warning("the node %s failed: %s", self.name, why)

    async def call(self, seconds: float, method: str, *args: object) -> Any:  # noqa: ANN401  (what the method returns)
        """Return what a method of the node's actor returns, and raise what it raises, or ``NodeLost``."""
        actor = self.actor
        if actor is None:
            raise NodeLost(f"the actor of {self.name} is lost")
        try:
            async with asyncio.timeout(seconds):
                return await actor.call(method, *args)
        except TimeoutError as error:
            raise NodeLost(f"{self.name} did not answer within {seconds:.0f} s") from error
        except NodeLost:
            if self.actor is actor:
                self.kill()
            raise

    def kill(self) -> None:
        """End the actor and all its sandboxes; another is started for the next one."""
        actor, self.actor = self.actor, None
        if actor is not None:
            actor.kill()


class RayEngine:
    """An engine that opens sandboxes on the nodes of a cluster."""

    name = "ray"

    def __init__(self, cluster: RayCluster, scale: ScaleSettings) -> None:
        self._cluster, self._scale = cluster, scale
        self._nodes: dict[str, _Node] = {}
        self._plans = ImagePlans(scale.node_engine)

    @property
    def task_images(self) -> ImagePlans:
        """Images that tasks bring or name; nodes make them when a sandbox needs one."""
        return self._plans

    def plan_instance(self, sources: Sequence[str], tag: str) -> None:
        """Note that ``tag`` is made of the first of ``sources`` that a node has or can pull."""
        self._plans.prepare(sources, tag)

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator["RemoteSandbox"]:
        """Open a fresh sandbox on a node with room, and remove it when the context ends.

        Raises:
            UserError: there is no such recipe, or the nodes have no images of tasks.
            Infrastructure: no node has room in time, or the node failed.
        """
        if spec.runtime:
            raise BuildError("agent.toml: image: nodes show no second image; set sandbox to docker")
        steps = self._plans.steps(spec.image)
        if not steps:
            recipes.load(spec.image)
        folders = [await asyncio.to_thread(_pack, self._cluster, mount) for mount in spec.mounts]
        request = OpenRequest(replace(spec, mounts=(), socket=None), folders, steps)
        async with AsyncExitStack() as stack:
            node = await self._place(stack, spec, needs_images=bool(steps))
            if spec.socket is not None:
                listener = HeadListener(self._cluster.head_host, spec.socket.source)
                await stack.enter_async_context(listener)
                request = request._replace(head=listener.address, socket=spec.socket.target)
            ident = secrets.token_hex(8)
            stack.push_async_callback(complete, self._close(node, ident))
            try:
                await node.call(_OPEN_S, "open", ident, node.ident, request)
            except DgmError as error:
                node.leave_alone(error)
                raise Infrastructure(f"no sandbox on the node {node.name}: {error}") from error
            yield RemoteSandbox(node, ident)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox of all nodes that carries all of ``labels``; return their number."""
        return sum(await asyncio.gather(*(self._reap(node, labels) for node in await self.look())))

    async def look(self) -> Sequence[_Node]:
        """Return the live nodes."""
        alive = await self._cluster.nodes()
        return [self._nodes.setdefault(ident, _Node(ident, node)) for ident, node in alive.items()]

    async def _place(self, stack: AsyncExitStack, spec: SandboxSpec, *, needs_images: bool) -> _Node:
        """Return a node that can open a sandbox, whose room is set aside there until ``stack`` ends."""
        ends, failures = time.monotonic() + self._scale.wait_s, 0
        while True:
            nodes = await self.look()
            avoid = _find_avoided(nodes, spec, needs_images=needs_images)
            wait_s = min(max(0.0, ends - time.monotonic()), _LOOK_AGAIN_S)
            room = await self._cluster.reserve(spec.cpus, spec.memory_mb, avoid, wait_s)
            if room is None:
                if wait_s < _LOOK_AGAIN_S:
                    raise Infrastructure(f"no node had room within {self._scale.wait_s:.0f} s (scale.wait_s)")
                continue
            async with AsyncExitStack() as releasing:
                releasing.push_async_callback(finish_work, room.release)
                node = self._nodes.get(room.node)
                if node is None:  # it joined the cluster meanwhile
                    continue
                try:
                    await self.start(node)
                except Infrastructure as error:
                    node.leave_alone(error, UNREADY_S)
                    failures += 1
                    if failures >= len(nodes):
                        raise Infrastructure(f"no node of the cluster can be used: {error}") from error
                    continue
                if not needs_images or node.engine == "docker":
                    stack.push_async_exit(releasing.pop_all())
                    return node

    async def start(self, node: _Node) -> None:
        """Make sure that a node's actor runs and can open sandboxes; raise ``Infrastructure`` if not."""
        if node.actor is None:
            node.actor = self._cluster.start_actor(node.ident)
        try:
            node.engine = await node.call(_START_S, "start", self._scale.node_engine, describe_build())
        except DgmError as error:
            node.kill()
            raise Infrastructure(f"{node.name}: {error}") from error

    async def _close(self, node: _Node, sandbox: str) -> None:
        """Remove a sandbox; where its node does not say that it did, all of the node's end."""
        try:
            if node.actor is not None:
                await node.call(_CLOSE_S, "close", sandbox)
        except NodeLost as error:
            log.warning("%s; what it left is removed there", error)
            node.kill()
        except DgmError as error:
            log.warning("a sandbox on %s did not end well: %s", node.name, error)

    async def _reap(self, node: _Node, labels: Mapping[str, str]) -> int:
        try:
            await self.start(node)
            return int(await node.call(_SPARE_S, "reap", dict(labels)))
        except Infrastructure as error:
            node.leave_alone(f"what is left there cannot be removed: {error}")
            return 0


class RemoteSandbox:
    """The head's side of one sandbox; each method raises ``Infrastructure`` where the node or the way to it failed."""

    def __init__(self, node: _Node, ident: str) -> None:
        self._node, self._ident = node, ident
        self._actor = node.actor

    async def exec(self, argv: Sequence[str], *, timeout_s: float, **options: object) -> Completed:
        """Run a command to its end, or kill all of it; the options are those of ``Sandbox.exec``."""
        work = methodcaller("exec", tuple(argv), timeout_s=timeout_s, **options)
        done: Completed = await self._use(timeout_s + _SPARE_S, work)
        return done

    async def put(self, files: Snapshot, target: str) -> None:
        """Write the files below ``target``."""
        await self._use(_FILES_S, methodcaller("put", dict(files), target))

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> Snapshot:
        """Return the contents of a folder."""
        work = methodcaller("get", source, limit_bytes=limit_bytes, exclude=tuple(exclude))
        files: Snapshot = await self._use(_FILES_S, work)
        return files

    async def halt(self) -> None:
        """End all programs in the sandbox; its files stay."""
        await self._use(_SPARE_S, methodcaller("halt"))

    async def _use(self, seconds: float, work: methodcaller) -> Any:  # noqa: ANN401  (what the method returns)
        if self._node.actor is not self._actor:
            raise NodeLost(f"the sandbox on {self._node.name} is lost")
        try:
            return await self._node.call(seconds, "use", self._ident, work)
        except Infrastructure as error:
            self._node.leave_alone(error)
            raise


async def diagnose_nodes() -> DiagnosisRow:
    """Return the nodes of the cluster that the environment names as a row for ``dgm doctor``; open no sandbox."""
    usual, texts, total = recipes.load("python").spec({}), [], 0
    try:
        engine = choose(RAY)
        assert isinstance(engine, RayEngine)
        for node in await engine.look():
            count = int(min(node.cpus // usual.cpus, node.memory_mb // usual.memory_mb))
            try:
                await engine.start(node)
                texts.append(f"{node.name}: {node.engine}, {count} sandboxes of the recipe python at once")
                total += count
            except Infrastructure as error:
                texts.append(str(error))
    except DgmError as error:
        texts.append(str(error))
    return DiagnosisRow("nodes", total > 0, "; ".join(texts) or "the cluster has none with processors")


def _find_avoided(nodes: Sequence[_Node], spec: SandboxSpec, *, needs_images: bool) -> Collection[str]:
    """Return the nodes on which a sandbox must not be; raise ``Infrastructure`` if there is no other."""
    fit = [node for node in nodes if node.cpus >= spec.cpus and node.memory_mb >= spec.memory_mb]
    fit = [node for node in fit if not needs_images or node.engine in ("", "docker")]
    if not fit:
        docker = ", and Docker," if needs_images else ""
        raise Infrastructure(
            f"no node of the cluster has {spec.cpus:g} processors, {spec.memory_mb} MB{docker} for a sandbox"
        )
    rested = [node for node in fit if node.rests_until <= time.monotonic()]
    return {node.ident for node in nodes if node not in (rested or fit)}


_PACKING = threading.Lock()


def _pack(cluster: RayCluster, mount: Mount) -> ShownFolder:
    if not mount.digest:
        return ShownFolder(secrets.token_hex(16), mount.target, "", pack_folders([mount])[0].stream)
    with _PACKING:
        return _pack_constant(cluster, mount)


@functools.lru_cache(maxsize=8)
def _pack_constant(cluster: RayCluster, mount: Mount) -> ShownFolder:
    """Pack a folder that never changes, once for all sandboxes and nodes."""
    key, data = hashlib.sha256(mount.digest.encode()).hexdigest()[:32], pack_folders([mount])[0].stream
    return ShownFolder(key, mount.target, mount.digest, cluster.share(data))
