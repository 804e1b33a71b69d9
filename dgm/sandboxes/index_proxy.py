"""The only way out of a build's sandbox: an HTTP proxy that knows package indexes, and takes the build's result.

It answers at a unix socket. ``CONNECT`` leads to an index over TLS, which stays between the two ends; a plain ``GET``
is passed on, too. What a build asks for beside indexes is refused and named.
"""

import asyncio
import contextlib
import ipaddress
import os
import socket
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from dgm.processes import short_address
from dgm.sandboxes.users import SANDBOX_GID

REGISTRIES: Mapping[str, tuple[str, ...]] = {
    "uv, pip": ("pypi.org", "files.pythonhosted.org"),
    "npm": ("registry.npmjs.org", "registry.yarnpkg.com"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "cargo": ("index.crates.io", "static.crates.io"),
    "Maven, Gradle": (
        "repo.maven.apache.org",
        "repo1.maven.org",
        "plugins.gradle.org",
        "plugins-artifacts.gradle.org",
    ),
}
"""Package manager → the public indexes that it asks; every build reaches all of them, over TLS alone."""
NAME = "index.sock"
_PORTS = {"http": 80, "https": 443}
_HEAD_BYTES = 1 << 16
_HEAD_S = 60.0
_CONNECT_S = 30.0
_CHUNK = 1 << 16
_CONNECTIONS = 128
_MOST_REFUSED, _MOST_NOTED = 5, 1000
_HIDDEN = ("connection", "proxy-", "keep-alive")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Place(NamedTuple):
    """A host and a port of it."""

    host: str
    port: int


class RefusedError(Exception):
    """A build may not reach what it asks for."""


class IndexProxy:
    """A proxy at ``folder/index.sock`` while the context lasts.

    Attributes:
        path: its socket.
        unreachable: an index that could not be connected to last, and why; empty if there is none.
    """

    unreachable = ""

    def __init__(self, folder: Path, own: frozenset[Place], *, public: bool) -> None:
        """Allow the public registries and the user's ``own`` indexes; with ``public`` also every public address."""
        self.path = folder / NAME
        self._own = own
        self._registries = {host for hosts in REGISTRIES.values() for host in hosts}
        self._public = public
        self._refused: dict[str, None] = {}
        self._sink: IO[bytes] | None = None
        self._room = 0
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        _open_folder(self.path.parent)
        with short_address(self.path) as address:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(address)
        self.path.chmod(0o666)
        self._server = await asyncio.start_unix_server(self._accept, sock=listener, limit=_HEAD_BYTES)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def refused(self) -> str:
        """What was asked for in vain, in one line; empty if there is nothing."""
        places = list(self._refused)
        more = f" and {len(places) - _MOST_REFUSED} more" if len(places) > _MOST_REFUSED else ""
        asked = ", ".join(places[:_MOST_REFUSED])
        return f"asked for {asked}{more}, which is no package index: refused" if places else ""

    @contextlib.contextmanager
    def receiving(self, sink: IO[bytes], limit_bytes: int) -> Iterator[None]:
        """Let one result be sent into a file while the context lasts."""
        self._sink, self._room = sink, limit_bytes
        try:
            yield
        finally:
            self._sink = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        with contextlib.closing(writer):
            if len(self._connections) >= _CONNECTIONS:
                return
            self._connections.add(task)
            try:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                    await self._serve(reader, writer)
            finally:
                self._connections.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_S)
        if head.startswith(b"PUT /result "):
            await self._receive(reader, writer)
            return
        try:
            place, passed_on = _read_head(head)
            far, far_writer = await self._open(place)
        except RefusedError as error:
            _answer(writer, "403 Forbidden", f"dgm: {error}")
            return
        except (OSError, ValueError) as error:
            _answer(writer, "502 Bad Gateway", f"dgm: {error}")
            return
        try:
            if passed_on:
                far_writer.write(passed_on)
                await _copy(far, writer)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(_copy(reader, far_writer), _copy(far, writer))
        finally:
            far_writer.close()

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sink, self._sink = self._sink, None
        while sink and (data := await reader.read(_CHUNK)):
            self._room -= len(data)
            if self._room < 0:
                sink = None
                break
            sink.write(data)
        if sink is None:
            _answer(writer, "403 Forbidden", "dgm: no such result is waited for, or it is too large")
            return
        sink.flush()
        _answer(writer, "200 OK", "")
        await writer.drain()

    async def _open(self, place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a place; raise ``RefusedError`` if a build may not reach it, ``OSError`` if nobody answers."""
        is_index = place in self._own or (place.host in self._registries and place.port == _PORTS["https"])
        targets = [place] if is_index else await self._find_public(place)
        proxy = _find_proxy(place)
        failure = OSError(f"nobody answers at {place.host}")
        for target in targets:
            opening = _tunnel(proxy, target) if proxy else asyncio.open_connection(target.host, target.port)
            try:
                streams = await asyncio.wait_for(opening, _CONNECT_S)
            except OSError as error:
                failure = error
            else:
                self.unreachable = ""
                return streams
        if is_index:
            way = f" by the proxy {urlsplit(proxy).hostname}" if proxy else ""
            self.unreachable = f"{place.host}{way}: {failure.strerror or failure or 'it does not answer'}"
        raise failure

    async def _find_public(self, place: Place) -> list[Place]:
        """Return the addresses of a place that is no index; with them, no second look-up can lead elsewhere."""
        found: list[str] = []
        if self._public and place.port in _PORTS.values():
            with contextlib.suppress(OSError, UnicodeError):
                loop = asyncio.get_running_loop()
                known = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
                found = [str(each[4][0]) for each in known]
        if not found or not all(is_public(address) for address in found):
            if len(self._refused) < _MOST_NOTED:
                self._refused[f"{place.host}:{place.port}"[:100]] = None
            raise RefusedError(f"{place.host} is no package index")
        return [Place(address, place.port) for address in found]


def place_of(url: str) -> Place:
    """Return where a URL leads; raise ``ValueError`` if it leads to no host."""
    parts = urlsplit(url)
    if not parts.hostname or parts.scheme not in _PORTS:
        raise ValueError(f"{url[:100]!r} leads to no host")
    return Place(parts.hostname.lower().rstrip("."), parts.port or _PORTS[parts.scheme])


def is_public(address: str) -> bool:
    """Return whether an address is one of the internet, in whatever form it is written."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and (
        found.ipv4_mapped or found.sixtofour or found.teredo or found in _NAT64
    ):
        return False
    return found.is_global and not found.is_multicast


def _read_head(head: bytes) -> tuple[Place, bytes]:
    """Return where a request leads, and what of its head is passed on there, which is nothing for a tunnel.

    Raises:
        ValueError: it is none that a proxy gets.
        RefusedError: it would change something.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    if method == "CONNECT":
        return place_of(f"https://{target}"), b""
    if method not in ("GET", "HEAD"):
        raise RefusedError(f"{method} is not passed on")
    url = urlsplit(target)
    if url.scheme != "http":
        raise ValueError("no address of a proxy")
    kept = [line for line in lines if line and not line.lower().startswith((*_HIDDEN, "host:"))]
    path = f"{url.path or '/'}{url.query and '?'}{url.query}"
    host = url.netloc.rpartition("@")[2]
    passed_on = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *kept, "", ""]
    return place_of(target), "\r\n".join(passed_on).encode("latin-1")


def _find_proxy(place: Place) -> str:
    """Return the proxy by which this machine reaches the internet; empty if it needs none."""
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(place.host):
        return ""
    found = proxies.get("https", proxies.get("all", ""))
    return found if found.startswith("http://") else ""


async def _tunnel(proxy: str, place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect by way of another proxy."""
    url = urlsplit(proxy)
    reader, writer = await asyncio.open_connection(url.hostname, url.port or _PORTS["http"])
    target = f"{place.host}:{place.port}"
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if url.username:
        user = f"{unquote(url.username)}:{unquote(url.password or '')}"
        head += f"Proxy-Authorization: Basic {b64encode(user.encode()).decode()}\r\n"
    writer.write(f"{head}\r\n".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    if b" 200" not in answer.partition(b"\r\n")[0]:
        writer.close()
        raise OSError(f"the proxy {url.hostname} does not lead to {place.host}")
    return reader, writer


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _answer(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    data = f"{text}\n".encode() if text else b""
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + data)


def _open_folder(folder: Path) -> None:
    """Make the socket's folder, which only sandboxes get into: it lies in a folder that no one else may enter."""
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(folder, -1, SANDBOX_GID)
    folder.chmod(0o711)
