"""From a sandbox's socket on a node to a socket of the head: an authenticated TCP connection for each of its own.

The node proves that it knows the sandbox's secret without sending it. Then each side sends blocks with their length;
a block without bytes ends a direction. So a connection that was cut differs from one that ended, and what a program did
while the gateway was out of reach is no result.
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
import socket
import struct
from pathlib import Path
from typing import NamedTuple, Self

from dgm.errors import Infrastructure
from dgm.processes import short_address
from dgm.sandboxes.relay import connect

SECRET_BYTES = PROOF_BYTES = 32
CONNECTIONS = 512
"""Maximum number of connections of one sandbox at once; further ones are closed."""
_GREETING_S = 20.0
_CONNECT_S = _END_S = 10.0
_BLOCK_BYTES = 1 << 16
_LENGTH = struct.Struct("!I")
_KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""An idle connection whose other end vanished is noticed within 30 s."""

log = logging.getLogger(__name__)


class ConnectionCut(Infrastructure):
    """A connection between a node and the head ended before it was over."""


class HeadAddress(NamedTuple):
    """Where and how a node reaches the head for one sandbox."""

    host: str
    port: int
    secret: bytes


def proof_of(secret: bytes, nonce: bytes) -> bytes:
    """Return what proves the possession of a secret."""
    return hmac.digest(secret, b"dgm node\0" + nonce, "sha256")


class _Listener:
    """Accepts connections and serves each in a task; a base of both sides."""

    limit = CONNECTIONS

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aexit__(self, *_: object) -> None:
        """Take no more connections, and end those that there are."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= self.limit:
            writer.transport.abort()
            return
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            pass  # asyncio would log the end as an error
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError


class HeadListener(_Listener):
    """The head's side for one sandbox: a port that leads to a unix socket; open it with ``async with``."""

    limit = 8 * CONNECTIONS
    """The node's limit counts; here connections that are ending count, too."""

    def __init__(self, host: str, target: Path) -> None:
        """Lead from ``host``, an address of this machine that the nodes reach, to ``target``."""
        super().__init__()
        self._target = target
        self.address = HeadAddress(host, 0, secrets.token_bytes(SECRET_BYTES))
        """What the node needs; complete when the context was entered."""

    async def __aenter__(self) -> Self:
        """Listen; raise ``Infrastructure`` if the address is not this machine's."""
        host, secret = self.address.host, self.address.secret
        try:
            self._server = await asyncio.start_server(self._accept, host, 0)
        except OSError as error:
            raise Infrastructure(f"the head cannot listen at {host} for its nodes: {error}") from error
        self.address = HeadAddress(host, self._server.sockets[0].getsockname()[1], secret)
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_GREETING_S):
                nonce = secrets.token_bytes(SECRET_BYTES)
                writer.write(nonce)
                proof = await reader.readexactly(PROOF_BYTES)
            if not hmac.compare_digest(proof_of(self.address.secret, nonce), proof):
                log.warning("a connection to the head did not prove to be a node's")
                return
            _keep_alive(writer)
            near_reader, near_writer = await connect(self._target)
        except (OSError, EOFError) as error:  # the node sees a cut, which is no agent's fault
            log.info("a connection of a node ends: %s", error)
            return
        receiving = asyncio.create_task(_receive(reader, near_writer), name="connection of a node")
        try:
            await _send(near_reader, writer)
        except ConnectionCut as error:
            log.info("%s", error)
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)
            near_writer.transport.abort()
        # What is left unread would reset the connection, and the node might not read its end any more.
        with contextlib.suppress(OSError):
            async with asyncio.timeout(_END_S):
                while await reader.read(_BLOCK_BYTES):
                    pass


class NodeForwarder(_Listener):
    """The node's side for one sandbox: a unix socket that leads to the head; open it with ``async with``."""

    def __init__(self, head: HeadAddress, path: Path) -> None:
        super().__init__()
        self._head, self._path = head, path
        self.cut: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Why a connection was cut; done as soon as one was."""

    async def __aenter__(self) -> Self:
        """Listen."""
        with short_address(self._path) as address:
            self._server = await asyncio.start_unix_server(self._accept, address, limit=_BLOCK_BYTES)
        self._path.chmod(0o666)
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await self._connect()
            sending = asyncio.create_task(_send(reader, far_writer), name="connection to the head")
            try:
                # The gateway ends a connection; until then a cut shows here, too.
                await _receive(far_reader, writer)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                far_writer.transport.abort()
        except ConnectionCut as error:
            if not self.cut.done():
                self.cut.set_result(str(error))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        head = self._head
        try:
            async with asyncio.timeout(_CONNECT_S):
                reader, writer = await asyncio.open_connection(head.host, head.port)
                try:
                    _keep_alive(writer)
                    writer.write(proof_of(head.secret, await reader.readexactly(SECRET_BYTES)))
                except BaseException:
                    writer.transport.abort()
                    raise
        except (OSError, EOFError) as error:
            why = str(error) or type(error).__name__
            raise ConnectionCut(
                f"the node does not reach the head at {head.host}:{head.port}: {why}"
            ) from error
        return reader, writer


async def _send(near: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
    """Send blocks until the near side ends in any way.

    Raises:
        ConnectionCut: the far side is gone.
    """
    data = b"more"
    while data:
        try:
            data = await near.read(_BLOCK_BYTES)
        except OSError:
            data = b""
        try:
            far.write(_LENGTH.pack(len(data)) + data)
            await far.drain()
        except OSError as error:
            raise ConnectionCut(f"the connection between a node and the head was cut: {error}") from error


async def _receive(far: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
    """Write what comes to the near side, until the far side ends or the near side is gone.

    Raises:
        ConnectionCut: the far side is gone; the near side was aborted.
    """
    while True:
        try:
            (length,) = _LENGTH.unpack(await far.readexactly(_LENGTH.size))
            data = await far.readexactly(length)
        except (OSError, EOFError) as error:
            near.transport.abort()
            raise ConnectionCut(f"the connection between a node and the head was cut: {error}") from error
        try:
            if not data:
                near.write_eof()
                return
            near.write(data)
            await near.drain()
        except OSError:
            return


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
