"""From a sandbox's socket on a node to a socket of the head: the frames of ``relay`` over one TCP connection.

The node proves that it knows the sandbox's secret without sending it. If the connection ends before the sandbox does,
what programs did while the gateway was out of reach is no result.
"""

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import socket
import threading
from pathlib import Path
from typing import NamedTuple, Self

from dgm.errors import Infrastructure
from dgm.processes import short_address
from dgm.sandboxes import relay_inside
from dgm.sandboxes.relay import Relay
from dgm.sandboxes.threads import make_or_dispose

SECRET_BYTES = PROOF_BYTES = 32
_GREETINGS = 16
"""Maximum number of connections to the head that have not proved to be the node's; further ones are closed."""
_GREETING_S = 20.0
_CONNECT_S = 10.0
_PIECE_BYTES = 1 << 18
_KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""An idle connection whose other end vanished is noticed within 30 s."""

log = logging.getLogger(__name__)


class HeadAddress(NamedTuple):
    """Where and how a node reaches the head for one sandbox."""

    host: str
    port: int
    secret: bytes


def proof_of(secret: bytes, nonce: bytes) -> bytes:
    """Return what proves the possession of a secret."""
    return hmac.digest(secret, b"dgm node\0" + nonce, "sha256")


class _NodeStream:
    """The node's connection as the relay reads and writes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.write = writer.write

    async def read(self) -> bytes:
        return await self._reader.read(_PIECE_BYTES)

    async def drain(self) -> None:
        await self._writer.drain()


class HeadListener:
    """The head's side for one sandbox: a port that leads to a unix socket; open it with ``async with``."""

    def __init__(self, host: str, target: Path) -> None:
        """Lead from ``host``, an address of this machine that the nodes reach, to ``target``."""
        self._target = target
        self._tasks: set[asyncio.Task[None]] = set()
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

    async def __aexit__(self, *_: object) -> None:
        """Take no more connections, and end those that there are."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= _GREETINGS:
            writer.transport.abort()
            return
        self._tasks.add(task)
        try:
            await self._carry(reader, writer)
        except asyncio.CancelledError:
            pass  # asyncio would log the end as an error
        except (OSError, EOFError, Infrastructure) as error:  # the node sees a cut, which is no agent's fault
            log.info("the connection of a node ends: %s", error)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_GREETING_S):
            nonce = secrets.token_bytes(SECRET_BYTES)
            writer.write(nonce)
            proof = await reader.readexactly(PROOF_BYTES)
        if not hmac.compare_digest(proof_of(self.address.secret, nonce), proof):
            log.warning("a connection to the head did not prove to be a node's")
            return
        _keep_alive(writer.get_extra_info("socket"))
        await Relay(_NodeStream(reader, writer), self._target, unreached=writer.transport.abort).carry()


class NodeForwarder:
    """The node's side for one sandbox: a unix socket that leads to the head; open it with ``async with``."""

    def __init__(self, head: HeadAddress, path: Path) -> None:
        self._head, self._path = head, path
        self.cut: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Why the connection was cut; done as soon as it was."""

    async def __aenter__(self) -> Self:
        """Connect and listen; raise ``Infrastructure`` if the head is not reached."""
        try:
            self._far = await make_or_dispose(lambda: _greet(self._head), socket.socket.close)
        except OSError as error:
            host, port, _ = self._head
            raise Infrastructure(f"the node does not reach the head at {host}:{port}: {error}") from error
        with short_address(self._path) as address:
            relay = relay_inside.Relay(address, self._far.fileno(), os.dup(self._far.fileno()))
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._carry, args=(relay, loop), daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all connections."""
        with contextlib.suppress(OSError):
            self._far.shutdown(socket.SHUT_RDWR)
        await asyncio.to_thread(self._thread.join)
        self._far.close()

    def _carry(self, relay: relay_inside.Relay, loop: asyncio.AbstractEventLoop) -> None:
        reason = "the head ended it"
        try:
            relay.run()
        except OSError as error:
            reason = str(error)
        finally:
            relay.close()
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._note_cut, reason)

    def _note_cut(self, reason: str) -> None:
        if not self.cut.done():
            self.cut.set_result(f"the connection between a node and the head was cut: {reason}")


def _greet(head: HeadAddress) -> socket.socket:
    """Connect to the head, and prove to be its node."""
    far = socket.create_connection((head.host, head.port), _CONNECT_S)
    try:
        with far.makefile("rb") as stream:
            nonce = stream.read(SECRET_BYTES)
        far.sendall(proof_of(head.secret, nonce))
        _keep_alive(far)
    except BaseException:
        far.close()
        raise
    return far


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
