"""Server-sent events in bytes: blocks up to a blank line, each with the JSON in it."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import orjson

from dgm.messages import JsonObject
from dgm.wires.values import is_nested_deeper
from dgm.wires.wire import DONE, UnusableReply

MAX_NESTING = 100
"""Maximum nesting of an event: no client needs more, and deeper JSON cannot be written again."""
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_PLAIN = re.compile(rb"(?:event: ?([^\n]*)\n)?data: ?([^\n]*)\n\n")
"""A block of one data line, with or without a name before it."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
_NOISE = frozenset((b"", b"ping", b"keep-alive", b"keepalive", b"heartbeat", b"null"))
"""Data by which proxies keep a connection alive; no client can read it."""
DONE_DATA = DONE.encode()


def cut_blocks(came: bytes | bytearray, fresh: int) -> tuple[list[bytes], int]:
    """Return the blocks up to each blank line, and the number of their bytes.

    Args:
        came: bytes that begin with a block.
        fresh: the number of bytes at the end in which no blank line was looked for yet.
    """
    blocks, start, searched = list[bytes](), 0, max(0, len(came) - fresh - 3)
    while match := _BLANK_LINE.search(came, searched):
        end = match.end()
        if end == len(came) and came.endswith(b"\r"):
            break  # its line feed may follow
        blocks.append(bytes(came[start:end]))
        start = searched = end
    return blocks, start


def read_block(block: bytes) -> tuple[str, bytes]:
    """Return the name and the data of a block's event; no data where it tells nothing."""
    if plain := _PLAIN.fullmatch(block):
        name, data = plain[1] or b"", plain[2].strip()
    else:
        name, lines = b"", list[bytes]()
        for line in _LINE_END.split(block.removeprefix(b"\xef\xbb\xbf")):
            key, _, value = line.partition(b":")
            if key == b"data":
                lines.append(value)
            elif key == b"event":
                name = value
        data = b"\n".join(lines).strip()
    if data.startswith(DONE_DATA):
        data = DONE_DATA
    return name.decode("utf-8", "replace").strip(), b"" if data.lower() in _NOISE else data


def parse_event(data: bytes) -> tuple[dict[str, Any], bool]:
    """Return the JSON object in an event, and whether every client can parse it: JSON can spell half a character.

    Raises:
        UnusableReply: there is none, or it is nested too deep.
    """
    try:
        event, clean = orjson.loads(data), True
    except orjson.JSONDecodeError:
        try:
            event, clean = json.loads(data, parse_constant=_finite, parse_float=_finite), False
        except (ValueError, RecursionError) as error:
            raise UnusableReply(f"the answer is not JSON: {data[:80]!r}") from error
    if not isinstance(event, dict):
        raise UnusableReply(f"the answer is no JSON object but {data[:80]!r}")
    if data.count(b"{") + data.count(b"[") > MAX_NESTING and is_nested_deeper(event, MAX_NESTING):
        raise UnusableReply(f"the answer is nested deeper than {MAX_NESTING} levels")
    return event, clean


def _finite(written: str) -> float | None:
    value = float(written)
    return value if math.isfinite(value) else None


def is_whole(block: bytes) -> bool:
    """Return whether the end of a stream, without a blank line behind it, is an event."""
    data = read_block(block)[1]
    try:
        return data == DONE_DATA or bool(data and parse_event(data))
    except UnusableReply:
        return False


def read_events(content: bytes) -> Iterator[tuple[JsonObject, str]]:
    """Yield each event with JSON, and its name, of a stream that has ended; unreadable ones are left out."""
    blocks, used = cut_blocks(content, len(content))
    for block in (*blocks, content[used:]):
        name, data = read_block(block)
        with suppress(UnusableReply):
            if data and data != DONE_DATA:
                yield parse_event(data)[0], name
