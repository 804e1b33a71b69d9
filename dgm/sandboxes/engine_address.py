"""The address of the Docker engine: resolved in one place by the Docker CLI's rules, and used for every call.

How an engine at an address is reached is ``engine_connection``'s.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dgm.bounded_reading import parse_json
from dgm.errors import UserError
from dgm.folders import read_file
from dgm.sandboxes.ray_address import is_ray_address

ENGINE = "DGM_ENGINE"
"""Variable with an address that comes before all others; ``--engine`` sets it for one command."""
DEFAULT_SOCKET = "/var/run/docker.sock"
_TCP_PORT, _TLS_PORT = 2375, 2376
_HOST = re.compile(r"[A-Za-z0-9_.:%\[\]][A-Za-z0-9_.:%\[\]-]*")
_USER = re.compile(r"[A-Za-z0-9_.@\\][A-Za-z0-9_.@\\-]*")
_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files in PEM format with which a connection is encrypted; None: none is used."""

    ca: Path | None
    certificate: Path | None
    key: Path | None
    verify: bool = True
    """Whether the engine must prove to be the named host."""


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """The place of an engine."""

    scheme: str
    """``unix``, ``tcp`` or ``ssh``."""
    host: str
    """Empty for ``unix``."""
    port: int
    """0 for ``unix``; for ``ssh``, the port that ssh itself chooses."""
    path: str
    """Path of the engine's socket, on that host; empty for ``tcp``."""
    user: str
    """User on a host that is reached by ssh; empty: the one that ssh itself chooses."""
    tls: TlsFiles | None
    origin: str
    """The name of what gave the address, for people; empty: nothing did."""

    @property
    def url(self) -> str:
        """The address as the Docker CLI writes it."""
        if self.scheme == "unix":
            return f"unix://{self.path}"
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        path = self.path if self.path != DEFAULT_SOCKET else ""
        return f"{self.scheme}://{user}{host}{port}{path}"

    def __str__(self) -> str:
        """Return the address and what gave it."""
        return f"{self.url} ({self.origin})" if self.origin else self.url


def resolve_address(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> EngineAddress:
    """Return the address of the engine: the first that is given.

    1. ``DGM_ENGINE``, which ``--engine`` sets;
    2. ``DOCKER_HOST``;
    3. the context that ``DOCKER_CONTEXT`` names;
    4. the current context of the Docker CLI's configuration;
    5. the default socket.

    An empty variable is unset. Addresses by TCP of the first two are encrypted as ``DOCKER_TLS_VERIFY`` and
    ``DOCKER_CERT_PATH`` say, others as their context says.

    Args:
        environment: of the program.
        home: of the user; only for tests.

    Raises:
        UserError: the address, the configuration or the context is no good.
    """
    folder = Path(environment.get("DOCKER_CONFIG") or (home or Path.home()) / ".docker")
    for variable in (ENGINE, "DOCKER_HOST"):
        if given := environment.get(variable, "").strip():
            return parse_address(given, variable, _tls_of_environment(environment, folder))
    if name := environment.get("DOCKER_CONTEXT", ""):
        return _address_of_context(folder, name, f"the context '{name}' of DOCKER_CONTEXT")
    if name := _current_context(folder):
        return _address_of_context(folder, name, f"the Docker CLI's current context '{name}'")
    return parse_address("unix://", "", None)


def parse_address(text: str, origin: str, tls: TlsFiles | None) -> EngineAddress:
    """Return an address from its text.

    Args:
        text: ``unix:///path``, ``tcp://host:port`` or ``ssh://user@host:port``, where a path of the socket may follow.
        origin: of the text, for people.
        tls: how it is encrypted, if it is TCP.

    Raises:
        UserError: the text is no such address.
    """
    where = f"{origin}={text}"
    try:
        parts = urlsplit(text)
        port = parts.port or 0
    except ValueError as error:
        raise UserError(f"{where}: not an address: {error}") from error
    if parts.scheme == "npipe":
        raise UserError(
            f"{where}: dgm does not run on Windows itself: use WSL2, where the engine has a socket"
        )
    if is_ray_address(text):
        raise UserError(f"{where}: a Ray cluster; here a Docker engine is needed, such as ssh://user@host")
    if parts.scheme not in ("unix", "tcp", "ssh"):
        raise UserError(f"{where}: begin with unix://, tcp:// or ssh://, such as ssh://user@host")
    if parts.scheme == "unix":
        # The Docker CLI takes unix://relative/path for a path from the root, too.
        path = f"/{parts.netloc}{parts.path}" if parts.netloc else parts.path
        return EngineAddress("unix", "", 0, path or DEFAULT_SOCKET, "", None, origin)
    host = _host_of(parts.netloc)
    if parts.query or parts.fragment or parts.password is not None or not _HOST.fullmatch(host):
        raise UserError(f"{where}: write {parts.scheme}://{_FORMS[parts.scheme]}, without a password")
    if parts.scheme == "tcp":
        if parts.path.strip("/") or parts.username:
            raise UserError(f"{where}: write tcp://{_FORMS['tcp']}")
        return EngineAddress("tcp", host, port or (_TLS_PORT if tls else _TCP_PORT), "", "", tls, origin)
    user = parts.username or ""
    if user and not _USER.fullmatch(user):
        raise UserError(f"{where}: '{user}' is no name of a user")
    path = parts.path if parts.path.strip("/") else DEFAULT_SOCKET
    return EngineAddress("ssh", host, port, path, user, None, origin)


_FORMS: Mapping[str, str] = {"tcp": "host:port", "ssh": "user@host:port"}


def _host_of(netloc: str) -> str:
    """Return the host as it was written; the library makes it lower case, and ssh's own names are not."""
    host = netloc.rpartition("@")[2]
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _tls_of_environment(environment: Mapping[str, str], folder: Path) -> TlsFiles | None:
    verify = bool(environment.get("DOCKER_TLS_VERIFY"))
    place = environment.get("DOCKER_CERT_PATH", "")
    if not (verify or place):
        return None
    if place and not Path(place).is_dir():
        raise UserError(f"DOCKER_CERT_PATH={place}: no such folder; it holds ca.pem, cert.pem and key.pem")
    return _tls_in(Path(place) if place else folder, verify=verify)


def _tls_in(folder: Path, *, verify: bool) -> TlsFiles:
    names = ("ca.pem", "cert.pem", "key.pem")
    ca, certificate, key = (folder / name if (folder / name).exists() else None for name in names)
    return TlsFiles(ca, certificate, key, verify)


def _current_context(folder: Path) -> str:
    """Return the name of the current context; empty for the default one."""
    file = folder / "config.json"
    if not file.exists():
        return ""
    name = _read_table(file).get("currentContext") or ""
    return "" if name == "default" else str(name)


def _address_of_context(folder: Path, name: str, origin: str) -> EngineAddress:
    """Return the address that a context of the Docker CLI holds.

    Raises:
        UserError: there is no such context, or it names no engine.
    """
    if name == "default":
        return parse_address("unix://", origin, None)
    ident = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    file = folder / "contexts" / "meta" / ident / "meta.json"
    if not file.exists():
        raise UserError(f"{origin}: there is no such context: see 'docker context ls', or give --engine")
    endpoint = _table_in(_table_in(_read_table(file), "Endpoints"), "docker")
    if not endpoint.get("Host"):
        raise UserError(f"{origin}: {file}: names no engine")
    material = folder / "contexts" / "tls" / ident / "docker"
    tls = _tls_in(material, verify=not endpoint.get("SkipTLSVerify")) if material.is_dir() else None
    return parse_address(str(endpoint["Host"]), origin, tls)


def _read_table(file: Path) -> Mapping[str, Any]:
    data = read_file(file, _FILE_BYTES)
    try:
        found = parse_json(data)
    except ValueError as error:
        raise UserError(f"{file}: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UserError(f"{file}: holds no table")
    return found


def _table_in(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}
