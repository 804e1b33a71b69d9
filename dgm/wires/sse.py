"""Server-sent events of a provider's answer, each with its original bytes.

The answer is cut into blocks at its blank lines, so that the bytes of each event are known. ``httpx2.EventSource``
parses a block, except for the plain form of nearly all blocks.
"""

import json
import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass

from dgm.wires.events import DONE, Event, UnusableReply

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""Maximum bytes of an event; the last event of Responses repeats the whole answer, images included."""

_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_PLAIN = re.compile(rb"(?:event: ?([^\n]*)\n)?data: ?([^\n]*)\n\n")
"""A block of one data line, with or without a name before it."""
_LINE_END = re.compile(rb"\r\n?")
_NOISE = frozenset(("ping", "keep-alive", "keepalive", "heartbeat", "null"))
"""Data by which proxies keep a connection alive; no client can read it."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One server-sent event that holds data."""

    raw: bytes
    """The event's original bytes, its blank line included."""
    name: str
    """The ``event:`` line; empty: none."""
    data: str


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a response that hold data; comments and events without data are dropped.

    If single line ends separate events, their JSON would be unreadable for clients; such data becomes several events. A
    last event without its blank line counts if its data is whole. The caller closes the response.

    Raises:
        Unreadable: an event is larger than ``MAX_EVENT_BYTES``.
        Exception: the connection broke.
    """
    async for raw, block in _blocks(chunks):
        # Nearly all blocks have this form; the reader's layers would dominate the processing cost.
        plain = _PLAIN.fullmatch(block)
        if plain:
            found = [
                ((plain[1] or b"").decode("utf-8", "replace"), plain[2].decode("utf-8", "replace").strip())
            ]
        else:
            found = [(name, data) async for name, data in _read(block)]
        for name, data in found:
            if not data or data.lower() in _NOISE:
                continue
            if "\n" in data and (apart := _split_events(data)):
                for one in apart:
                    yield ServerSentEvent(Event(one, name).render(), name, one)
                continue
            yield ServerSentEvent(raw, name, DONE if data.startswith(DONE) else data)


async def _read(block: bytes) -> AsyncIterator[tuple[str, str]]:
    """Yield the name and the data of each event in a block, as ``httpx2.EventSource`` reads them."""
    import httpx2

    inner = httpx2.Response(
        200,
        headers={"content-type": "text/event-stream; charset=utf-8"},
        stream=httpx2.ByteStream(block),
        request=httpx2.Request("POST", "http://events.invalid"),
    )
    async for event in httpx2.EventSource(inner, max_event_size=2 * MAX_EVENT_BYTES):
        yield "" if event.event == "message" else event.event, event.data.strip()


async def _blocks(chunks: AsyncIterable[bytes]) -> AsyncIterator[tuple[bytes, bytes]]:
    """Yield each block of a response up to its blank line: its original bytes, and those with Unix line ends."""
    held, seen, first = bytearray(), 0, True
    async for chunk in chunks:
        held += chunk
        if first and len(held) >= len(_BOM):
            first = False
            if held.startswith(_BOM):
                del held[: len(_BOM)]
        start = 0
        while found := _BLANK_LINE.search(held, max(start, seen - 3)):
            raw = bytes(held[start : found.end()])
            start, seen = found.end(), 0
            yield raw, _normalise_line_ends(raw)
        del held[:start]
        seen = len(held)
        if seen > MAX_EVENT_BYTES:
            raise UnusableReply(f"an event of the stream is larger than {MAX_EVENT_BYTES} bytes")
    if _is_whole(rest := _normalise_line_ends(bytes(held))):
        yield bytes(held) + b"\n\n", rest + b"\n\n"


def _split_events(data: str) -> list[str]:
    """Return the lines of an event's data if each is an event of its own; none if they are one event."""
    lines = [line for line in data.split("\n") if line.strip()]
    return lines if len(lines) > 1 and all(_is_whole(b"data:" + line.encode()) for line in lines) else []


def _normalise_line_ends(block: bytes) -> bytes:
    return _LINE_END.sub(b"\n", block) if b"\r" in block else block


def _is_whole(block: bytes) -> bool:
    lines = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
    data = b"\n".join(lines)
    if data == DONE.encode():
        return True
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False
