"""One stream of bytes in each direction over a connection that may be cut and made again.

Each end counts what it received and keeps what the other has not confirmed. A new connection begins with both counts,
and each end sends on from there: a cut loses nothing and repeats nothing.
"""

import asyncio
import contextlib
import struct
import time
from collections.abc import Callable

from dgm.errors import Infrastructure

AWAY_S = 60.0
"""Maximum seconds without a connection; then the stream is broken."""
_SILENT_S = 15.0
"""Seconds without a byte after which a connection counts as cut; each end confirms more often."""
_BEAT_S = 4.0
_COUNT = struct.Struct("!Q")
_HEAD = struct.Struct("!BI")
_DATA, _CONFIRMED = range(2)
_CHUNK = 1 << 16
_QUEUED = 1 << 20
"""Unconfirmed bytes beyond which ``drain`` waits."""
_CONFIRM_EVERY = 1 << 16


class ResumingPipe:
    """One end; a ``dgm.sandboxes.relay.Pipe``."""

    def __init__(self, away_s: float = AWAY_S, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without a connection; the first one has ``away_s`` seconds, too."""
        self._away_s = away_s
        self._clock = clock
        self._unconfirmed = bytearray()
        self._confirmed = 0
        """Bytes sent that the other end has confirmed."""
        self._sent = 0
        """Bytes of ``_unconfirmed`` that went over the present connection."""
        self._received = 0
        self._told = 0
        """Received bytes that were confirmed."""
        self._arrived = bytearray()
        self._changed = asyncio.Condition()
        self._writer: asyncio.StreamWriter | None = None
        self._apart_since: float | None = clock()
        self._apart_before = 0.0
        self._ever_joined = False
        self._broken = ""
        self._closed = False

    @property
    def broken(self) -> str:
        """Why it will carry nothing more; empty: it may."""
        return self._broken

    @property
    def apart_s(self) -> float:
        """Seconds without a connection in all, since the first one."""
        if not self._ever_joined:
            return 0.0
        now = self._clock() - self._apart_since if self._apart_since is not None else 0.0
        return self._apart_before + now

    async def read(self) -> bytes:
        """Return the next bytes; none after ``close``.

        Raises:
            Infrastructure: the other end stayed away.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._arrived or self._broken or self._closed)
            if self._broken and not self._arrived:
                raise Infrastructure(self._broken)
            data = bytes(self._arrived)
            self._arrived.clear()
            return data

    def write(self, data: bytes) -> None:
        """Queue bytes to be sent."""
        self._unconfirmed += data
        self._flush()

    async def drain(self) -> None:
        """Wait until few bytes are unconfirmed.

        Raises:
            Infrastructure: the other end stayed away.
        """
        async with self._changed:
            await self._changed.wait_for(
                lambda: len(self._unconfirmed) <= _QUEUED or self._broken or self._closed
            )
        if self._broken:
            raise Infrastructure(self._broken)

    async def wait_until_connected(self) -> None:
        """Wait for a connection.

        Raises:
            Infrastructure: there was none in time.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._writer is not None or self._broken)
        if self._broken:
            raise Infrastructure(self._broken)

    async def wait_until_broken(self) -> None:
        """Wait until it can carry nothing more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._broken or self._closed)

    async def watch(self) -> None:
        """Break it when the other end stayed away for too long; run this beside it."""
        while not (self._broken or self._closed):
            since = self._apart_since
            if since is not None and self._clock() - since >= self._away_s:
                await self.break_off(f"there was no connection for {self._away_s:.0f} s")
            await asyncio.sleep(min(1.0, self._away_s / 4))

    async def break_off(self, why: str) -> None:
        """End it for a reason that readers and writers hear."""
        self._broken = self._broken or why
        await self._leave(self._writer)

    async def close(self) -> None:
        """End it in good order."""
        self._closed = True
        await self._leave(self._writer)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry over a connection until that is cut; a newer one ends this one.

        Raises:
            OSError: it was cut.
            EOFError: the other end closed it.
            Infrastructure: what came is not what the other end sends.
        """
        await self._leave(self._writer)
        writer.write(_COUNT.pack(self._received))
        async with asyncio.timeout(_SILENT_S):
            await writer.drain()
            (theirs,) = _COUNT.unpack(await reader.readexactly(_COUNT.size))
        if self._broken or self._closed:
            raise ConnectionAbortedError(self._broken or "closed")
        self._confirm(theirs)
        self._sent, self._told, self._writer = 0, self._received, writer
        self._end_absence()
        beating = asyncio.create_task(self._beat(writer), name="beat of a resuming pipe")
        try:
            self._flush()
            await self._notify()
            await self._receive(reader, writer)
        finally:
            beating.cancel()
            await self._leave(writer)

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            async with asyncio.timeout(_SILENT_S):
                kind, length = _HEAD.unpack(await reader.readexactly(_HEAD.size))
                if kind not in (_DATA, _CONFIRMED) or length > _CHUNK:
                    raise Infrastructure("what came over the connection is no part of the stream")
                body = await reader.readexactly(length)
            # What a connection that was left still had would be counted twice.
            if self._writer is not writer:
                raise ConnectionAbortedError("a newer connection took over")
            if kind == _DATA:
                self._received += length
                self._arrived += body
                if self._received - self._told >= _CONFIRM_EVERY:
                    self._tell()
            elif length == _COUNT.size:
                self._confirm(*_COUNT.unpack(body))
            await self._notify()

    async def _beat(self, writer: asyncio.StreamWriter) -> None:
        while self._writer is writer:
            self._tell()
            await asyncio.sleep(_BEAT_S)

    def _tell(self) -> None:
        if self._writer is not None:
            self._told = self._received
            self._writer.write(_HEAD.pack(_CONFIRMED, _COUNT.size) + _COUNT.pack(self._received))

    def _confirm(self, count: int) -> None:
        more = count - self._confirmed
        if not 0 <= more <= len(self._unconfirmed):
            raise Infrastructure("the other end has received what was never sent")
        del self._unconfirmed[:more]
        self._sent = max(0, self._sent - more)
        self._confirmed = count

    def _flush(self) -> None:
        while self._writer is not None and self._sent < len(self._unconfirmed):
            body = bytes(self._unconfirmed[self._sent : self._sent + _CHUNK])
            self._writer.write(_HEAD.pack(_DATA, len(body)) + body)
            self._sent += len(body)

    def _end_absence(self) -> None:
        if self._apart_since is not None and self._ever_joined:
            self._apart_before += self._clock() - self._apart_since
        self._apart_since, self._ever_joined = None, True

    async def _leave(self, writer: asyncio.StreamWriter | None) -> None:
        if writer is not None and self._writer is writer:
            self._writer, self._apart_since = None, self._clock()
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.transport.abort()
        await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
