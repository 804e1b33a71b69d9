"""The host's end of a sandbox's relay: frames from inside become connections to a unix socket of the host.

``relay_inside`` is the other end; its docstring has the protocol. Every byte that comes from there may be a hostile
agent's. Frames, connections and their queued bytes are bounded. A connection that breaks a rule is reset alone; bytes
that are no frames end the relay.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from dgm.errors import DgmError, Infrastructure
from dgm.processes import short_address
from dgm.protocols import SharedSocket
from dgm.sandboxes.confined import Output
from dgm.sandboxes.container_programs import ContainerPrograms, Program
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

MEMORY_MB = 16
"""Memory of the program inside, for which no agent is charged."""
ANSWER_S = 60.0
"""Maximum seconds for the answer to a ping, on a machine that may be busy."""
_CONNECT_S = 10.0
"""Maximum seconds for a socket that is being put back."""
_CONNECT_AGAIN_S = 0.1
_BODIES = {OPEN: (0, 0), DATA: (1, CHUNK), END: (0, 0), RESET: (0, 0), CREDIT: (4, 4), PING: (0, 0)}
"""Kinds of frames → minimum and maximum bytes of the body."""
_TASKS_A_STREAM = 4
"""Maximum number of tasks for each connection: two that carry it, and those of reset ones that are ending."""
_START = """
import os, sys
source = b""
while len(source) < int(sys.argv[2]):
    source += os.read(0, int(sys.argv[2]) - len(source)) or sys.exit("no program came")
exec(source)
"""
"""Program that runs the source that comes first on its standard input: no file of it is needed inside."""
_KILLED = 137
_SHOWN = 200

log = logging.getLogger(__name__)


class Frame(NamedTuple):
    """One message about one connection."""

    number: int
    kind: int
    body: bytes


def take_frames(buffer: bytearray) -> Iterator[Frame]:
    """Yield the whole frames at the start of ``buffer``, and remove them from it."""
    while len(buffer) >= HEAD.size:
        number, kind, length = HEAD.unpack_from(buffer)
        minimum, maximum = _BODIES.get(kind, (0, -1))
        if not minimum <= length <= maximum:
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
        self.queued = bytearray()
        """Bytes from inside that are not on their way to the socket."""
        self.sending = 0
        """Bytes from inside that are on their way."""
        self.ended = False
        """Whether no more bytes will come from inside."""
        self.arrived = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class FrameStream(Protocol):
    """The bytes to and from the other end."""

    async def read(self) -> bytes:
        """Return the next bytes; none at the end."""
        ...

    def write(self, data: bytes, /) -> None:
        """Queue bytes."""
        ...

    async def drain(self) -> None:
        """Wait until few bytes are queued."""
        ...


class Relay:
    """Connections to the unix socket ``target``, carried over the program ``inside``, at most ``STREAMS`` at once.

    ``unreached`` is called if nobody listens at the socket.
    """

    def __init__(
        self, inside: FrameStream, target: Path, unreached: Callable[[], None] = lambda: None
    ) -> None:
        self._inside = inside
        self._target = target
        self._unreached = unreached
        self._connections: dict[int, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._pings: dict[int, asyncio.Future[None]] = {}
        self._pinged = 0

    async def carry(self) -> None:
        """Carry until the program inside ends; all connections end with it."""
        buffer = bytearray()
        try:
            while data := await self._inside.read():
                buffer += data
                for frame in take_frames(buffer):
                    self._take(frame)
                # Answers to a flood of frames do not pile up.
                await self._inside.drain()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ping(self) -> None:
        """Wait until the other end answers, for at most ``ANSWER_S`` seconds."""
        self._pinged += 1
        number = self._pinged
        answer = self._pings[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(ANSWER_S):
                self._send(number, PING)
                await self._inside.drain()
                await answer
        except TimeoutError as error:
            raise Infrastructure(f"it did not answer within {ANSWER_S:.0f} s") from error
        finally:
            del self._pings[number]

    def _send(self, number: int, kind: int, body: bytes = b"") -> None:
        self._inside.write(HEAD.pack(number, kind, len(body)) + body)

    def _take(self, frame: Frame) -> None:
        number, kind, body = frame
        connection = self._connections.get(number)
        if kind == PING:
            answer = self._pings.get(number)
            if answer is not None and not answer.done():
                answer.set_result(None)
        elif kind == OPEN:
            self._open(number)
        elif connection is None:
            return  # it was reset, or ended here, before the other end knew
        elif kind == CREDIT:
            connection.credit += int.from_bytes(body, "big")
            connection.credited.set()
            if connection.credit > WINDOW:
                self._reset(number)
        elif kind == RESET:
            self._forget(number)
        elif connection.ended or len(connection.queued) + connection.sending + len(body) > WINDOW:
            self._reset(number)
        else:
            connection.queued += body
            connection.ended = kind == END
            connection.arrived.set()

    def _open(self, number: int) -> None:
        if number in self._connections:
            self._reset(number)
        elif len(self._connections) >= STREAMS or len(self._tasks) >= STREAMS * _TASKS_A_STREAM:
            self._send(number, RESET)
        else:
            connection = self._connections[number] = _Connection()
            connection.task = self._start(self._serve(number, connection))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name="relayed connection")
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.debug("a connection from a sandbox to %s: %s", self._target, error)

    def _reset(self, number: int) -> None:
        self._send(number, RESET)
        self._forget(number)

    def _forget(self, number: int) -> None:
        task = self._connections.pop(number).task
        if task is not None:
            task.cancel()

    async def _serve(self, number: int, connection: _Connection) -> None:
        last = RESET
        try:
            try:
                reader, writer = await connect(self._target)
            except OSError:
                self._unreached()
                raise
            sending = self._start(self._send_out(number, connection, writer))
            try:
                await self._send_inside(number, connection, reader)
                last = END
            finally:
                sending.cancel()
                writer.transport.abort()
        finally:
            if self._connections.get(number) is connection:
                self._send(number, last)
                del self._connections[number]

    async def _send_inside(self, number: int, connection: _Connection, reader: asyncio.StreamReader) -> None:
        """Send the socket's bytes inside until it ends."""
        while True:
            while connection.credit <= 0:
                connection.credited.clear()
                await connection.credited.wait()
            data = await reader.read(min(CHUNK, connection.credit))
            if not data:
                return
            connection.credit -= len(data)
            self._send(number, DATA, data)
            await self._inside.drain()

    async def _send_out(self, number: int, connection: _Connection, writer: asyncio.StreamWriter) -> None:
        """Write the bytes from inside to the socket until they end."""
        passed = 0
        while connection.queued or not connection.ended:
            if not connection.queued:
                connection.arrived.clear()
                await connection.arrived.wait()
                continue
            connection.sending = len(connection.queued)
            writer.write(bytes(connection.queued))
            connection.queued.clear()
            await writer.drain()
            passed += connection.sending
            connection.sending = 0
            if passed >= WINDOW // 4:
                self._send(number, CREDIT, passed.to_bytes(4, "big"))
                passed = 0
        writer.write_eof()


async def connect(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a unix socket, which may be put back at this moment.

    Raises:
        OSError: nobody listens there within ``_CONNECT_S`` seconds.
    """
    deadline = asyncio.get_running_loop().time() + _CONNECT_S
    while True:
        try:
            with short_address(path) as address:
                return await asyncio.open_unix_connection(address, limit=CHUNK)
        except OSError:
            if asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(_CONNECT_AGAIN_S)


class ContainerRelay:
    """A relay whose other end runs in a container."""

    def __init__(self, relay: Relay, output: Output, exit_code: Callable[[], Awaitable[int | None]]) -> None:
        """Begin to carry.

        Args:
            relay: over the program inside.
            output: of that program, with its error messages.
            exit_code: of that program; None while it runs.
        """
        self._relay, self._output, self._exit_code = relay, output, exit_code
        self._carrying = asyncio.create_task(relay.carry(), name="relay")

    async def check(self) -> None:
        """Wait until it answers."""
        answering = asyncio.ensure_future(self._relay.ping())
        try:
            await asyncio.wait([answering, self._carrying], return_when=asyncio.FIRST_COMPLETED)
            if not self._carrying.done():
                await answering
                return
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
        self._carrying.result()
        last = self._output.said.decode("utf-8", "replace").strip().rpartition("\n")[2][-_SHOWN:]
        raise Infrastructure(f"it ended with exit code {await self._find_exit_code()}, saying {last!a}")

    async def was_starved(self, memory_was_short: Callable[[], Awaitable[bool | None]]) -> bool:
        """Return whether the kernel killed it because the sandbox's programs took all memory: their own doing."""
        try:
            await self.check()
        except Infrastructure as error:
            ended = self._carrying.done() and self._carrying.exception() is None
            if ended and await self._find_exit_code() == _KILLED and await memory_was_short():
                return True
            raise Infrastructure(f"the sandbox's relay to the gateway was lost: {error}") from error
        return False

    @contextlib.asynccontextmanager
    async def halting(self, halt: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Call ``halt`` if the relay is lost in the context: programs without the gateway count for nothing."""

        async def wait_and_halt() -> None:
            await asyncio.wait([self._carrying])
            with contextlib.suppress(DgmError):
                await halt()

        waiting = asyncio.create_task(wait_and_halt(), name="end with the relay")
        try:
            yield
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def close(self) -> None:
        """End all connections."""
        self._carrying.cancel()
        await asyncio.gather(self._carrying, return_exceptions=True)

    async def _find_exit_code(self) -> int | None:
        """Return how the program inside ended; the engine may note that late."""
        for _ in range(20):
            if (code := await self._exit_code()) is not None:
                return code
            await asyncio.sleep(0.1)
        return None


@contextlib.asynccontextmanager
async def open_relay(
    programs: ContainerPrograms, user: str, path: str, shared: SharedSocket
) -> AsyncIterator[ContainerRelay]:
    """Start the relay of a shared socket, and end it when the context ends.

    Args:
        programs: of the container.
        user: ``uid:gid`` of the relay; not that of agents, who could kill it.
        path: search path for ``python3``.
        shared: the socket.
    """
    source = files("dgm.sandboxes").joinpath("relay_inside.py").read_bytes()
    argv = ["python3", "-I", "-c", _START, shared.target, str(len(source))]
    output = Output(0)
    async with programs.open(Program(argv, user, {"PATH": path}), output) as (ident, stream):
        stream.write(source)
        relay = ContainerRelay(Relay(stream, shared.source), output, lambda: programs.exit_code(ident))
        try:
            try:
                await relay.check()
            except Infrastructure as error:
                raise Infrastructure(f"no relay to the gateway runs in the sandbox: {error}") from error
            yield relay
        finally:
            await relay.close()
