"""Communication with a program in a container over a stream to the engine: input, half-close, output in frames.

The docker library starts such an exchange too, but hands out a blocking socket. This module needs no thread, however
long the program runs.
"""

import asyncio
import contextlib
import json

from dgm.errors import Infrastructure
from dgm.sandboxes.confined import Output
from dgm.sandboxes.engine_connection import EngineConnection

_FRAME_HEADER_BYTES = 8
_STDERR = 2
_STARTED = (101, 200)


async def attach(connection: EngineConnection, path: str, stdin: bytes, output: Output) -> None:
    """Start the prepared exec at ``path``, send its input and read until it closes its output.

    Raises:
        Infrastructure: the engine does not answer, refuses, or hangs up in the middle of a frame.
    """
    reader, writer = await connection.open_streams()
    try:
        await _upgrade(reader, writer, path)
        feeding = asyncio.ensure_future(_feed(writer, stdin))
        try:
            await _listen(reader, output)
        finally:
            feeding.cancel()
            await asyncio.wait([feeding])
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        raise Infrastructure(f"the Docker engine hung up: {error}") from error
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


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


async def _feed(writer: asyncio.StreamWriter, stdin: bytes) -> None:
    # A program need not read its input.
    with contextlib.suppress(ConnectionError):
        writer.write(stdin)
        await writer.drain()
        writer.write_eof()


async def _listen(reader: asyncio.StreamReader, output: Output) -> None:
    while True:
        try:
            header = await reader.readexactly(_FRAME_HEADER_BYTES)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return
        add = output.add_said if header[0] == _STDERR else output.add
        left = int.from_bytes(header[4:], "big")
        while left:
            chunk = await reader.read(left)
            if not chunk:
                raise asyncio.IncompleteReadError(b"", left)
            add(chunk)
            left -= len(chunk)
