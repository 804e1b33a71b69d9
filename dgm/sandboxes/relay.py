"""The host's end of a sandbox's relay: frames from inside become connections to a unix socket of the host.

``relay_inside`` is the other end; its docstring has the protocol. Every byte that comes from there may be a hostile
agent's. Frames, connections and what waits for them are bounded. A connection that breaks a rule is reset alone; bytes
that are no frames end the relay.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from dgm.errors import Infrastructure
from dgm.sandboxes.relay_inside import (
    CHUNK,
    CREDIT,
    DATA,
    END,
    HEAD,
    OPEN,
    PING,
    RESET,
    STREAMS,
    WINDOW,
)
from dgm.socket_paths import short_address

ANSWER_S = 60.0
"""Maximum seconds for the answer to a ping, on a machine that may be busy."""
_CONNECT_S = 10.0
"""Maximum seconds for a socket that is being put back."""
_CONNECT_AGAIN_S = 0.1
_BODIES = {OPEN: (0, 0), DATA: (1, CHUNK), END: (0, 0), RESET: (0, 0), CREDIT: (4, 4), PING: (0, 0)}
"""Kinds of frames → minimum and maximum bytes of the body."""
_TASKS_A_STREAM = 4
"""Maximum number of tasks for each connection: two that carry it, and those of reset ones that are ending."""

log = logging.getLogger(__name__)


class Pipe(Protocol):
    """Bytes in both directions."""

    async def read(self) -> bytes:
        """Return the next bytes; none at the end.

        Raises:
            Infrastructure: it broke.
        """
        ...

    def write(self, data: bytes) -> None:
        """Queue bytes to be sent."""
        ...

    async def drain(self) -> None:
        """Wait until few bytes are queued.

        Raises:
            Infrastructure: it broke.
        """
        ...


class Frame(NamedTuple):
    """One message about one connection."""

    number: int
    kind: int
    body: bytes


def take_frames(buffer: bytearray) -> Iterator[Frame]:
    """Yield the whole frames at the start of ``buffer``, and remove them from it.

    Raises:
        Infrastructure: the bytes are no frames.
    """
    while len(buffer) >= HEAD.size:
        number, kind, length = HEAD.unpack_from(buffer)
        least, most = _BODIES.get(kind, (0, -1))
        if not least <= length <= most:
            raise Infrastructure(f"what came over it is no frame (kind {kind}, {length} bytes)")
        if len(buffer) < HEAD.size + length:
            return
        body = bytes(buffer[HEAD.size : HEAD.size + length])
        del buffer[: HEAD.size + length]
        yield Frame(number, kind, body)


class _Connection:
    """One connection as the host sees it."""

    def __init__(self) -> None:
        self.credit = WINDOW
        self.credited = asyncio.Event()
        self.waiting = bytearray()
        """Bytes from inside that are not on their way to the socket."""
        self.sending = 0
        """Bytes from inside that are on their way."""
        self.ended = False
        """Whether no more bytes will come from inside."""
        self.arrived = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Relay:
    """Connections to the unix socket ``target``, carried over ``pipe``, at most ``streams`` at once."""

    def __init__(self, pipe: Pipe, target: Path, streams: int = STREAMS) -> None:
        self._pipe = pipe
        self._streams = streams
        self._target = target
        self._connections: dict[int, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._pings: dict[int, asyncio.Future[None]] = {}
        self._pinged = 0

    async def carry(self) -> None:
        """Carry until the pipe ends; all connections end with it.

        Raises:
            Infrastructure: it broke, or what came over it is no frame.
        """
        buffer = bytearray()
        try:
            while data := await self._pipe.read():
                buffer += data
                for frame in take_frames(buffer):
                    self._take(frame)
                # Answers to a flood of frames do not pile up.
                await self._pipe.drain()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ping(self) -> None:
        """Wait until the other end answers, for at most ``ANSWER_S`` seconds.

        Raises:
            Infrastructure: it does not, or the pipe broke.
        """
        self._pinged += 1
        number = self._pinged
        answer = self._pings[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(ANSWER_S):
                self._send(number, PING)
                await self._pipe.drain()
                await answer
        except TimeoutError as error:
            raise Infrastructure(f"it did not answer within {ANSWER_S:.0f} s") from error
        finally:
            del self._pings[number]

    def _send(self, number: int, kind: int, body: bytes = b"") -> None:
        self._pipe.write(HEAD.pack(number, kind, len(body)) + body)

    def _take(self, frame: Frame) -> None:
        number, kind, body = frame
        one = self._connections.get(number)
        if kind == PING:
            answer = self._pings.get(number)
            if answer is not None and not answer.done():
                answer.set_result(None)
        elif kind == OPEN:
            self._open(number, one)
        elif one is None:
            return  # it was reset, or ended here, before the other end knew
        elif kind == CREDIT:
            one.credit += int.from_bytes(body, "big")
            one.credited.set()
            if one.credit > WINDOW:
                self._reset(number, one)
        elif kind == RESET:
            self._forget(number, one)
        elif one.ended or len(one.waiting) + one.sending + len(body) > WINDOW:
            self._reset(number, one)
        else:
            one.waiting += body
            one.ended = kind == END
            one.arrived.set()

    def _open(self, number: int, known: _Connection | None) -> None:
        if known is not None:
            self._reset(number, known)
        elif len(self._connections) >= self._streams or len(self._tasks) >= self._streams * _TASKS_A_STREAM:
            self._send(number, RESET)
        else:
            one = self._connections[number] = _Connection()
            one.task = self._start(self._serve(number, one))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name="relayed connection")
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.debug("a connection from a sandbox to %s: %s", self._target, error)

    def _reset(self, number: int, one: _Connection) -> None:
        self._send(number, RESET)
        self._forget(number, one)

    def _forget(self, number: int, one: _Connection) -> None:
        del self._connections[number]
        if one.task is not None:
            one.task.cancel()

    async def _serve(self, number: int, one: _Connection) -> None:
        ended = RESET
        try:
            reader, writer = await connect(self._target)
            sending = self._start(self._pass_on(number, one, writer))
            try:
                await self._return(number, one, reader)
                ended = END
            finally:
                sending.cancel()
                writer.transport.abort()
        finally:
            if self._connections.get(number) is one:
                self._send(number, ended)
                del self._connections[number]

    async def _return(self, number: int, one: _Connection, reader: asyncio.StreamReader) -> None:
        """Send the socket's bytes inside until it ends."""
        while True:
            while one.credit <= 0:
                one.credited.clear()
                await one.credited.wait()
            data = await reader.read(min(CHUNK, one.credit))
            if not data:
                return
            one.credit -= len(data)
            self._send(number, DATA, data)
            await self._pipe.drain()

    async def _pass_on(self, number: int, one: _Connection, writer: asyncio.StreamWriter) -> None:
        """Write the bytes from inside to the socket until they end."""
        passed = 0
        while one.waiting or not one.ended:
            if not one.waiting:
                one.arrived.clear()
                await one.arrived.wait()
                continue
            one.sending = len(one.waiting)
            writer.write(bytes(one.waiting))
            one.waiting.clear()
            await writer.drain()
            passed += one.sending
            one.sending = 0
            if passed >= WINDOW // 4:
                self._send(number, CREDIT, passed.to_bytes(4, "big"))
                passed = 0
        writer.write_eof()


async def connect(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a unix socket, which may be put back at this moment.

    Raises:
        OSError: nobody listens there within ``_CONNECT_S`` seconds.
    """
    ends = asyncio.get_running_loop().time() + _CONNECT_S
    while True:
        try:
            return await _connect_once(path)
        except OSError:
            if asyncio.get_running_loop().time() > ends:
                raise
        await asyncio.sleep(_CONNECT_AGAIN_S)


async def _connect_once(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    with short_address(path) as address:
        return await asyncio.open_unix_connection(address, limit=CHUNK)
