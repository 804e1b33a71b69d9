"""Bodies of agents' requests: bounded while they arrive, and handled at a pace that leaves the loop to others.

All agents share one event loop, and parsing JSON blocks it. So nesting and number of values are bounded before
anything is parsed, and each agent gets a share of the loop's time.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from dgm.gateway.allowed.walk import MAX_BODY_DEPTH
from dgm.gateway.translation.wire import BadRequest
from dgm.wires.json_scan import JsonScan

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest

MAX_VALUES = 200_000
"""Maximum number of values in a body: each one costs time of the loop, whatever its size."""
SMALL_BYTES = 65_536
"""Size up to which an agent's bodies may arrive side by side; larger ones arrive one after the other."""
SCANNED_BYTES = 16_384
"""Bytes that are scanned at once."""
UNNOTICED_S = 0.0005
"""Seconds of the loop that nobody notices."""
DRAINED_BYTES = 32_000_000
"""Maximum bytes read of an oversized body, so that its sender can read the refusal."""
ARRIVES_S = 120.0
"""Maximum seconds between two pieces of a body."""
RESTS = 3.0
"""Rest of an agent after each request, as a multiple of the loop's time that the request took."""
LONGEST_REST_S = 2.0
REFUSED_S = 0.005
"""Seconds that each refusal beyond the recorded ones, and each further piece of a refused body, takes its agent."""


class Pace:
    """One agent's share of the event loop."""

    def __init__(self) -> None:
        self._large = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._rests_until = 0.0

    @asynccontextmanager
    async def handle(self) -> AsyncIterator[None]:
        """Enter the agent's turn to use the loop; the context must not wait for anything."""
        async with self._turn:
            if (rest_s := self._rests_until - time.monotonic()) > 0.0:
                await asyncio.sleep(rest_s)
            began = time.monotonic()
            try:
                yield
            finally:
                ended = time.monotonic()
                self._rests_until = ended + min(LONGEST_REST_S, RESTS * (ended - began))

    async def slow_down(self) -> None:
        """Wait for the agent's turn, and a moment more."""
        async with self._turn:
            await asyncio.sleep(REFUSED_S)

    async def read(self, http: "HttpRequest", limit: int) -> bytes:
        """Return the body of a request.

        Args:
            http: the request.
            limit: maximum number of bytes.

        Raises:
            BadRequest: it is too large, nested too deep, has too many values, or ended early.
        """
        size = _declared_size(http)
        if size is not None and size <= SMALL_BYTES:
            return await _read(http, limit)
        async with self._large:
            return await _read(http, limit)


def _declared_size(http: "HttpRequest") -> int | None:
    """Return the size that a request declares in bytes; None if it declares none."""
    declared = http.headers.get("content-length", "")
    return int(declared) if declared.isascii() and declared.isdigit() and len(declared) < 20 else None


async def _read(http: "HttpRequest", limit: int) -> bytes:
    from starlette.requests import ClientDisconnect

    data, scan, size = bytearray(), JsonScan(), 0
    refusal: BadRequest | None = None
    pieces = http.stream()
    try:
        while True:
            async with asyncio.timeout(ARRIVES_S):
                piece = await anext(pieces, None)
            if piece is None:
                break
            size += len(piece)
            if refusal is None and (refusal := await _check(piece, scan, size, limit)) is None:
                data += piece
                continue
            if size > DRAINED_BYTES:
                break
            await asyncio.sleep(REFUSED_S)
    except ClientDisconnect:
        refusal = refusal or BadRequest("the connection ended within the body", "incomplete_body")
    except TimeoutError:
        refusal = refusal or BadRequest(f"no more of the body came within {ARRIVES_S:g} s", "incomplete_body")
    if refusal is not None:
        raise refusal
    return bytes(data)


async def _check(piece: bytes, scan: JsonScan, size: int, limit: int) -> BadRequest | None:
    """Return the refusal of a body by its next piece; None if it is within the bounds. Rests after each scan."""
    if size > limit:
        return BadRequest(f"the body is larger than {limit} bytes", "request_too_large")
    for at in range(0, len(piece), SCANNED_BYTES):
        began = time.monotonic()
        scan.feed(piece[at : at + SCANNED_BYTES])
        if scan.depth > MAX_BODY_DEPTH:
            return BadRequest(f"the body is nested deeper than {MAX_BODY_DEPTH}")
        if scan.values > MAX_VALUES:
            return BadRequest(f"the body holds more than {MAX_VALUES} values", "request_too_large")
        if (took := time.monotonic() - began) > UNNOTICED_S:
            await asyncio.sleep(RESTS * took)
    return None
