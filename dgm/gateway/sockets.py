"""An ASGI server on a unix socket in a folder, in the running event loop.

uvicorn does the HTTP; this module keeps it away from signals and logging set-up, which belong to the program.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dgm.errors import Infrastructure
from dgm.processes import short_address

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

STOP_S = 2.0
QUEUE = 512
"""Maximum number of connections that wait to be accepted."""
AT_ONCE = 32
"""Maximum number of connections that are accepted at once, before others are served again."""
CONNECTIONS = 256
"""Maximum number of open connections; beyond it, the oldest idle ones are ended. Several times ``AT_ONCE``, so that
what was accepted is read before it could be ended."""
CHUNK_BYTES = 256
HEAD_BYTES = 65_536
"""Bytes after which a request whose headers have no end is refused."""
SMALL_CHUNKS = 64
"""Maximum number of chunks below ``CHUNK_BYTES`` of one body."""
SANDBOX_GID = 10001
"""The group of agents in a sandbox (``sandboxes/*/sandbox.toml``)."""


class SocketServer:
    """An application on ``folder/name`` while the context lasts."""

    def __init__(self, app: "Starlette", folder: Path, name: str) -> None:
        self._app = app
        self._path = folder / name

    async def __aenter__(self) -> Self:
        open_folder(self._path.parent)
        self._server = _make_server(self._app)
        listener = _bind_socket(self._path)
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]), name="gateway-http")
        while not self._server.started:
            if self._task.done():
                raise Infrastructure(f"the gateway could not be started at {self._path}")
            await asyncio.sleep(0.005)
        listener.listen(QUEUE)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._server.should_exit = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._task, 2 * STOP_S)
        self._path.unlink(missing_ok=True)


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


def _make_protocol() -> "type[asyncio.Protocol]":  # noqa: C901  (one class)
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    by_age: dict[HttpToolsProtocol, None] = {}

    class Bounded(HttpToolsProtocol):
        """A protocol that bounds what an agent can do: many connections, endless headers, many tiny chunks."""

        small_chunks = chunk_bytes = head_bytes = 0
        in_head = True

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
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

        def data_received(self, data: bytes) -> None:
            if self.in_head and self.head_bytes > HEAD_BYTES:
                self.send_400_response("the headers are too large")
                return
            self.head_bytes += len(data)
            super().data_received(data)

        def on_message_begin(self) -> None:
            self.small_chunks = self.head_bytes = 0
            self.in_head = True
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self.in_head = False
            super().on_headers_complete()

        def on_chunk_header(self) -> None:
            self.chunk_bytes = 0

        def on_body(self, body: bytes) -> None:
            self.chunk_bytes += len(body)
            super().on_body(body)

        def on_chunk_complete(self) -> None:
            self.small_chunks += self.chunk_bytes < CHUNK_BYTES
            if self.small_chunks > SMALL_CHUNKS:
                raise ValueError("the body comes in too many small chunks")

        def send_400_response(self, msg: str) -> None:
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                super().send_400_response(msg)
            else:
                self.transport.close()

    return Bounded


def _make_server(app: "Starlette") -> "uvicorn.Server":
    import uvicorn

    class Quiet(uvicorn.Server):
        """A server that leaves signals to the program."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",  # Its messages are about what agents send, and about answers that are broken off.
        access_log=False,
        lifespan="off",
        http=_make_protocol(),
        ws="none",
        backlog=AT_ONCE,
        timeout_keep_alive=3600,
        timeout_graceful_shutdown=int(STOP_S),
        server_header=False,
    )
    return Quiet(config)
