"""Bodies of agents' requests: bounded while they arrive, and handled at a pace that leaves the loop to others.

All agents share one event loop, and parsing JSON blocks it. So nesting and number of values are bounded before
anything is parsed, and each agent gets a share of the loop's time.
"""

import asyncio
import importlib
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from dgm.gateway.allowed import MAX_BODY_DEPTH, BadRequest
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
            BadRequest: it is too large, nested too deep, has too many values, ended early, or is compressed in a way
                that cannot be read here.
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

    unpack = _unpacking(http.headers.get("content-encoding", ""))
    data, scan, size = bytearray(), JsonScan(), 0
    refusal: BadRequest | None = None
    pieces = http.stream()
    try:
        while True:
            async with asyncio.timeout(ARRIVES_S):
                piece = await anext(pieces, None)
            if piece is None:
                refusal = refusal or unpack.incomplete()
                break
            size += len(piece)
            try:
                for plain in unpack.feed(piece) if refusal is None else ():
                    if refusal := await _check(plain, scan, len(data) + len(plain), limit):
                        break
                    data += plain
            except BadRequest as error:
                refusal = error
            if refusal is None:
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


class _Plain:
    """A body that is not compressed."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        yield piece

    def incomplete(self) -> BadRequest | None:
        return None


class _Packed:
    """A compressed body, unpacked in pieces of at most ``SCANNED_BYTES``, so that it cannot fill the memory."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._zstd = _zstd() if encoding == "zstd" else None
        if self._zstd is None and encoding not in ("gzip", "x-gzip", "deflate"):
            raise BadRequest(
                f"a body in the Content-Encoding {encoding[:40]!r} cannot be read here; send it as gzip, or plain",
                "unsupported_encoding",
                415,
            )
        self._unpacker: Any = self._zstd and self._zstd.ZstdDecompressor()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        if self._unpacker is None:
            if not piece:
                return
            # By the standard, deflate has the header of zlib; some clients leave it out.
            bare = self._encoding == "deflate" and piece[0] & 0x0F != zlib.DEFLATED
            self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
        errors = (zlib.error, self._zstd.ZstdError) if self._zstd else zlib.error
        while not self._unpacker.eof:
            try:
                plain = self._unpacker.decompress(piece, SCANNED_BYTES)
            except errors as error:
                raise BadRequest(f"the body is not {self._encoding}", "invalid_encoding") from error
            if plain:
                yield plain
            piece = b"" if self._zstd else self._unpacker.unconsumed_tail
            if not piece and len(plain) < SCANNED_BYTES:
                return

    def incomplete(self) -> BadRequest | None:
        if self._unpacker is not None and self._unpacker.eof:
            return None
        return BadRequest(f"the body is not whole as {self._encoding}", "incomplete_body")


def _unpacking(encoding: str) -> _Plain | _Packed:
    encoding = encoding.strip().lower()
    return _Plain() if encoding in ("", "identity") else _Packed(encoding)


def _zstd() -> Any:  # noqa: ANN401  (a module)
    """Return the module that reads Zstandard: of Python from 3.14 on, or its backport; None without either."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


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
