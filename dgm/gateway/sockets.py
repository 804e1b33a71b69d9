"""An ASGI server on a unix socket in a folder, in the running event loop; it repairs the socket.

uvicorn does the HTTP; this module keeps it away from signals and logging set-up, which belong to the program.
"""

import asyncio
import contextlib
import logging
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dgm.errors import Infrastructure
from dgm.socket_paths import short_address

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

WATCH_S = 0.2
STOP_S = 2.0
QUEUE = 512
"""Maximum number of connections that wait to be accepted."""
AT_ONCE = 32
"""Maximum number of connections that are accepted at once, before others are served again."""
CONNECTIONS = 256
"""Maximum number of open connections; beyond it, the oldest idle ones are ended. Several times ``AT_ONCE``, so that
what was accepted is read before it could be ended."""
CHUNK_BYTES = 256
SMALL_CHUNKS = 64
"""Maximum number of chunks below ``CHUNK_BYTES`` of one body."""
SANDBOX_GID = 10001
"""The group of agents in a sandbox (``sandboxes/*/sandbox.toml``)."""

log = logging.getLogger(__name__)


class SocketServer:
    """An application on ``folder/name`` while the context lasts.

    A removed socket is made again; connections through the old one are served to their end.
    """

    def __init__(self, app: "Starlette", folder: Path, name: str) -> None:
        self._app = app
        self._folder = folder
        self._path = folder / name
        self._servers: list[tuple[uvicorn.Server, asyncio.Task[None]]] = []
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        open_folder(self._folder)
        await self._listen()
        self._watcher = asyncio.create_task(self._watch(), name="gateway-socket")
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._watcher:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        for server, _task in self._servers:
            server.should_exit = True
        for _server, task in self._servers:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(task, 2 * STOP_S)
        self._path.unlink(missing_ok=True)

    async def _listen(self) -> None:
        server = _make_server(self._app)
        listener = _bind_socket(self._path)
        task = asyncio.create_task(server.serve(sockets=[listener]), name="gateway-http")
        self._servers.append((server, task))
        while not server.started:
            if task.done():
                raise Infrastructure(f"the gateway could not be started at {self._path}")
            await asyncio.sleep(0.005)
        listener.listen(QUEUE)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            if _is_socket(self._path):
                continue
            log.warning("the gateway's socket %s is gone: making it again", self._path)
            try:
                open_folder(self._folder)
                await self._listen()
            except OSError as error:
                log.warning("the gateway's socket could not be made again, next try follows: %s", error)
                continue
            for server, _ in self._servers[:-1]:
                server.should_exit = True
            self._servers = [(server, task) for server, task in self._servers if not task.done()]


def open_folder(folder: Path) -> None:
    """Open the folder and its socket to sandboxes, and to few others.

    When run as root, only the sandboxes' group gets in. An ordinary user cannot give it to that group: there anyone who
    knows the path can connect, and needs a token.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(folder, -1, SANDBOX_GID)
        folder.chmod(0o710)
    else:
        folder.chmod(0o711)


def _bind_socket(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(path) as address:
            listener.bind(address)
    except OSError:
        listener.close()
        raise
    path.chmod(0o666)
    return listener


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _make_server(app: "Starlette") -> "uvicorn.Server":
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Unchopped(h11.Connection):
        """A connection that refuses bodies in tiny chunks: each chunk costs time of the loop."""

        chunks = 0

        def next_event(self) -> Any:  # noqa: ANN401  (h11's own type)
            event = super().next_event()
            if isinstance(event, h11.Request):
                self.chunks = 0
            elif isinstance(event, h11.Data) and event.chunk_start and event.chunk_end:
                self.chunks += 1 if len(event.data) < CHUNK_BYTES else 0
                if self.chunks > SMALL_CHUNKS:
                    raise h11.RemoteProtocolError("the body comes in too many small chunks")
            return event

    class Quiet(uvicorn.Server):
        """A server that leaves signals to the program."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    by_age: dict[H11Protocol, None] = {}

    class Bounded(H11Protocol):
        """A protocol that ends the oldest idle connection where there are too many: an agent may open many."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            self.conn = Unchopped(h11.SERVER)
            super().connection_made(transport)
            if len(by_age) >= CONNECTIONS:
                idle = (one for one in by_age if one.cycle is None or one.cycle.response_complete)
                if oldest := next(idle, None):
                    del by_age[oldest]
                    oldest.shutdown()
            by_age[self] = None

        def connection_lost(self, exc: Exception | None) -> None:
            by_age.pop(self, None)
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                super().send_400_response(msg)
            else:
                self.transport.close()

    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="error",  # Its warnings are about what agents send, with advice that is not for users.
        access_log=False,
        lifespan="off",
        http=Bounded,
        ws="none",
        backlog=AT_ONCE,
        timeout_keep_alive=3600,
        timeout_graceful_shutdown=int(STOP_S),
        server_header=False,
    )
    return Quiet(config)
