"""The engine whose sandboxes are on the nodes of a Ray cluster: finds a node with room, and forwards what is asked."""

import asyncio
import functools
import hashlib
import logging
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from dgm.config import ScaleSettings, Settings
from dgm.domain import Snapshot
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.protocols import Completed, Mount, SandboxSpec
from dgm.sandboxes import recipes
from dgm.sandboxes.choose import choose
from dgm.sandboxes.engine_address import find_cluster, find_named_engine
from dgm.sandboxes.probes import DiagnosisRow
from dgm.sandboxes.ray.cluster import ClusterNode, NodeActor, NodeLost, RayCluster, connect
from dgm.sandboxes.ray.connection import HeadListener
from dgm.sandboxes.ray.images import ImagePlans
from dgm.sandboxes.ray.node import Failure, NodeFacts, OpenRequest, ShownFolder, describe_build
from dgm.sandboxes.ray_address import NAME
from dgm.sandboxes.shown_folders import pack_folders
from dgm.sandboxes.threads import finish_work

_START_S = 120.0
_OPEN_S = 1800.0
"""Maximum seconds to open a sandbox: an image may have to be built first."""
_CLOSE_S = 60.0
_FILES_S = 900.0
_SPARE_S = 300.0
"""Seconds beyond a command's own time for a node that is busy."""
_LOOK_AGAIN_S = 60.0
"""Seconds of waiting for room after which it is decided anew which nodes are left alone."""
REST_S = 30.0
"""Seconds for which a node that failed is left alone, while others are there."""

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
        self.ident, self.node = ident, node
        self.actor: NodeActor | None = None
        self.facts: NodeFacts | None = None
        self.rests_until = 0.0

    def unfit(self, *, needs_images: bool) -> str:
        """Return why sandboxes of this kind cannot be opened there until dgm is started again; empty if they can."""
        facts = self.facts
        if facts is None:
            return ""
        if facts.build != describe_build():
            return (
                f"{self.node.name} has another dgm ({facts.build}; here is {describe_build()}), and its verdicts would "
                "not compare: install the same one there, then 'ray stop' and 'ray start' it"
            )
        if needs_images and facts.engine and not facts.has_images:
            return f"{self.node.name} has no Docker, which images of tasks need"
        return ""

    def fail(self, why: str) -> None:
        """Leave the node alone for a while."""
        self.rests_until = time.monotonic() + REST_S
        log.warning("the node %s failed: %s", self.node.name, why)

    async def call(self, seconds: float, method: str, *args: object) -> Any:  # noqa: ANN401  (what the method returns)
        """Return what a method of the node's actor returns, and raise what it raises.

        Raises:
            NodeLost: the actor or its node is lost, or does not answer in time.
        """
        assert self.actor is not None
        actor = self.actor
        try:
            async with asyncio.timeout(seconds):
                answer = await actor.call(method, *args)
        except TimeoutError as error:
            raise NodeLost(f"{self.node.name} did not answer within {seconds:.0f} s") from error
        except NodeLost:
            if self.actor is actor:
                self.kill()
            raise
        if isinstance(answer, Failure):
            raise answer.kind(*answer.arguments)
        return answer

    def kill(self) -> None:
        """End the actor, with all its sandboxes; the next one that is opened there starts another."""
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
        """Note that ``tag`` is made of the first of ``sources`` that a node has or can pull.

        Raises:
            UserError: nodes have no images.
        """
        self._plans.prepare(sources, tag)

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator["RemoteSandbox"]:
        """Open a fresh sandbox on a node with room, and remove it when the context ends.

        Raises:
            UserError: there is no such recipe, or the nodes have no images of tasks.
            Infrastructure: no node has room in time, or the node failed.
        """
        if spec.runtime:
            raise UserError("agent.toml: image: nodes show no second image; use --sandbox docker")
        steps = self._plans.steps(spec.image)
        if not steps:
            recipes.load(spec.image)
        async with AsyncExitStack() as stack:
            node = await self._place(stack, spec, needs_images=bool(steps))
            folders = [_shown(mount) for mount in spec.mounts]
            request = OpenRequest(replace(spec, mounts=(), socket=None), folders, steps)
            if spec.socket is not None:
                host, source = self._cluster.head_host, spec.socket.source
                listener = await stack.enter_async_context(HeadListener(host, source))
                request = replace(request, head=listener.address, socket=spec.socket.target)
            ident = secrets.token_hex(8)
            stack.push_async_callback(_finish, self._close(node, ident))
            try:
                await self._send_folders(node, folders, spec.mounts)
                await node.call(_OPEN_S, "open", ident, node.ident, request)
            except DgmError as error:
                node.fail(str(error))
                raise Infrastructure(f"no sandbox on the node {node.node.name}: {error}") from error
            yield RemoteSandbox(node, ident)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox of all nodes that carries all of ``labels``; return their number."""
        nodes = await self._look()
        return sum(await asyncio.gather(*(self._reap(node, labels) for node in nodes)))

    async def diagnose(self) -> DiagnosisRow:
        """Return the nodes as one row for ``dgm doctor``; open no sandbox."""
        usual = recipes.load("python").spec({})
        fit, texts = False, []
        for node in await self._look():
            try:
                await self._start(node)
                problem = node.unfit(needs_images=False)
            except Infrastructure as error:
                problem = str(error)
            places = int(min(node.node.cpus // usual.cpus, node.node.memory_mb // usual.memory_mb))
            fit |= places > 0 and not problem
            engine = node.facts.engine if node.facts else ""
            texts.append(
                problem or f"{node.node.name}: {engine}, {places} sandboxes of the recipe python at once"
            )
        return DiagnosisRow(
            "nodes", ok=fit, detail="; ".join(texts) or "the cluster has no node with processors"
        )

    async def _look(self) -> Sequence[_Node]:
        """Return the live nodes."""
        alive = await self._cluster.nodes()
        for ident, node in alive.items():
            self._nodes.setdefault(ident, _Node(ident, node))
        return [self._nodes[ident] for ident in alive]

    async def _place(self, stack: AsyncExitStack, spec: SandboxSpec, *, needs_images: bool) -> _Node:
        """Return a started node on which the room of a sandbox is set aside until ``stack`` ends."""
        ends = time.monotonic() + self._scale.wait_s
        while True:
            avoid = self._find_avoided(await self._look(), spec, needs_images=needs_images)
            left_s = max(0.0, ends - time.monotonic())
            room = await self._cluster.reserve(spec.cpus, spec.memory_mb, avoid, min(left_s, _LOOK_AGAIN_S))
            if room is None:
                if left_s <= _LOOK_AGAIN_S:
                    raise Infrastructure(
                        f"no node had room for {_needs(spec)} within {self._scale.wait_s:.0f} s (scale.wait_s)"
                    )
                continue
            node = self._nodes.get(room.node)
            if node is None:  # it joined the cluster meanwhile
                await finish_work(room.release)
                continue
            try:
                await self._start(node)
            except BaseException as error:
                await finish_work(room.release)
                if isinstance(error, Infrastructure):
                    node.fail(str(error))
                raise
            if not node.unfit(needs_images=needs_images):
                stack.push_async_callback(finish_work, room.release)
                return node
            await finish_work(room.release)

    def _find_avoided(
        self, nodes: Sequence[_Node], spec: SandboxSpec, *, needs_images: bool
    ) -> Collection[str]:
        """Return the nodes on which this sandbox must not be.

        Raises:
            Infrastructure: there is no other.
        """
        unfit = {node.ident: why for node in nodes if (why := node.unfit(needs_images=needs_images))}
        usable = [node for node in nodes if node.ident not in unfit]
        if not usable:
            why = "; ".join(unfit.values()) or "it has none with processors that is alive"
            raise Infrastructure(f"no node of the cluster can be used: {why}")
        large = [
            node for node in usable if node.node.cpus >= spec.cpus and node.node.memory_mb >= spec.memory_mb
        ]
        if not large:
            raise Infrastructure(f"no node of the cluster has {_needs(spec)}, as a sandbox needs")
        now = time.monotonic()
        resting = {node.ident for node in large if node.rests_until > now}
        return {*unfit, *(resting if len(resting) < len(large) else ())}

    async def _start(self, node: _Node) -> None:
        """Make sure that a node's actor runs and can open sandboxes.

        Raises:
            Infrastructure: it does not.
        """
        if node.actor is None:
            node.actor = self._cluster.start_actor(node.ident)
        node.facts = await node.call(_START_S, "start", self._scale.node_engine)
        if problem := node.unfit(needs_images=False):
            log.warning("%s", problem)
        elif node.facts and node.facts.problem:
            raise Infrastructure(f"{node.node.name} opens no sandboxes: {node.facts.problem}")

    async def _send_folders(
        self, node: _Node, folders: Sequence[ShownFolder], mounts: Sequence[Mount]
    ) -> None:
        missing = await node.call(_FILES_S, "list_missing", [folder.key for folder in folders])
        for folder, mount in zip(folders, mounts, strict=True):
            if folder.key in missing:
                data = await asyncio.to_thread(self._pack, mount)
                await node.call(_FILES_S, "store_folder", folder.key, data)

    def _pack(self, mount: Mount) -> Any:  # noqa: ANN401  (what the cluster shares)
        """Pack a folder; one that never changes is packed and shared once for several nodes."""
        if not mount.digest:
            return pack_folders([mount])[0].stream
        with _PACKING:
            return _share_constant(self._cluster, mount)

    async def _close(self, node: _Node, sandbox: str) -> None:
        """Remove a sandbox; where its node does not say that it did, all of the node's end."""
        try:
            if node.actor is not None:
                await node.call(_CLOSE_S, "close", sandbox)
        except NodeLost as error:
            log.warning("%s; what it left is removed there", error)
            node.kill()
        except DgmError as error:
            log.warning("a sandbox on %s did not end well: %s", node.node.name, error)

    async def _reap(self, node: _Node, labels: Mapping[str, str]) -> int:
        try:
            await self._start(node)
            return int(await node.call(_SPARE_S, "reap", dict(labels)))
        except Infrastructure as error:
            node.fail(f"what is left there cannot be removed: {error}")
            return 0


class RemoteSandbox:
    """The head's side of one sandbox."""

    def __init__(self, node: _Node, ident: str) -> None:
        self._node, self._ident = node, ident
        self._actor = node.actor

    async def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        **options: Any,  # noqa: ANN401  (those of ``Sandbox.exec``)
    ) -> Completed:
        """Run a command to its end, or kill all of it.

        Raises:
            AgentFault: as the node's engine says.
            Infrastructure: the sandbox, its node or the way to the gateway failed.
        """
        options["timeout_s"] = timeout_s
        done: Completed = await self._call(timeout_s + _SPARE_S, "exec", tuple(argv), options)
        return done

    async def put(self, files: Snapshot, target: str) -> None:
        """Write the files below ``target``."""
        await self._call(_FILES_S, "put", dict(files), target)

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> Snapshot:
        """Return the contents of a folder."""
        files: Snapshot = await self._call(_FILES_S, "get", source, limit_bytes, tuple(exclude))
        return files

    async def halt(self) -> None:
        """End all programs in the sandbox; its files stay."""
        await self._call(_SPARE_S, "halt")

    async def _call(self, seconds: float, method: str, *args: object) -> Any:  # noqa: ANN401  (what it returns)
        if self._node.actor is not self._actor:
            raise NodeLost(f"the sandbox on {self._node.node.name} is lost")
        try:
            return await self._node.call(seconds, method, self._ident, *args)
        except Infrastructure as error:
            self._node.fail(str(error))
            raise


async def diagnose_nodes() -> DiagnosisRow:
    """Return the nodes of the cluster that the environment names as a row for ``dgm doctor``."""
    try:
        engine = choose(NAME)
        assert isinstance(engine, RayEngine)
        return await engine.diagnose()
    except DgmError as error:
        return DiagnosisRow("nodes", ok=False, detail=str(error))


_PACKING = threading.Lock()


@functools.lru_cache(maxsize=4)
def _share_constant(cluster: RayCluster, mount: Mount) -> Any:  # noqa: ANN401  (what the cluster shares)
    return cluster.share(pack_folders([mount])[0].stream)


def _shown(mount: Mount) -> ShownFolder:
    key = hashlib.sha256(mount.digest.encode()).hexdigest()[:32] if mount.digest else secrets.token_hex(16)
    return ShownFolder(key, mount.target, mount.digest)


def _needs(spec: SandboxSpec) -> str:
    return f"{spec.cpus:g} processors and {spec.memory_mb} MB"


async def _finish(work: Awaitable[None]) -> None:
    """Finish the work even if the waiter is cancelled; raise the cancellation afterwards."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
