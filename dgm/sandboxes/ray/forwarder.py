"""A node's way to one socket of the head: sockets for its sandboxes here, one connection there.

The frames and the credit are those of ``dgm.sandboxes.relay``, whose other end is at the head's ``door``. Bytes of
sandboxes pass unread; those that come from the head are trusted, as the head's program is.
"""

import asyncio
import contextlib
import logging
import ssl
from pathlib import Path

from dgm.errors import Infrastructure
from dgm.sandboxes.ray.door import NONCE_BYTES, proof_of
from dgm.sandboxes.ray.resuming import AWAY_S, ResumingPipe
from dgm.sandboxes.ray.wire import DoorKey
from dgm.sandboxes.relay import Frame, take_frames
from dgm.sandboxes.relay_inside import CHUNK, CREDIT, DATA, END, HEAD, OPEN, PING, RESET, WINDOW
from dgm.socket_paths import short_address

_CONNECT_S = 10.0
_AGAIN_S = 0.5
"""Seconds between two tries to reach the head."""

log = logging.getLogger(__name__)


class _Stream:
    """One connection of a sandbox."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.credit = WINDOW
        self.credited = asyncio.Event()
        self.waiting = bytearray()
        """Bytes from the head that are not on their way to the sandbox."""
        self.ended = False
        self.arrived = asyncio.Event()


class Forwarder:
    """All connections of a node's sandboxes to one socket of the head."""

    def __init__(self, key: DoorKey) -> None:
        """Begin to connect to the door that ``key`` names."""
        self._key = key
        self.pipe = ResumingPipe()
        self._streams: dict[int, _Stream] = {}
        self._last = 0
        self._listeners: dict[Path, asyncio.Server] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._said = ""
        self._tasks = [
            asyncio.create_task(work, name="forwarder to the head")
            for work in (self._stay_connected(), self._distribute(), self.pipe.watch())
        ]

    async def listen(self, path: Path) -> None:
        """Take connections at a new socket of this node, for one sandbox.

        Raises:
            Infrastructure: the head cannot be reached.
        """
        try:
            async with asyncio.timeout(AWAY_S / 2):
                await self.pipe.wait_until_connected()
        except TimeoutError as error:
            raise Infrastructure(
                f"the node does not reach the head at {self._key.host}:{self._key.port}: {self._said or 'no answer'}"
            ) from error
        with short_address(path) as address:
            self._listeners[path] = await asyncio.start_unix_server(self._accept, address, limit=CHUNK)
        path.chmod(0o666)

    async def leave(self, path: Path) -> None:
        """Take no more connections at a socket."""
        listener = self._listeners.pop(path, None)
        if listener is not None:
            listener.close()
        path.unlink(missing_ok=True)

    async def close(self) -> None:
        """End everything."""
        for path in list(self._listeners):
            await self.leave(path)
        await self.pipe.close()
        tasks = [*self._tasks, *self._serving]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _stay_connected(self) -> None:
        while not self.pipe.broken:
            try:
                reader, writer = await self._connect()
                try:
                    await self.pipe.carry(reader, writer)
                finally:
                    writer.transport.abort()
            except (OSError, EOFError, TimeoutError) as error:
                self._said = str(error) or type(error).__name__
                log.info("no connection to the head: %s", self._said)
            except Infrastructure as error:
                await self.pipe.break_off(str(error))
            await asyncio.sleep(_AGAIN_S)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        key = self._key
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(
                key.host, key.port, ssl=_context_of(key.certificate)
            )
            try:
                nonce = await reader.readexactly(NONCE_BYTES)
                writer.write(key.link + proof_of(key.token, nonce))
                await writer.drain()
            except BaseException:
                writer.transport.abort()
                raise
        return reader, writer

    async def _distribute(self) -> None:
        """Give each stream what comes for it, until the pipe breaks; then all end."""
        buffer = bytearray()
        try:
            while data := await self.pipe.read():
                buffer += data
                for frame in take_frames(buffer):
                    self._take(frame)
        except Infrastructure as error:
            log.warning("the gateway of the head is lost: %s", error)
        finally:
            for number in list(self._streams):
                self._drop(number)

    def _take(self, frame: Frame) -> None:
        number, kind, body = frame
        one = self._streams.get(number)
        if kind == PING:
            self._send(number, PING)
        elif one is None:
            return  # it ended here before the head knew
        elif kind == CREDIT:
            one.credit += int.from_bytes(body, "big")
            one.credited.set()
        elif kind == RESET:
            self._drop(number)
        elif kind in (DATA, END):
            one.waiting += body
            one.ended = kind == END
            one.arrived.set()

    def _send(self, number: int, kind: int, body: bytes = b"") -> None:
        self.pipe.write(HEAD.pack(number, kind, len(body)) + body)

    def _drop(self, number: int) -> None:
        one = self._streams.pop(number, None)
        if one is not None:
            one.writer.transport.abort()
            one.ended = True
            one.arrived.set()
            one.credited.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._last += 1
        number, one = self._last, _Stream(writer)
        self._streams[number] = one
        self._send(number, OPEN)
        sending = asyncio.create_task(self._send_on(number, one, reader), name="stream to the head")
        try:
            # The head ends a stream with END, after which nothing that the sandbox sends counts.
            await self._return(number, one)
        except OSError:
            self._send(number, RESET)
        except asyncio.CancelledError:
            pass  # the end of the task: what started it would report it as an error
        finally:
            self._serving.discard(task)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            self._streams.pop(number, None)
            with contextlib.suppress(OSError):
                writer.close()

    async def _send_on(self, number: int, one: _Stream, reader: asyncio.StreamReader) -> None:
        """Send what the sandbox writes, as far as there is credit."""
        while self._streams.get(number) is one:
            if one.credit <= 0:
                one.credited.clear()
                await one.credited.wait()
                continue
            try:
                data = await reader.read(min(CHUNK, one.credit))
            except OSError:
                self._send(number, RESET)
                self._drop(number)
                return
            one.credit -= len(data)
            self._send(number, DATA if data else END, data)
            if not data:
                return
            try:
                await self.pipe.drain()
            except Infrastructure:
                self._drop(number)

    async def _return(self, number: int, one: _Stream) -> None:
        """Write what comes from the head to the sandbox."""
        passed = 0
        while one.waiting or not one.ended:
            if not one.waiting:
                one.arrived.clear()
                await one.arrived.wait()
                continue
            count = len(one.waiting)
            one.writer.write(bytes(one.waiting))
            one.waiting.clear()
            await one.writer.drain()
            passed += count
            if passed >= WINDOW // 4:
                self._send(number, CREDIT, passed.to_bytes(4, "big"))
                passed = 0


def _context_of(certificate: str) -> ssl.SSLContext | None:
    """Return the context that takes the head's own certificate and no other; None: no encryption."""
    if not certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The certificate itself came by way of the cluster; whose name it has says nothing more.
    context.check_hostname = False
    context.load_verify_locations(cadata=certificate)
    return context
