"""The part of a node that serves all its sandboxes: shown folders, the connection to the head, leases of heads.

One runs on each node, and outlives the head's process. Where a head says nothing within its lease, its sandboxes are
removed by their labels.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import dgm
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.protocols import SandboxEngine
from dgm.sandboxes.choose import choose
from dgm.sandboxes.ray.cache import FolderCache
from dgm.sandboxes.ray.forwarder import Forwarder
from dgm.sandboxes.ray.image_plans import ImageDigests, ImagePlan
from dgm.sandboxes.ray.image_shelf import ImageOrder, ImageShelf
from dgm.sandboxes.ray.node_images import ImageEngine, NodeImages
from dgm.sandboxes.ray.wire import (
    DoorKey,
    HeadSession,
    NodeFacts,
    NodeStock,
    Record,
    answers,
    build_digest,
    decode,
    decode_files,
    encode,
)

RUN, SESSION, NODE, SANDBOX = "dgm.run", "dgm.session", "dgm.node", "dgm.opening"
"""Labels of a sandbox on a node."""
IDLE_S = 900.0
"""Seconds without a lease after which a keeper ends itself and its cache."""
_LOOK_EVERY_S = 1.0
_PREFIX = "dgm-node-"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Lease:
    """One head's use of this node."""

    session: HeadSession
    ends_at: float
    runs: set[str] = field(default_factory=set)
    sandboxes: dict[str, Path | None] = field(default_factory=dict)
    """Sandbox → its socket on this node, if it has one."""
    forwarders: dict[bytes, Forwarder] = field(default_factory=dict)
    """Link → the way to it."""


class NodeKeeper:
    """The keeper of one node. Every method answers with a record, errors included."""

    def __init__(
        self,
        end: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        withdraw: Callable[[], None] = lambda: None,
    ) -> None:
        """Keep nothing yet.

        Args:
            end: ends the keeper's process when it was idle for long.
            clock: seconds, of the node itself.
            withdraw: withdraws from the cluster the wish for room of a head that is silent; it blocks.
        """
        self._end = end
        self._withdraw = withdraw
        self._clock = clock
        self._folder = _make_folder()
        self._cache = FolderCache(_make_below(self._folder, "folders"), 0)
        self._unpacking = asyncio.Lock()
        self._leases: dict[str, _Lease] = {}
        self._runs: dict[str, int] = {}
        """Run → highest incarnation that asked for a sandbox of it."""
        self._newest = 0
        self._engines: dict[str, SandboxEngine] = {}
        self._images: dict[str, ImageShelf] = {}
        """Name of an engine → its images of tasks."""
        self._idle_since = clock()
        self._watching: asyncio.Task[None] | None = None

    @answers
    async def describe(self, node_engine: str) -> Record:
        """Return ``NodeFacts``; start no sandbox."""
        name = problem = ""
        try:
            name = (await self._engine(node_engine)).name
        except DgmError as error:
            problem = str(error)
        return encode(
            NodeFacts(
                build=build_digest(),
                version=dgm.__version__,
                engine=name,
                problem=problem,
                newest=self._newest,
                sandboxes=sum(len(lease.sandboxes) for lease in self._leases.values()),
                cache_bytes=self._cache.size_bytes,
                cache_limit=self._cache.limit_bytes,
            )
        )

    @answers
    async def begin(self, record: Record) -> Record:
        """Grant a head a lease.

        Raises:
            Infrastructure: a newer head uses this node for the same run.
        """
        session = decode(record, HeadSession)
        if (before := self._leases.pop(session.ident, None)) is not None:
            await self._let_go(before)  # the head has given up what it had here
            await self._reap({SESSION: session.ident}, session.node_engine)
        self._newest = max(self._newest, session.incarnation)
        self._leases[session.ident] = _Lease(session, self._clock() + session.lease_s)
        self._cache.limit_bytes = max(lease.session.cache_bytes for lease in self._leases.values())
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="leases of a node")
        return encode(session.ident)

    @answers
    async def renew(self, session: str) -> Record:
        """Prolong a head's lease.

        Raises:
            Infrastructure: it is over.
        """
        lease = self._lease(session)
        lease.ends_at = self._clock() + lease.session.lease_s
        return encode(session)

    @answers
    async def admit(self, session: str, sandbox: str, run: str) -> Record:
        """Enter a sandbox that is about to be opened; sandboxes of the same run from older heads are removed.

        Raises:
            Infrastructure: a newer head works on the run.
        """
        lease = self._lease(session)
        mine, known = lease.session.incarnation, self._runs.get(run, 0)
        if run and known > mine:
            raise Infrastructure(
                f"a newer process of dgm works on this run (incarnation {known}, this one is {mine})"
            )
        if run:
            self._runs[run] = mine
            older = [
                each for each in self._leases.values() if run in each.runs and each.session.incarnation < mine
            ]
            lease.runs.add(run)
            for each in older:
                each.runs.discard(run)
                await self._reap({RUN: run, SESSION: each.session.ident}, each.session.node_engine)
        lease.sandboxes[sandbox] = None
        return encode(sandbox)

    @answers
    async def find_folder(self, sandbox: str, digest: str) -> Record:
        """Return the path of a folder, held for a sandbox; empty: it is not here."""
        async with self._unpacking:
            found = self._cache.hold(sandbox, digest)
        return encode(str(found or ""))

    @answers
    async def store_folder(self, sandbox: str, digest: str, stream: bytes) -> Record:
        """Keep a folder, held for a sandbox; return its path."""
        async with self._unpacking:
            return encode(str(await asyncio.to_thread(self._cache.store, sandbox, digest, stream)))

    @answers
    async def list_images(self, node_engine: str, measured: bool) -> Record:
        """Return ``NodeStock``; none if the engine has no images."""
        shelf = await self._shelf(node_engine)
        return encode(await shelf.list(measured=measured) if shelf else NodeStock((), 0))

    @answers
    async def find_image(self, session: str, sandbox: str, plan: Record) -> Record:
        """Return the state of an image, and keep it for a sandbox."""
        lease = self._lease(session)
        shelf = await self._shelf_with_images(lease)
        return encode(await shelf.find(sandbox, decode(plan, ImagePlan), lease.session.registry))

    @answers
    async def resolve_image(self, session: str, plan: Record) -> Record:
        """Return ``ImageDigests`` of what a registry offers."""
        lease = self._lease(session)
        shelf = await self._shelf_with_images(lease)
        return encode(await shelf.resolve(decode(plan, ImagePlan), lease.session.registry))

    @answers
    async def make_image(
        self, session: str, sandbox: str, plan: Record, digests: Record, context: Record | None
    ) -> Record:
        """Make an image, once for all that wait for it.

        Raises:
            UserError: it cannot be made of what it should be made of.
            Infrastructure: the engine failed.
        """
        lease = self._lease(session)
        shelf = await self._shelf_with_images(lease)
        files = None if context is None else decode_files(context)
        made = ImageOrder(decode(plan, ImagePlan), files, decode(digests, ImageDigests))
        await shelf.make(sandbox, made, lease.session.registry, lease.session.images_bytes)
        return encode(made.plan.tag)

    @answers
    async def listen(self, session: str, sandbox: str, record: Record, name: str) -> Record:
        """Return the path of a socket called ``name`` that leads to the head.

        Raises:
            Infrastructure: the head cannot be reached, or the lease is over.
        """
        lease, key = self._lease(session), decode(record, DoorKey)
        known = lease.forwarders.get(key.link)
        if known is None or known.pipe.broken:
            lease.forwarders[key.link] = known = Forwarder(key)
        path = _make_below(self._folder, sandbox) / name
        await known.listen(path)
        lease.sandboxes[sandbox] = path
        return encode(str(path))

    @answers
    async def release(self, session: str, sandbox: str) -> Record:
        """Let go of all that was kept for a sandbox, which is closed."""
        lease = self._leases.get(session)
        if lease is not None:
            path = lease.sandboxes.pop(sandbox, None)
            for forwarder in lease.forwarders.values():
                if path is not None:
                    await forwarder.leave(path)
        for shelf in self._images.values():
            shelf.release(sandbox)
        async with self._unpacking:
            await asyncio.to_thread(self._cache.release, sandbox)
        shutil.rmtree(self._folder / sandbox, ignore_errors=True)
        return encode(sandbox)

    @answers
    async def reap(self, labels: Mapping[str, str], node_engine: str) -> Record:
        """Remove the sandboxes of this machine that carry all of ``labels``; return their number."""
        return encode(await self._reap(labels, node_engine))

    @answers
    async def finish(self, session: str) -> Record:
        """End a head's lease; nothing of it is open any more."""
        lease = self._leases.pop(session, None)
        if lease is not None:
            await self._let_go(lease)
        return encode(session)

    def close(self) -> None:
        """Remove all that is kept on disk."""
        if self._watching is not None:
            self._watching.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _watch(self) -> None:
        """End what belongs to heads that are silent, and this process when there is none for long."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            now = self._clock()
            for ident in [each for each, lease in self._leases.items() if lease.ends_at < now]:
                lease = self._leases.pop(ident)
                log.warning("a head said nothing for %.0f s: its sandboxes end", lease.session.lease_s)
                await self._let_go(lease)
                with contextlib.suppress(DgmError):
                    await self._reap({SESSION: ident}, lease.session.node_engine)
                if lease.session.has_demand:
                    await self._withdraw_demand()
            if self._leases:
                self._idle_since = now
            elif now - self._idle_since > IDLE_S:
                self.close()
                self._end()

    async def _withdraw_demand(self) -> None:
        """Withdraw a silent head's wish for room, unless another head has one."""
        if any(lease.session.has_demand for lease in self._leases.values()):
            return
        try:
            await asyncio.to_thread(self._withdraw)
        except Exception as error:  # noqa: BLE001  (Ray's own; the watch goes on)
            log.warning("a wish for room in the cluster cannot be withdrawn: %s", error)

    async def _let_go(self, lease: _Lease) -> None:
        for forwarder in lease.forwarders.values():
            await forwarder.close()
        async with self._unpacking:
            for shelf in self._images.values():
                for sandbox in lease.sandboxes:
                    shelf.release(sandbox)
            for sandbox in lease.sandboxes:
                self._cache.release(sandbox)
                shutil.rmtree(self._folder / sandbox, ignore_errors=True)

    def _lease(self, session: str) -> _Lease:
        if session not in self._leases:
            raise Infrastructure("the node has no lease of this process of dgm, or it is over")
        return self._leases[session]

    async def _engine(self, name: str) -> SandboxEngine:
        if name not in self._engines:
            self._engines[name] = await asyncio.to_thread(open_node_engine, name)
        return self._engines[name]

    async def _shelf(self, node_engine: str) -> ImageShelf | None:
        engine = await self._engine(node_engine)
        if not isinstance(engine, ImageEngine):
            return None
        return self._images.setdefault(engine.name, ImageShelf(NodeImages(engine)))

    async def _shelf_with_images(self, lease: _Lease) -> ImageShelf:
        found = await self._shelf(lease.session.node_engine)
        if found is None:
            raise Infrastructure("the engine of this node has no images: start Docker there")
        return found

    async def _reap(self, labels: Mapping[str, str], node_engine: str) -> int:
        return await (await self._engine(node_engine)).reap(labels)


def open_node_engine(name: str) -> SandboxEngine:
    """Return the engine of this node.

    Raises:
        Infrastructure: it is not available here; another node may have it.
    """
    from dgm.sandboxes.engine_address import ENGINE
    from dgm.sandboxes.ray_address import is_ray_address

    # A node that was started where the variable names the cluster has its own engine all the same.
    if is_ray_address(os.environ.get(ENGINE, "")):
        del os.environ[ENGINE]
    try:
        return choose(name)
    except UserError as error:
        raise Infrastructure(str(error)) from error


def _make_folder() -> Path:
    """Return a fresh folder for this process, and remove those of dead ones."""
    top = Path(tempfile.gettempdir())
    for left in top.glob(f"{_PREFIX}{os.getuid()}-*"):
        pid = left.name.split("-")[3]
        # Another keeper may remove it at the same time.
        with contextlib.suppress(FileNotFoundError):
            if left.lstat().st_uid == os.getuid() and pid.isdigit() and not _is_alive(int(pid)):
                shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getuid()}-{os.getpid()}-", dir=top))
    folder.chmod(0o711)
    return folder


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _make_below(folder: Path, name: str) -> Path:
    found = folder / name
    found.mkdir(mode=0o711)
    found.chmod(0o711)
    return found
