"""Bodies of agents' requests: bounded, and handled at a pace that leaves the event loop to the other agents.

All agents share one event loop, and handling a request blocks it. So size and number of values are bounded before
anything is parsed, and an agent rests after each request in proportion to the time that it took.
"""

import asyncio
import contextlib
import importlib
import re
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from dgm.gateway.allowed import BadRequest

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest

MAX_VALUES = 200_000
"""Maximum number of values in a body: each one costs time of the loop, whatever its size."""
SMALL_BYTES = 65_536
"""Size up to which an agent's bodies may arrive side by side; larger ones arrive one after the other."""
DRAINED_BYTES = 32_000_000
"""Maximum bytes read of an oversized body, so that its sender can read the refusal."""
ARRIVES_S = 120.0
"""Maximum seconds between two pieces of a body."""
RESTS = 3.0
"""Rest of an agent after each request, as a multiple of the loop's time that the request took."""
LONGEST_REST_S = 2.0
REFUSED_S = 0.005
"""Seconds that each refusal beyond the recorded ones, and each further piece of a refused body, takes its agent."""
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A JSON string; one without an end reaches to the end of the body, so that the search takes linear time."""
_STEP = re.compile(rb'(?:[^"]*+%b){1,10000}' % _STRING.pattern, re.DOTALL)
"""Some strings and what stands before each: as much as is scanned at once."""


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
        """Return the body of a request of at most ``limit`` bytes.

        Raises:
            BadRequest: it is too large, has too many values, ended early, or is compressed in a way that cannot be read
                here.
        """
        declared = http.headers.get("content-length", "")
        small = (
            declared.isascii() and declared.isdigit() and len(declared) < 9 and int(declared) <= SMALL_BYTES
        )
        async with contextlib.nullcontext() if small else self._large:
            data = await _read(http, limit)
            if _count_values(data) > MAX_VALUES:
                await self._check_values(data)
            return data

    async def _check_values(self, data: bytes) -> None:
        """Refuse a body that has too many values even without the commas and brackets within its texts."""
        values = at = 0
        while at < len(data):
            async with self.handle():
                step = _STEP.match(data, at)
                end = step.end() if step else len(data)
                values += _count_values(_STRING.sub(b"", data[at:end]))
            if values > MAX_VALUES:
                raise BadRequest(f"the body holds more than {MAX_VALUES} values", "request_too_large")
            at = end


async def _read(http: "HttpRequest", limit: int) -> bytes:
    from starlette.requests import ClientDisconnect

    unpacker = _Unpacker(http.headers.get("content-encoding", "").strip().lower())
    data, size = bytearray(), 0
    pieces = http.stream()
    try:
        while size <= DRAINED_BYTES:
            async with asyncio.timeout(ARRIVES_S):
                piece = await anext(pieces, None)
            if piece is None:
                break
            size += len(piece)
            if size <= limit:
                data += piece
            else:
                await asyncio.sleep(REFUSED_S)
    except ClientDisconnect as error:
        raise BadRequest("the connection ended within the body", "incomplete_body") from error
    except TimeoutError as error:
        message = f"no more of the body came within {ARRIVES_S:g} s"
        raise BadRequest(message, "incomplete_body") from error
    plain = bytes(data) if size > limit else unpacker.unpack(bytes(data), limit)
    if size > limit or len(plain) > limit:
        raise BadRequest(f"the body is larger than {limit} bytes", "request_too_large")
    return plain


def _count_values(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


class _Unpacker:
    """Unpacks a body by its ``Content-Encoding``."""

    def __init__(self, encoding: str) -> None:
        """Refuse an encoding that cannot be read, before the body is."""
        self._encoding = encoding
        self._zstd = _zstd() if encoding == "zstd" else None
        if self._zstd is None and encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BadRequest(
                f"a body in the Content-Encoding {encoding[:40]!r} cannot be read here; send it as gzip, or plain",
                "unsupported_encoding",
                415,
            )

    def unpack(self, data: bytes, limit: int) -> bytes:
        """Return the body, or more than ``limit`` bytes of its beginning."""
        if self._encoding in ("", "identity"):
            return data
        if self._zstd:
            unpacker = self._zstd.ZstdDecompressor()
            errors: Any = self._zstd.ZstdError
        else:
            # By the standard, deflate has the header of zlib; some clients leave it out.
            bare = self._encoding == "deflate" and data[:1] and data[0] & 0x0F != zlib.DEFLATED
            unpacker = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
            errors = zlib.error
        try:
            plain: bytes = unpacker.decompress(data, limit + 1)
        except errors as error:
            raise BadRequest(f"the body is not {self._encoding}", "invalid_encoding") from error
        if not unpacker.eof and len(plain) <= limit:
            raise BadRequest(f"the body is not whole as {self._encoding}", "incomplete_body")
        return plain


def _zstd() -> Any:  # noqa: ANN401  (a module)
    """Return the module that reads Zstandard: of Python from 3.14 on, or its backport; None without either."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
