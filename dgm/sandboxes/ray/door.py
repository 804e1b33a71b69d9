"""The head's door to the gateway for its nodes: one authenticated connection from each, and a relay behind it.

A node proves that it has its token without sending it; the head shows the certificate that was given, if one was. A
connection that was cut is made again by the node, and nothing of what went over it is lost (``resuming``).
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.ray.resuming import ResumingPipe
from dgm.sandboxes.ray.wire import DoorKey
from dgm.sandboxes.relay import Relay

CERTIFICATE, PRIVATE_KEY = "DGM_RAY_CERTIFICATE", "DGM_RAY_KEY"
"""Variables with the files in PEM format that encrypt the nodes' connections: a matter of this machine."""
LINK_BYTES = TOKEN_BYTES = NONCE_BYTES = 32
PROOF_BYTES = 32
_GREETING_S = 20.0
_UNKNOWN_AT_ONCE = 64
"""Maximum number of connections that have not proven anything."""
STREAMS = 1024
"""Maximum number of connections of all sandboxes of a node together."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HeadCertificate:
    """The certificate of the head, and the context that shows it."""

    text: str
    """In PEM format."""
    context: ssl.SSLContext


def read_certificate(environment: Mapping[str, str]) -> HeadCertificate | None:
    """Return the certificate that the environment names; None if it names none.

    Raises:
        UserError: only one of the two files is named, or they are no certificate and its key.
    """
    certificate, key = environment.get(CERTIFICATE, ""), environment.get(PRIVATE_KEY, "")
    if not (certificate or key):
        return None
    if not (certificate and key):
        raise UserError(
            f"{CERTIFICATE if certificate else PRIVATE_KEY} alone encrypts nothing: set the other one, too"
        )
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return HeadCertificate(Path(certificate).read_text(encoding="ascii"), context)
    except (OSError, ValueError) as error:
        raise UserError(f"{CERTIFICATE}={certificate}, {PRIVATE_KEY}={key}: {error}") from error


def proof_of(token: bytes, nonce: bytes) -> bytes:
    """Return what proves the possession of a token."""
    return hmac.digest(token, b"dgm node\0" + nonce, "sha256")


class Link:
    """One node's way to one socket of the head."""

    def __init__(self, key: DoorKey, target: Path) -> None:
        self.key = key
        self.pipe = ResumingPipe()
        self._tasks = [
            asyncio.create_task(self._carry(target), name="link to a node"),
            asyncio.create_task(self.pipe.watch(), name="watch of a link"),
        ]

    async def close(self) -> None:
        """End all its connections."""
        await self.pipe.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(self, target: Path) -> None:
        try:
            await Relay(self.pipe, target, STREAMS).carry()
        except Infrastructure as error:
            await self.pipe.break_off(str(error))


class Door:
    """A port of the head; open it with ``async with``."""

    def __init__(self, host: str, certificate: HeadCertificate | None) -> None:
        """Listen at ``host``, an address of this machine that the nodes reach."""
        self._host = host
        self._certificate = certificate
        self._links: dict[bytes, Link] = {}
        self._unknown = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            Infrastructure: the address is not this machine's.
        """
        try:
            self._server = await asyncio.start_server(
                self._accept, self._host, 0, ssl=self._certificate.context if self._certificate else None
            )
        except OSError as error:
            raise Infrastructure(f"the head cannot listen at {self._host} for its nodes: {error}") from error
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for link in list(self._links.values()):
            await self.close_link(link)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def open_link(self, target: Path) -> Link:
        """Return a new link to a unix socket of this machine."""
        text = self._certificate.text if self._certificate else ""
        secret = (secrets.token_bytes(LINK_BYTES), secrets.token_bytes(TOKEN_BYTES))
        link = Link(DoorKey(self._host, self._port, *secret, text), target)
        self._links[link.key.link] = link
        return link

    async def close_link(self, link: Link) -> None:
        """Forget a link, and end what it carries."""
        self._links.pop(link.key.link, None)
        await link.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            link = await self._greet(reader, writer)
            if link is not None:
                with contextlib.suppress(OSError, EOFError, TimeoutError):
                    await link.pipe.carry(reader, writer)
        except Infrastructure as error:
            log.warning("a node's connection was ended: %s", error)
        except asyncio.CancelledError:
            pass  # the end of the task: what started it would report it as an error
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Link | None:
        """Return the link that the other end has proven to be; None if it has not."""
        if self._unknown >= _UNKNOWN_AT_ONCE:
            return None
        self._unknown += 1
        try:
            async with asyncio.timeout(_GREETING_S):
                nonce = secrets.token_bytes(NONCE_BYTES)
                writer.write(nonce)
                said = await reader.readexactly(LINK_BYTES + PROOF_BYTES)
        except (OSError, EOFError, TimeoutError):
            return None
        finally:
            self._unknown -= 1
        link = self._links.get(said[:LINK_BYTES])
        # An unknown name takes as long as a wrong token.
        token = link.key.token if link is not None else secrets.token_bytes(TOKEN_BYTES)
        if not hmac.compare_digest(proof_of(token, nonce), said[LINK_BYTES:]) or link is None:
            log.warning("a connection to the head's door did not prove to be a node's")
            return None
        return link
