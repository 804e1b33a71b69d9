"""A node's side: opens sandboxes with the node's own engine. One actor of Ray runs it on each node.

It ends with the head's process, or with its node. What it leaves then is removed by its ``reaper``.
"""

import asyncio
import contextlib
import functools
import hashlib
import io
import os
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import dgm
from dgm.errors import Infrastructure
from dgm.paths import asset
from dgm.processes import StandstillWatch
from dgm.protocols import Mount, Sandbox, SandboxEngine, SandboxSpec, SharedSocket
from dgm.sandboxes.choose import choose
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import ENGINE, is_ray_address
from dgm.sandboxes.image_store import Step
from dgm.sandboxes.ray.connection import HeadAddress, NodeForwarder
from dgm.sandboxes.ray.reaper import start_reaper
from dgm.sandboxes.threads import allow_threads

ACTOR, NODE = "dgm.actor", "dgm.node"
"""Labels of a sandbox: the actor that opened it, and the id of its node."""
UNUSED_FOLDERS = 16
"""Maximum number of constant folders that are kept for further sandboxes; the longest unused go first."""
_CLOSE_S = 40.0
_THREADS = 64
T = TypeVar("T")


class ShownFolder(NamedTuple):
    """A folder that a sandbox shows."""

    key: str
    """Its name on the node: the same for the same constant contents, else of this sandbox alone."""
    target: str
    """Absolute folder in the sandbox."""
    digest: str
    """That of its ``Mount``; empty unless the contents are constant."""
    data: Any
    """Its tar stream, or what Ray has in place of it."""


class OpenRequest(NamedTuple):
    """All that a node needs to open a sandbox."""

    spec: SandboxSpec
    """Without mounts and without a socket."""
    folders: Sequence[ShownFolder]
    image_steps: Sequence[Step]
    head: HeadAddress | None = None
    """Where the socket leads; None: there is none."""
    socket: str = ""
    """Its path in the sandbox."""


@dataclass(slots=True)
class _Opened:
    """One sandbox; its task opens it, and closes it when it is cancelled."""

    ready: "asyncio.Future[Sandbox]"
    task: "asyncio.Task[None] | None" = None
    cut: "asyncio.Future[str] | None" = None
    """Done when the way to the head was cut."""
    running: "set[asyncio.Future[Any]]" = field(default_factory=set)


class Node:
    """The actor of one node; what it raises is pickled."""

    def __init__(self, start_reaper: Callable[..., IO[bytes]] = start_reaper) -> None:
        self._start_reaper = start_reaper
        self._ident = secrets.token_hex(8)
        self._engine: SandboxEngine | None = None
        self._folder = Path()
        self._reaper: IO[bytes] | None = None
        self._opened: dict[str, _Opened] = {}
        self._folders: dict[str, int] = {}
        """Key of a folder → number of sandboxes that show it; the one used last is the last."""
        self._starting, self._unpacking = asyncio.Lock(), asyncio.Lock()
        self._making: dict[str, asyncio.Lock] = {}
        self._watch = StandstillWatch()

    async def start(self, node_engine: str, build: str) -> str:
        """Choose the engine, the first time, and return its name; raise if there is none, or dgm is not the head's."""
        if build != describe_build():
            raise Infrastructure(
                f"has another dgm ({describe_build()}; the head has {build}), and its verdicts would not compare: "
                "install the same one there, then 'ray stop' and 'ray start' it"
            )
        async with self._starting:
            if self._engine is None:
                engine = await asyncio.to_thread(open_node_engine, node_engine)
                allow_threads(_THREADS)
                await self._watch.__aenter__()  # it ends with the process
                self._folder = Path(tempfile.mkdtemp(prefix="dgm-node-"))
                self._folder.chmod(0o711)
                self._reaper = self._start_reaper(node_engine, {ACTOR: self._ident}, self._folder)
                self._engine = engine
        return self._engine.name

    async def open(self, sandbox: str, node: str, request: OpenRequest) -> None:
        """Open a sandbox; raise as the engine."""
        opened = self._opened[sandbox] = _Opened(asyncio.get_running_loop().create_future())
        opened.task = asyncio.create_task(self._hold(node, request, opened), name="sandbox of a node")
        await opened.ready

    async def use(self, sandbox: str, work: Callable[[Sandbox], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a method of a sandbox, and raise as the method.

        Raises:
            Infrastructure: the way to the head was cut, or the node stood still; what programs did meanwhile is void.
        """
        opened = self._opened.get(sandbox)
        if opened is None:
            raise Infrastructure("the sandbox is closed")
        began = self._watch.beat()
        running = asyncio.ensure_future(work(opened.ready.result()))
        opened.running.add(running)
        try:
            ends: list[asyncio.Future[Any]] = [running, *([opened.cut] if opened.cut else [])]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if opened.cut and opened.cut.done():
                raise Infrastructure(opened.cut.result())
            if standstill := self._watch.find_standstill(began):
                raise standstill
            return running.result()
        finally:
            opened.running.discard(running)
            await _stop(running)

    async def close(self, sandbox: str) -> None:
        """Remove a sandbox, whatever its state."""
        opened = self._opened.pop(sandbox, None)
        if opened is None or opened.task is None:
            return
        for running in list(opened.running):
            await _stop(running)
        opened.task.cancel()
        # An engine that is busy goes on with it; what it leaves after all is the reaper's.
        done, _ = await asyncio.wait([opened.task], timeout=_CLOSE_S)
        for task in done:
            if not task.cancelled():
                task.result()

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove the sandboxes of this machine that carry all of ``labels``; return their number."""
        assert self._engine is not None
        return await self._engine.reap(labels)

    async def _hold(self, node: str, request: OpenRequest, opened: _Opened) -> None:
        """Open a sandbox, and close it when this is cancelled."""
        assert self._engine is not None
        try:
            await self._make_image(request)
            async with contextlib.AsyncExitStack() as stack:
                mounts = [await stack.enter_async_context(self._show(folder)) for folder in request.folders]
                shared = None
                if request.head is not None:
                    place = Path(tempfile.mkdtemp(dir=self._folder))
                    place.chmod(0o711)
                    stack.callback(shutil.rmtree, place, ignore_errors=True)
                    shared = SharedSocket(place / Path(request.socket).name, request.socket)
                    forwarder = NodeForwarder(request.head, shared.source)
                    opened.cut = (await stack.enter_async_context(forwarder)).cut
                labels = {**request.spec.labels, ACTOR: self._ident, NODE: node}
                spec = replace(request.spec, labels=labels, mounts=mounts, socket=shared)
                opened.ready.set_result(await stack.enter_async_context(self._engine.open(spec)))
                await asyncio.Event().wait()  # for the end of this task
        except Exception as error:
            if opened.ready.done():
                raise
            opened.ready.set_exception(error)
        finally:
            opened.ready.cancel()  # of no effect where there is a result

    async def _make_image(self, request: OpenRequest) -> None:
        """Make the image of a task, once for all sandboxes that wait for it."""
        async with self._making.setdefault(request.spec.image, asyncio.Lock()):
            for step in request.image_steps:
                if not isinstance(self._engine, DockerEngine):
                    raise Infrastructure("images of tasks need one Docker engine on the node")
                await asyncio.to_thread(step, self._engine.task_images)

    @contextlib.asynccontextmanager
    async def _show(self, folder: ShownFolder) -> AsyncIterator[Mount]:
        """Unpack a folder unless it is here, and keep it while the context lasts."""
        async with self._unpacking:
            if folder.key not in self._folders:
                data = folder.data if isinstance(folder.data, bytes) else await folder.data
                await asyncio.to_thread(_unpack, data, self._folder / folder.key)
                self._folders[folder.key] = 0
            self._folders[folder.key] += 1
        try:
            yield Mount(self._folder / folder.key, folder.target, folder.digest)
        finally:
            async with self._unpacking:
                self._folders[folder.key] = self._folders.pop(folder.key) - 1  # now the last
                unused = [key for key, users in self._folders.items() if not users]
                for key in unused[:-UNUSED_FOLDERS] if folder.digest else [folder.key]:
                    del self._folders[key]
                    await asyncio.to_thread(shutil.rmtree, self._folder / key, ignore_errors=True)


def open_node_engine(name: str) -> SandboxEngine:
    """Return the engine of this node; raise as ``choose``."""
    # A node that was started where the variable names the cluster has an engine of its own all the same.
    if is_ray_address(os.environ.get(ENGINE, "")):
        del os.environ[ENGINE]
    return choose(name)


@functools.cache
def describe_build() -> str:
    """Return dgm's version and a digest of its code and recipes: with another one, verdicts would not compare."""
    digest = hashlib.sha256()
    for top, pattern in ((Path(dgm.__file__).parent, "*.py"), (asset("sandboxes"), "*")):
        for path in sorted(top.rglob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(top)}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return f"{dgm.__version__}, build {digest.hexdigest()[:16]}"


def _unpack(stream: bytes, folder: Path) -> None:
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder.parent))
    try:
        with tarfile.open(fileobj=io.BytesIO(stream), encoding="utf-8", errors="surrogateescape") as archive:
            # The head packed it, with modes that let everybody read.
            archive.extractall(draft, filter="fully_trusted")
        draft.chmod(0o755)
        draft.replace(folder)
    except (OSError, tarfile.TarError) as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise Infrastructure(f"a folder for sandboxes cannot be unpacked: {error}") from error


async def _stop(running: "asyncio.Future[Any]") -> None:
    if not running.done():
        running.cancel()
        await asyncio.wait([running])
