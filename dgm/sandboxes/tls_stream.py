"""A stream encrypted with TLS of which one half can be closed: asyncio's own cannot, and an engine waits for that.

The plain side is an ordinary pair of asyncio's streams, on a socket pair whose other end is encrypted and passed on.
"""

import asyncio
import contextlib
import socket
import ssl

_PIECE = 1 << 16


async def open_tls(
    host: str, port: int, context: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a server, and return plain streams; ``write_eof`` closes the half to the server alone.

    The connection ends when the returned writer is closed.

    Raises:
        OSError: the server does not answer, or is not the one that it should be (``ssl.SSLError``).
    """
    reader, writer = await asyncio.open_connection(host, port)
    tunnel = _Tunnel(reader, writer, context, host)
    try:
        await tunnel.shake_hands()
    except BaseException:
        writer.close()
        raise
    near, far = socket.socketpair()
    await tunnel.start(far)
    return await asyncio.open_connection(sock=near)


class _Tunnel:
    """The encryption between a connection and a socket."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        context: ssl.SSLContext,
        host: str,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._arrived, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._leaving, server_hostname=host)
        self._running: asyncio.Task[None] | None = None

    async def shake_hands(self) -> None:
        """Agree on keys with the server, and check who it is."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._send()
                if not await self._receive():
                    raise ConnectionError("the server hung up during the handshake") from None
            else:
                await self._send()
                return

    async def start(self, far: socket.socket) -> None:
        """Pass everything on until both halves are closed, in a task that ends with the connection."""
        reader, writer = await asyncio.open_connection(sock=far)
        self._running = asyncio.ensure_future(self._run(reader, writer))

    async def _run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up = asyncio.ensure_future(self._encrypt(reader))
        try:
            with contextlib.suppress(OSError):
                await self._decrypt(writer)
        finally:
            up.cancel()
            await asyncio.wait([up])
            writer.close()
            self._writer.close()

    async def _encrypt(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_PIECE):
                self._tls.write(data)
                await self._send()
            # This writes the notice that nothing follows; it then wants the server's own notice, which _decrypt reads.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            await self._send()

    async def _decrypt(self, writer: asyncio.StreamWriter) -> None:
        ended = False
        while not ended:
            data, ended = self._read_all()
            await self._send()
            writer.write(data)
            await writer.drain()
            ended = ended or not await self._receive()
        writer.write_eof()

    def _read_all(self) -> tuple[bytes, bool]:
        """Return all that can be decrypted, and whether the server closed its half.

        Nothing may be left: ``unwrap`` would fail on it.
        """
        data = bytearray()
        while True:
            try:
                piece = self._tls.read(_PIECE)
            except ssl.SSLWantReadError:
                return bytes(data), False
            except ssl.SSLZeroReturnError:
                return bytes(data), True
            data += piece
            if not piece:
                return bytes(data), True

    async def _send(self) -> None:
        if data := self._leaving.read():
            self._writer.write(data)
        await self._writer.drain()

    async def _receive(self) -> bool:
        data = await self._reader.read(_PIECE)
        if data:
            self._arrived.write(data)
        else:
            self._arrived.write_eof()
        return bool(data)
