"""Programs in one running container: prepare, start, feed, listen and wait, as any of its users.

The docker library opens the connection of a program, by whatever way leads to the engine. No half of it is ever closed:
TLS and ssh cannot do that as sockets do. So a program's input has a length (``docker_sandbox``).
"""

import asyncio
import contextlib
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dgm.errors import Infrastructure
from dgm.sandboxes.confined import Output
from dgm.sandboxes.engine_client import EngineConnection, call_engine
from dgm.sandboxes.threads import complete

CANNOT_START = (125, 126, 128)
"""Exit codes of a program that an engine could not start; programs end with them, too."""
_NOTED_WITHIN_S = 60.0
"""Maximum seconds in which an engine notes how a program ended, after the end of its output."""
_ASKS_AGAIN_S = 0.5
"""Maximum seconds between two questions about a program's end."""
_FRAME_HEADER_BYTES, _STDERR = 8, 2
_PIECE_BYTES = 1 << 18
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Program(NamedTuple):
    """A command, its user (``uid:gid``) and its whole environment beside the image's own."""

    argv: Sequence[str]
    user: str
    environment: Mapping[str, str]


class ContainerPrograms:
    """The programs of the container ``ident``."""

    def __init__(self, connection: EngineConnection, ident: str) -> None:
        self._connection = connection
        self._api = connection.client.api
        self._id = ident

    async def run(self, program: Program, stdin: bytes, output: Output, patience_s: float) -> int | None:
        """Return the exit code, or ``None`` if the program had to be left behind after ``patience_s`` seconds.

        The program's first process has to hold its output open until it ends, and to take no more input than there is.
        """
        try:
            async with asyncio.timeout(patience_s):
                async with self.open(program, output, fed=bool(stdin)) as (ident, stream):
                    feeding = asyncio.ensure_future(_feed(stream, stdin))
                    try:
                        while piece := await stream.read():
                            output.add(piece)
                    finally:
                        feeding.cancel()
                        await asyncio.wait([feeding])
                code = await self._wait(ident)
                if code in CANNOT_START and not (output.kept or output.said):
                    await self._check_started(ident)
                return code
        except TimeoutError:
            return None

    @contextlib.asynccontextmanager
    async def open(
        self, program: Program, output: Output, *, fed: bool = True
    ) -> AsyncIterator[tuple[str, "ExecStream"]]:
        """Start a program, and yield its id and its stream; hang up when the context ends.

        What it writes to stderr is added to the messages of ``output``.
        """

        def start() -> tuple[str, Any]:
            made = self._api.exec_create(
                self._id,
                list(program.argv),
                stdin=fed,
                user=program.user,
                workdir="/",
                environment=dict(program.environment),
            )
            return str(made["Id"]), self._api.exec_start(made["Id"], socket=True)

        starting = call_engine("start a program", start)
        ident, connection = await complete(starting, lambda made: ExecStream(made[1], output).close())
        stream = ExecStream(connection, output)
        try:
            yield ident, stream
        finally:
            stream.close()

    async def exit_code(self, ident: str) -> int | None:
        """Return the exit code of a program; ``None`` while it runs, or while the engine has not noted how it ended."""
        state = await call_engine("ask how a program ended", lambda: self._api.exec_inspect(ident))
        code = state["ExitCode"]
        return None if code is None else int(code)

    async def _check_started(self, ident: str) -> None:
        """Raise if Docker never had a process for a program; Podman does not tell after its end."""
        if not self._connection.facts.is_podman:
            state = await call_engine("ask whether a program began", lambda: self._api.exec_inspect(ident))
            if state["Pid"] == 0:
                raise Infrastructure("the engine did not start a program, and its reason was lost")

    async def _wait(self, ident: str) -> int:
        """Wait for the exit code: a busy engine closes a program's output before it has noted how the program ended."""
        pause_s = 0.01
        ends = time.monotonic() + _NOTED_WITHIN_S
        while (code := await self.exit_code(ident)) is None:
            if time.monotonic() > ends:
                raise Infrastructure("the connection to the engine ended before a program's output did")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _ASKS_AGAIN_S)
        return code


class ExecStream:
    """The input and output of one program, over a connection that the library opened: a socket, or pipes of ssh."""

    def __init__(self, connection: Any, output: Output) -> None:  # noqa: ANN401  (of four types)
        self._output = output
        self._response = connection._response  # noqa: SLF001  (nothing else leads to what the library has read)
        self._loop = asyncio.get_running_loop()
        self._receive: Callable[[], bytes]
        self._send: Callable[[bytes], int]
        if process := getattr(connection, "proc", None):
            source, sink = process.stdout.fileno(), process.stdin.fileno()
            os.set_blocking(source, False)
            os.set_blocking(sink, False)
            self._receive, self._send = (
                lambda: os.read(source, _PIECE_BYTES),
                lambda data: os.write(sink, data),
            )
            self._hang_up = process.terminate
        else:
            near = getattr(connection, "_sock", connection)
            source = sink = near.fileno()
            near.settimeout(0)
            self._receive, self._send = lambda: near.recv(_PIECE_BYTES), near.send
            self._hang_up = near.close
        self._source, self._sink = source, sink
        # The library's reader of the response's head may have read on.
        self._incoming = bytearray()
        with contextlib.suppress(*_NOT_NOW):
            self._incoming += self._response.raw._fp.fp.peek()  # noqa: SLF001
        self._outgoing = bytearray()
        self._sent = asyncio.Event()
        self._failure: OSError | None = None

    async def read(self) -> bytes:
        """Return the next bytes of the program's stdout; none at its end."""
        while header := await self._read_exactly(_FRAME_HEADER_BYTES, may_end=True):
            body = await self._read_exactly(int.from_bytes(header[4:], "big"))
            if header[0] == _STDERR:
                self._output.add_said(body)
            elif body:
                return body
        return b""

    def write(self, data: bytes) -> None:
        """Queue bytes of the program's input."""
        self._outgoing += data
        self._flush()

    async def drain(self) -> None:
        """Wait until few bytes of input are queued."""
        while len(self._outgoing) > _PIECE_BYTES and self._failure is None:
            self._sent.clear()
            await self._sent.wait()
        if self._failure is not None:
            raise Infrastructure(f"the Docker engine hung up: {self._failure}") from self._failure

    def close(self) -> None:
        """Hang up."""
        self._loop.remove_reader(self._source)
        self._loop.remove_writer(self._sink)
        with contextlib.suppress(OSError, ValueError):
            self._response.close()
        self._hang_up()

    async def _read_exactly(self, size: int, *, may_end: bool = False) -> bytes:
        while len(self._incoming) < size:
            try:
                piece = self._receive()
            except _NOT_NOW:
                await self._wait_for_input()
                continue
            except OSError as error:
                raise Infrastructure(f"the Docker engine hung up: {error}") from error
            if not piece:
                if may_end and not self._incoming:
                    return b""
                raise Infrastructure("the Docker engine hung up in the middle of a program's output")
            self._incoming += piece
            await asyncio.sleep(0)  # Let others run, however fast a program writes.
        body = bytes(self._incoming[:size])
        del self._incoming[:size]
        return body

    async def _wait_for_input(self) -> None:
        ready = asyncio.Event()
        self._loop.add_reader(self._source, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(self._source)

    def _flush(self) -> None:
        """Send what can be sent now; come back when the rest can be."""
        try:
            while self._outgoing:
                del self._outgoing[: self._send(bytes(self._outgoing[:_PIECE_BYTES]))]
        except _NOT_NOW:
            self._loop.add_writer(self._sink, self._flush)
            return
        except OSError as error:
            self._failure = error
        finally:
            self._sent.set()
        self._loop.remove_writer(self._sink)


async def _feed(stream: ExecStream, stdin: bytes) -> None:
    """Send all of a program's input, which it need not read."""
    with contextlib.suppress(Infrastructure):
        for at in range(0, len(stdin), _PIECE_BYTES):
            stream.write(stdin[at : at + _PIECE_BYTES])
            await stream.drain()
