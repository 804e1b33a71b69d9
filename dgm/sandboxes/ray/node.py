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
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import dgm
from dgm.domain import Snapshot
from dgm.errors import AgentFault, DgmError, Infrastructure, UserError
from dgm.paths import asset
from dgm.protocols import Completed, Mount, Sandbox, SandboxEngine, SandboxSpec, SharedSocket
from dgm.sandboxes.choose import choose
from dgm.sandboxes.engine_address import ENGINE
from dgm.sandboxes.ray.connection import HeadAddress, NodeForwarder
from dgm.sandboxes.ray.images import HasImages, Step
from dgm.sandboxes.ray.reaper import start_reaper
from dgm.sandboxes.ray_address import is_ray_address
from dgm.sandboxes.threads import allow_threads

ACTOR, NODE = "dgm.actor", "dgm.node"
"""Labels of a sandbox: the actor that opened it, and the id of its node."""
_UNUSED_FOLDERS = 16
"""Maximum number of constant folders that are kept for further sandboxes; the longest unused go first."""
_CLOSE_S = 40.0
_THREADS = 64
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node as its actor describes it."""

    build: str
    """Version of dgm on the node, and digest of its code and recipes."""
    engine: str
    """Name of the engine that opens its sandboxes; empty: none can."""
    problem: str
    """Why none can; empty if one can."""
    has_images: bool
    """True if sandboxes can be opened from images of tasks."""


@dataclass(frozen=True, slots=True)
class ShownFolder:
    """A folder that a sandbox shows."""

    key: str
    """Its name on the node: the same for the same constant contents, else of this sandbox alone."""
    target: str
    """Absolute folder in the sandbox."""
    name: str
    """Name of its contents, if they never change; else empty."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """All that a node needs to open a sandbox."""

    spec: SandboxSpec
    """Without mounts and without a socket."""
    folders: Sequence[ShownFolder] = ()
    image_steps: Sequence[Step] = ()
    head: HeadAddress | None = None
    """The way to the head's socket; None: the sandbox has no socket."""
    socket: str = ""
    """Path of the socket in the sandbox."""


class Failure(NamedTuple):
    """An error of dgm as a value: as an exception it would arrive as one of Ray's."""

    kind: type[DgmError]
    arguments: tuple[Any, ...]


def _answers(
    method: Callable[Concatenate[S, P], Awaitable[T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T | Failure]]:
    """Make a method return what dgm raises on purpose."""

    @functools.wraps(method)
    async def answer(self: S, /, *args: P.args, **named: P.kwargs) -> T | Failure:
        try:
            return await method(self, *args, **named)
        except AgentFault as error:
            return Failure(AgentFault, (error.stage, str(error), error.output))
        except DgmError as error:
            return Failure(UserError if isinstance(error, UserError) else Infrastructure, (str(error),))

    return answer


@dataclass(slots=True)
class _Opened:
    """One sandbox; its task opens it, waits for ``over``, and closes it."""

    ready: "asyncio.Future[Sandbox]"
    over: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    cut: "asyncio.Future[str] | None" = None
    """Done when the way to the head was cut."""
    running: "set[asyncio.Future[Completed]]" = field(default_factory=set)


class Node:
    """The actor of one node. Every method returns a ``Failure`` instead of raising an error of dgm."""

    def __init__(self) -> None:
        self._ident = secrets.token_hex(8)
        self._engine: SandboxEngine | None = None
        self._problem = ""
        self._folder = Path()
        self._reaper: IO[bytes] | None = None
        self._opened: dict[str, _Opened] = {}
        self._folders: dict[str, int] = {}
        """Key of a folder → number of sandboxes that show it; the one used last is the last."""
        self._starting, self._storing = asyncio.Lock(), asyncio.Lock()
        self._making: dict[str, asyncio.Lock] = {}

    @_answers
    async def start(self, node_engine: str) -> NodeFacts:
        """Choose the engine, the first time; return what there is."""
        async with self._starting:
            if self._engine is None:
                await self._start(node_engine)
        name = self._engine.name if self._engine else ""
        has_images = isinstance(self._engine, HasImages)
        return NodeFacts(describe_build(), name, self._problem, has_images)

    @_answers
    async def list_missing(self, keys: Sequence[str]) -> list[str]:
        """Return the keys of the folders that have to be sent."""
        return [key for key in keys if key not in self._folders]

    @_answers
    async def store_folder(self, key: str, stream: bytes) -> None:
        """Keep a folder that sandboxes show, from its tar stream."""
        async with self._storing:
            if key not in self._folders:
                await asyncio.to_thread(_unpack, stream, self._folder / key)
                self._folders[key] = 0

    @_answers
    async def open(self, sandbox: str, node: str, request: OpenRequest) -> None:
        """Open a sandbox.

        Raises:
            UserError: its image cannot be had here.
            Infrastructure: the engine failed.
        """
        opened = self._opened[sandbox] = _Opened(asyncio.get_running_loop().create_future())
        opened.task = asyncio.create_task(
            self._hold(sandbox, node, request, opened), name="sandbox of a node"
        )
        await opened.ready

    @_answers
    async def exec(self, sandbox: str, argv: Sequence[str], options: Mapping[str, Any]) -> Completed:
        """Run a command, with the options of ``Sandbox.exec``.

        Raises:
            Infrastructure: the sandbox failed, or its way to the head was cut: then nothing that it did counts.
        """
        opened = self._find(sandbox)
        running = asyncio.ensure_future(opened.ready.result().exec(argv, **options))
        opened.running.add(running)
        try:
            ends: list[asyncio.Future[Any]] = [running, *([opened.cut] if opened.cut else [])]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if opened.cut and opened.cut.done():
                raise Infrastructure(opened.cut.result())
            return running.result()
        finally:
            opened.running.discard(running)
            await _stop(running)

    @_answers
    async def put(self, sandbox: str, files: Snapshot, target: str) -> None:
        """Write files."""
        await self._find(sandbox).ready.result().put(files, target)

    @_answers
    async def get(self, sandbox: str, source: str, limit_bytes: int, exclude: Sequence[str]) -> Snapshot:
        """Return a folder."""
        found = self._find(sandbox).ready.result()
        return dict(await found.get(source, limit_bytes=limit_bytes, exclude=exclude))

    @_answers
    async def halt(self, sandbox: str) -> None:
        """End all programs."""
        await self._find(sandbox).ready.result().halt()

    @_answers
    async def close(self, sandbox: str) -> None:
        """Remove a sandbox, whatever its state."""
        opened = self._opened.pop(sandbox, None)
        if opened is None or opened.task is None:
            return
        for running in list(opened.running):
            await _stop(running)
        opened.over.set()
        if not opened.ready.done():
            opened.task.cancel()
        # An engine that is busy goes on with it; what it leaves after all is the reaper's.
        done, _ = await asyncio.wait([opened.task], timeout=_CLOSE_S)
        for task in done:
            if not task.cancelled():
                task.result()

    @_answers
    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove the sandboxes of this machine that carry all of ``labels``; return their number."""
        return await self._chosen.reap(labels)

    @property
    def _chosen(self) -> SandboxEngine:
        if self._engine is None:
            raise Infrastructure(self._problem or "the node was not started")
        return self._engine

    async def _start(self, node_engine: str) -> None:
        allow_threads(_THREADS)
        try:
            self._engine = await asyncio.to_thread(open_node_engine, node_engine)
        except DgmError as error:
            self._problem = str(error)
            return
        self._problem = ""
        self._folder = Path(tempfile.mkdtemp(prefix="dgm-node-"))
        self._folder.chmod(0o711)
        self._reaper = start_reaper(node_engine, {ACTOR: self._ident}, self._folder)

    def _find(self, sandbox: str) -> _Opened:
        opened = self._opened.get(sandbox)
        if opened is None or not opened.ready.done():
            raise Infrastructure("the sandbox is closed")
        return opened

    async def _hold(self, sandbox: str, node: str, request: OpenRequest, opened: _Opened) -> None:
        """Open a sandbox, and close it when it is over."""
        try:
            await self._make_image(request)
            async with contextlib.AsyncExitStack() as stack:
                mounts = [await stack.enter_async_context(self._show(folder)) for folder in request.folders]
                shared = None
                if request.head is not None:
                    place = self._folder / f"socket-{sandbox}"
                    place.mkdir()
                    place.chmod(0o711)
                    stack.callback(shutil.rmtree, place, ignore_errors=True)
                    path = place / Path(request.socket).name
                    forwarder = await stack.enter_async_context(NodeForwarder(request.head, path))
                    opened.cut, shared = forwarder.cut, SharedSocket(path, request.socket)
                labels = {**request.spec.labels, ACTOR: self._ident, NODE: node}
                spec = replace(request.spec, labels=labels, mounts=mounts, socket=shared)
                opened.ready.set_result(await stack.enter_async_context(self._chosen.open(spec)))
                await opened.over.wait()
        except Exception as error:
            if opened.ready.done():
                raise
            opened.ready.set_exception(error)
        finally:
            opened.ready.cancel()  # of no effect where there is a result

    async def _make_image(self, request: OpenRequest) -> None:
        """Make the image of a task, once for all sandboxes that wait for it."""
        if not request.image_steps:
            return
        engine = self._chosen
        if not isinstance(engine, HasImages):
            raise Infrastructure(f"{engine.name} has no images: start Docker on the node")
        store = engine.task_images
        async with self._making.setdefault(request.spec.image, asyncio.Lock()):
            for step in request.image_steps:
                await asyncio.to_thread(step, store)

    @contextlib.asynccontextmanager
    async def _show(self, folder: ShownFolder) -> AsyncIterator[Mount]:
        """Hold a folder that was sent before."""
        if folder.key not in self._folders:
            raise Infrastructure("a folder that a sandbox shows is gone from the node")
        self._folders[folder.key] += 1
        try:
            yield Mount(self._folder / folder.key, folder.target, folder.name)
        finally:
            self._folders[folder.key] = self._folders.pop(folder.key) - 1  # now the last
            unused = [key for key, users in self._folders.items() if not users]
            for key in unused[:-_UNUSED_FOLDERS] if folder.name else [folder.key]:
                del self._folders[key]
                await asyncio.to_thread(shutil.rmtree, self._folder / key, ignore_errors=True)


def open_node_engine(name: str) -> SandboxEngine:
    """Return the engine of this node.

    Raises:
        UserError: it is not available here.
    """
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
