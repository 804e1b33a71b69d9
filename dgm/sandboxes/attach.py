"""Communication with a program in a container over a stream to the engine: input, half-close, output in frames.

The docker library starts such an exchange too, but hands out a blocking socket. This module needs no thread, however
long the program runs.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator

from dgm.errors import Infrastructure
from dgm.sandboxes.confined import Output
from dgm.sandboxes.engine_connection import EngineConnection

_FRAME_HEADER_BYTES = 8
_STDERR = 2
_STARTED = (101, 200)
_PIECE_BYTES = 1 << 18


async def attach(connection: EngineConnection, path: str, stdin: bytes, output: Output) -> None:
    """Start the prepared exec at ``path``, send its input and read until it closes its output.

    Raises:
        Infrastructure: the engine does not answer, refuses, or hangs up in the middle of a frame.
    """
    async with open_exec(connection, path) as stream:
        feeding = asyncio.ensure_future(stream.feed(stdin))
        try:
            while piece := await stream.read(output):
                output.add(piece)
        finally:
            feeding.cancel()
            await asyncio.wait([feeding])


@contextlib.asynccontextmanager
async def open_exec(connection: EngineConnection, path: str) -> AsyncIterator["ExecStream"]:
    """Start the prepared exec at ``path``; hang up when the context ends.

    Raises:
        Infrastructure: the engine does not answer, or refuses.
    """
    reader, writer = await connection.open_streams()
    try:
        with _convert_hang_up():
            await _upgrade(reader, writer, path)
        yield ExecStream(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


class ExecStream:
    """The standard input and output of one program."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._left = 0

    async def read(self, said: Output) -> bytes:
        """Return the next bytes of the program's output, none at its end; add what it writes to stderr to ``said``.

        Raises:
            Infrastructure: the engine hung up in the middle of a frame.
        """
        with _convert_hang_up():
            while self._left or await self._next_frame(said):
                piece = await self._piece()
                if piece:
                    return piece
        return b""

    def write(self, data: bytes) -> None:
        """Queue bytes of the program's input."""
        self._writer.write(data)

    async def drain(self) -> None:
        """Wait until few bytes of input are queued.

        Raises:
            Infrastructure: the engine hung up.
        """
        with _convert_hang_up():
            await self._writer.drain()

    async def feed(self, stdin: bytes) -> None:
        """Send all of the program's input and end it; a program need not read it."""
        with contextlib.suppress(ConnectionError):
            for at in range(0, len(stdin), _PIECE_BYTES):
                self._writer.write(stdin[at : at + _PIECE_BYTES])
                await self._writer.drain()
            self._writer.write_eof()

    async def _next_frame(self, said: Output) -> bool:
        """Read up to the next bytes of output; return whether there are any."""
        while True:
            try:
                header = await self._reader.readexactly(_FRAME_HEADER_BYTES)
            except asyncio.IncompleteReadError as error:
                if error.partial:
                    raise
                return False
            self._left = int.from_bytes(header[4:], "big")
            if header[0] != _STDERR:
                return True
            while self._left:
                said.add_said(await self._piece())

    async def _piece(self) -> bytes:
        if not self._left:
            return b""
        piece = await self._reader.read(self._left)
        if not piece:
            raise asyncio.IncompleteReadError(b"", self._left)
        self._left -= len(piece)
        return piece


@contextlib.contextmanager
def _convert_hang_up() -> Iterator[None]:
    try:
        yield
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        raise Infrastructure(f"the Docker engine hung up: {error}") from error


async def _upgrade(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
    body = json.dumps({"Detach": False, "Tty": False}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
        f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = int(answer.split(" ", 2)[1])
    if status not in _STARTED:
        said = (await reader.read(2000)).decode("utf-8", "replace").strip()
        raise Infrastructure(f"the Docker engine refused to start a program ({status}): {said}")
