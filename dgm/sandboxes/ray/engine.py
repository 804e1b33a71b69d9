"""The engine whose sandboxes are on the nodes of a Ray cluster: places them, and forwards what is asked of them."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from dgm.archive.live_nodes import NodeState
from dgm.config import ScaleSettings, Settings
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes import recipes
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.engine_address import find_cluster, find_named_engine
from dgm.sandboxes.ray.cache import pack_for_nodes
from dgm.sandboxes.ray.cluster import Cluster, HostNeeds
from dgm.sandboxes.ray.hosts import Host, HostPool, Wish
from dgm.sandboxes.ray.image_places import ImagePlaces
from dgm.sandboxes.ray.image_plans import DOCKER, ImageDigests, ImagePlans, PlannedImage
from dgm.sandboxes.ray.keeper import NODE, RUN, SANDBOX, SESSION
from dgm.sandboxes.ray.node_counts import NodeCounts
from dgm.sandboxes.ray.node_use import NodeUse
from dgm.sandboxes.ray.remote_sandbox import RemoteSandbox
from dgm.sandboxes.ray.session import ClusterSession
from dgm.sandboxes.ray.waiting import Late, finish, within
from dgm.sandboxes.ray.wire import HostedSpec, decode, encode

_OPEN_S = 1800.0
"""Maximum seconds to open a sandbox: an image may have to be built first."""
_CLOSE_S = 60.0
_TRIES = 8
_LOOK_AGAIN_S = 60.0
"""Seconds of waiting for room after which nodes that were to be avoided are looked at again."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A sandbox on its way to being opened."""

    host: Host
    use: NodeUse
    ident: str


def open_ray(settings: Settings) -> "RayEngine":
    """Return the engine for the cluster that is named, else for the one that this machine is a node of.

    Raises:
        UserError: the package ray is missing, no cluster answers, or a Docker engine is named.
    """
    from dgm.sandboxes.ray.ray_cluster import connect

    address = find_cluster()
    if address is None and (given := find_named_engine()):
        raise UserError(
            f"{given.by}={given.address}: a Docker engine, and the sandbox is ray: write ray or ray://HOST:PORT"
        )
    return RayEngine(connect(address or "auto"), settings.scale)


class RayEngine:
    """An engine that opens sandboxes on the nodes of a cluster.

    Each has a host of its own there, which is used for one sandbox after the other.
    """

    name = "ray"

    def __init__(self, cluster: Cluster, scale: ScaleSettings) -> None:
        self.cluster = cluster
        self.scale = scale
        self._session: ClusterSession | None = None
        self._hosts = HostPool(cluster, grows=scale.demand > 0)
        self._counts = NodeCounts()
        self._plans = ImagePlans(scale)
        self._digests: dict[str, ImageDigests] = {}
        self._images = ImagePlaces(self._digests)
        self._incarnation = 0
        """Number of this process among all that have used the cluster, the same for all its sessions. A process that
        slept while a later one took over keeps its number, and is refused."""

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

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[RemoteSandbox]:
        """Open a fresh sandbox on a node with room, and remove it when the context ends.

        A task's image is made on the node first, if that does not have it; nodes that have it are taken first.

        Raises:
            UserError: there is no such recipe, or nodes have no images of tasks.
            Infrastructure: no node has room in time, or the node failed.
        """
        if spec.runtime:
            raise UserError("agent.toml: image: nodes show no second image; use --sandbox docker")
        planned: PlannedImage | None = None
        if spec.image.startswith(IN_ENGINE):
            planned = self._plans.find(spec.image)
        else:
            recipes.load(spec.image)
        session = await self._begin()
        session.note_use(1)
        try:
            placed = await self._place(session, spec, planned)
            sandbox: RemoteSandbox | None = None
            try:
                node = placed.host.node
                with self._counts.hold_slot(node):
                    if planned is not None:
                        await self._make_image(session, placed, planned)
                    sandbox = await self._open(session, placed, spec)
                    yield sandbox
            finally:
                if sandbox is not None and not sandbox.is_lost:
                    session.note_end(placed.host.node, sandbox.failure)
                sound = sandbox is not None and not sandbox.is_lost
                await finish(self._close(session, placed, sound=sound))
        finally:
            session.note_use(-1)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox of all nodes that carries all of ``labels``; return their number."""
        self._hosts.retire()
        return await (await self._begin()).reap(labels)

    def nodes(self) -> Sequence[NodeState]:
        """Return the state of each node that was used in this process."""
        return self._counts.states(self._session.avoided if self._session is not None else ())

    async def _begin(self) -> ClusterSession:
        """Return the session of this event loop."""
        known = self._session
        if known is None or known.is_over or known.loop is not asyncio.get_running_loop():
            self._session = known = ClusterSession(self.cluster, self.scale, self._incarnation)
            known.counts = self._counts
            self._images = ImagePlaces(self._digests)
        await known.begin()
        self._incarnation = known.incarnation
        return known

    async def _place(
        self, session: ClusterSession, spec: SandboxSpec, planned: PlannedImage | None
    ) -> _Placed:
        """Return a host without a sandbox, on a node that is in use and can have the image."""
        needs = HostNeeds(spec.cpus, spec.memory_mb)
        await session.ask_for_room(needs)
        ends = time.monotonic() + self.scale.wait_s
        tries = 0
        while tries < _TRIES:
            wish, left_s = await self._wish(session, needs, planned), ends - time.monotonic()
            waits_s = min(left_s, _LOOK_AGAIN_S) if wish.avoid else left_s
            try:
                host = await self._hosts.take(session, wish, waits_s)
            except Late:
                if waits_s == left_s:
                    raise
                continue  # nodes that were to be avoided may be fit by now
            tries += 1
            ident = secrets.token_hex(8)
            try:
                use = await session.admit(host.node, ident, spec.labels.get(RUN, ""))
            except BaseException:
                host.remote.kill()
                raise
            if use is not None and (planned is None or use.engine == DOCKER):
                return _Placed(host, use, ident)
            host.remote.kill()
            if use is not None:
                with contextlib.suppress(Infrastructure):
                    await use.ask("release", session.ident, ident)
        said = "; ".join(session.unfit.values()) or "none has Docker"
        raise Infrastructure(f"no node of the cluster is fit: {said}")

    async def _wish(self, session: ClusterSession, needs: HostNeeds, planned: PlannedImage | None) -> Wish:
        """Return the nodes for a sandbox.

        Raises:
            Infrastructure: it needs an image, and no node has Docker.
        """
        if planned is None:
            return Wish(needs, session.avoided)
        if not any(use.engine == DOCKER for use in session.uses.values()):
            await session.enter_new()
        with_docker = {node: use for node, use in session.uses.items() if use.engine == DOCKER}
        if session.uses and not with_docker:
            raise Infrastructure(
                f"no node of the cluster has Docker, which the image {planned.plan.tag} needs: start it there "
                "(dgm doctor --engine ray shows the nodes)"
            )
        await self._images.learn(with_docker)
        tag = planned.plan.tag
        without = [node for node in session.uses if node not in with_docker]
        return Wish(needs, [*session.avoided, *without, *self._images.avoided(tag)], self._images.near(tag))

    async def _make_image(self, session: ClusterSession, placed: _Placed, planned: PlannedImage) -> None:
        node, use = placed.host.node, placed.use
        others = [each for each in session.uses if each not in session.avoided]
        try:
            if await self._images.ensure(node, use, placed.ident, planned, others):
                self._counts.note_image(node)
        except UserError as error:
            raise Infrastructure(f"no image for a task on the node {use.node.name}: {error}") from error
        except Infrastructure as error:
            session.rest(node, f"{use.node.name}: {error}")
            await session.forget_lost()
            raise

    async def _open(self, session: ClusterSession, placed: _Placed, spec: SandboxSpec) -> RemoteSandbox:
        host, use, ident = placed.host, placed.use, placed.ident
        try:
            packed = await asyncio.to_thread(pack_for_nodes, spec.mounts)
            folders = tuple(
                [
                    (await use.show(ident, each), each.target, each.digest if each.constant else "")
                    for each in packed
                ]
            )
            link, socket = None, None
            if spec.socket is not None:
                link = await session.open_link(use, spec.socket.source)
                said = await use.ask(
                    "listen", session.ident, ident, encode(link.key), spec.socket.source.name
                )
                socket = (decode(said, str), spec.socket.target)
            hosted = HostedSpec(
                image=spec.image,
                labels={**spec.labels, SESSION: session.ident, NODE: host.node, SANDBOX: ident},
                folders=folders,
                socket=socket,
                cpus=spec.cpus,
                memory_mb=spec.memory_mb,
                pids=spec.pids,
                disk_mb=spec.disk_mb,
                lifetime_s=spec.lifetime_s,
                filled=dict(spec.filled),
            )
            opening = host.remote.call("open", self.scale.node_engine, encode(hosted))
            decode(await within(_OPEN_S, opening, f"the engine of {use.node.name}"), str)
        except DgmError as error:
            why = f"{use.node.name}: {error}"
            session.rest(host.node, why)
            await session.forget_lost()
            raise Infrastructure(f"no sandbox on the node {why}") from error
        return RemoteSandbox(host.remote, use.node.name, link, lambda: session.confirm(host.node, use))

    async def _close(self, session: ClusterSession, placed: _Placed, *, sound: bool) -> None:
        """Remove a sandbox; keep its host if all went well."""
        host, use = placed.host, placed.use
        try:
            decode(await within(_CLOSE_S, host.remote.call("close"), f"a sandbox on {use.node.name}"), str)
            decode(await use.ask("release", session.ident, placed.ident), str)
        except DgmError:
            sound = False
            with contextlib.suppress(DgmError):
                await session.forget_lost()
        if sound and host.node not in session.avoided:
            self._hosts.give_back(host)
            return
        host.remote.kill()
        if not sound:
            # A container outlives the program that opened it.
            with contextlib.suppress(DgmError):
                await use.ask("reap", {SESSION: session.ident, SANDBOX: placed.ident}, use.node_engine)
                await use.ask("release", session.ident, placed.ident)
