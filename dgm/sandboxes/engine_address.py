"""The address of the Docker engine: resolved in one place by the Docker CLI's rules, and used for every call.

A person may name several engines for dgm, between which sandboxes are then divided (``engine_group``). How an engine
at an address is reached is ``engine_connection``'s.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dgm.bounded_reading import parse_json
from dgm.errors import UserError
from dgm.folders import read_file
from dgm.sandboxes.ray_address import is_ray_address, parse_ray_address

ENGINE = "DGM_ENGINE"
"""Variable with an address that comes before all others but the one that a command or a call names."""
OPTION, ARGUMENT = "--engine", "engine"
"""Names of what gives a command and a call their engine."""
DEFAULT_SOCKET = "/var/run/docker.sock"
_TCP_PORT, _TLS_PORT = 2375, 2376
_HOST = re.compile(r"[A-Za-z0-9_.:%\[\]][A-Za-z0-9_.:%\[\]-]*")
_USER = re.compile(r"[A-Za-z0-9_.@\\][A-Za-z0-9_.@\\-]*")
_BETWEEN = re.compile(r"[\s,]+(?=[a-z]+://)")
"""Between addresses in one text; a path may hold a space or a comma."""
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


class NamedEngine(NamedTuple):
    """An engine, or several, that a person named for dgm, not for all programs that use Docker."""

    addresses: tuple[str, ...]
    by: str
    """The name of what gave it: ``--engine``, ``engine`` or ``DGM_ENGINE``."""

    @property
    def address(self) -> str:
        """The address, or all of them in one line."""
        return " ".join(self.addresses)


_NAMED: ContextVar[NamedEngine | None] = ContextVar("named engine", default=None)


@contextlib.contextmanager
def use_engine(address: str | Sequence[str] | None, by: str = ARGUMENT) -> Iterator[None]:
    """Let an address, or several, name the engine while the context lasts.

    It holds for the tasks and threads of asyncio that are started in the context, and for no other call that this
    process makes at the same time.

    Args:
        address: None, or no address at all, changes nothing.
        by: the name of what gave it, for messages.

    Raises:
        UserError: a text is no address, or one is given twice.
    """
    texts = (address,) if isinstance(address, str) else tuple(address or ())
    if not texts:
        yield
        return
    named = NamedEngine(tuple(each for text in texts for each in _split_addresses(text)), by)
    _check_named(named)
    before = _NAMED.set(named)
    try:
        yield
    finally:
        _NAMED.reset(before)


def find_named_engine(environment: Mapping[str, str] = os.environ) -> NamedEngine | None:
    """Return the engine that this command or call names, else the one of ``DGM_ENGINE``; None if neither is given."""
    variable = environment.get(ENGINE, "").strip()
    return _NAMED.get() or (NamedEngine(_split_addresses(variable), ENGINE) if variable else None)


def find_cluster() -> str | None:
    """Return the address of the Ray cluster that is named in place of an engine, as Ray takes it; None if none is.

    Raises:
        UserError: it begins as the address of a cluster, and is none, or engines are named beside it.
    """
    named = find_named_engine()
    if named is None or not any(map(is_ray_address, named.addresses)):
        return None
    if len(named.addresses) > 1:
        raise UserError(f"{named.by}={named.address}: a Ray cluster is named alone, without other engines")
    return parse_ray_address(named.addresses[0], named.by)


def _split_addresses(text: str) -> tuple[str, ...]:
    """Return the addresses in one text, between which are spaces or commas."""
    return tuple(_BETWEEN.split(text.strip(", ") or text))


def _check_named(named: NamedEngine) -> None:
    """Check all addresses that a person named; raise as ``use_engine``."""
    for number, address in enumerate(named.addresses):
        if is_ray_address(address):
            parse_ray_address(address, named.by)
        else:
            parse_address(address, named.by, None)
        if address in named.addresses[:number]:
            raise UserError(f"{named.by}={address}: is named twice; leave one of them out")


def find_given_engine() -> NamedEngine | None:
    """Return the engine that this command or call names; None if it names none, whatever the environment says."""
    return _NAMED.get()


def resolve_addresses(environment: Mapping[str, str] = os.environ) -> Sequence[EngineAddress]:
    """Return the addresses of all engines between which sandboxes are divided: those that are named, else the one.

    Raises:
        UserError: an address is no good, or one is given twice.
    """
    named = find_named_engine(environment)
    if named is None or len(named.addresses) == 1:
        return [resolve_address(environment)]
    _check_named(named)
    folder = Path(environment.get("DOCKER_CONFIG") or Path.home() / ".docker")
    tls = _tls_of_environment(environment, folder)
    return [parse_address(each, named.by, tls) for each in named.addresses]


def resolve_address(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> EngineAddress:
    """Return the address of the engine: the first that is given.

    1. ``--engine``, or the argument ``engine`` of a call;
    2. ``DGM_ENGINE``;
    3. ``DOCKER_HOST``;
    4. the context that ``DOCKER_CONTEXT`` names;
    5. the current context of the Docker CLI's configuration;
    6. the default socket.

    An empty variable is unset. Addresses by TCP of the first three are encrypted as ``DOCKER_TLS_VERIFY`` and
    ``DOCKER_CERT_PATH`` say, others as their context says.

    Args:
        environment: of the program.
        home: of the user; only for tests.

    Raises:
        UserError: the address, the configuration or the context is no good, or several engines are named.
    """
    folder = Path(environment.get("DOCKER_CONFIG") or (home or Path.home()) / ".docker")
    if named := find_named_engine(environment):
        if len(named.addresses) > 1:
            raise UserError(
                f"{named.by}={named.address}: one Docker engine is needed here; name them one after the other"
            )
        return parse_address(named.addresses[0], named.by, _tls_of_environment(environment, folder))
    if given := environment.get("DOCKER_HOST", "").strip():
        return parse_address(given, "DOCKER_HOST", _tls_of_environment(environment, folder))
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
