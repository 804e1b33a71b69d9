"""A provider that plays answers byte by byte, over HTTP, in the event loop of its test."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass
class Asked:
    """One request, read to its end."""

    path: str
    headers: Mapping[str, str]
    body: Any
    writer: asyncio.StreamWriter = field(repr=False)

    async def send(self, content: bytes, *, status: int = 200, kind: str = "application/json") -> None:
        """Answer in one piece."""
        self._begin(f"content-length: {len(content)}", status, kind)
        self.writer.write(content)
        await self.writer.drain()

    def start(self, kind: str = "text/event-stream") -> None:
        """Begin an answer of unknown length."""
        self._begin("transfer-encoding: chunked", 200, kind)

    async def write(self, data: bytes) -> None:
        """Write a part of an answer that was begun; an empty one ends it."""
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self.writer.drain()

    def _begin(self, length: str, status: int, kind: str) -> None:
        self.writer.write(f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{length}\r\n\r\n".encode())


Play = Callable[[Asked], Awaitable[None]]


class Provider:
    """Answers each request as ``play`` does; ``async with`` starts it.

    Attributes:
        asked: all requests, in the order in which they were complete.
    """

    def __init__(self, play: Play) -> None:
        self.play = play
        self.asked: list[Asked] = []
        self.first = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing():
                self.asked.append(await _read(reader, writer))
                self.first.set()
                await self.play(self.asked[-1])
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client is gone
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.partition(": ") for line in head[1:] if line)
    headers = {name.lower(): value for name, _, value in pairs}
    if "content-length" in headers:
        raw = await reader.readexactly(int(headers["content-length"]))
    else:
        raw = b""
        while size := int(await reader.readline(), 16):
            raw += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    return Asked(head[0].split()[1], headers, json.loads(raw), writer)


async def play_stream(asked: Asked, records: Sequence[bytes], cut_after: int | None = None) -> None:
    """Stream events; after so many of them the connection ends in the middle of what was promised."""
    asked.start()
    for record in records[:cut_after]:
        await asked.write(record)
    if cut_after is None:
        await asked.write(b"")
    else:
        asked.writer.close()


async def play_either(asked: Asked, content: Sequence[bytes]) -> None:
    """Answer with events, or with the one body, as the request asks."""
    await (play_stream(asked, content) if asked.body.get("stream") else asked.send(content[0]))


def in_turn(*plays: Play) -> Play:
    """Return a play that does each of these once, and the last one for ever."""
    left = list(plays)

    async def play(asked: Asked) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(asked)

    return play
