"""The address of the Docker engine: which one counts where several are given. The docker library does the rest.

A user may name several engines, between which sandboxes are then divided (``engine_group``). The engine that a run's
sandboxes were on is noted on this machine, so that no later session changes it silently. It decides no verdict and is
not recorded in the run, which may travel.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dgm.errors import UserError
from dgm.paths import state_folder

if TYPE_CHECKING:
    from docker.tls import TLSConfig

ENGINE = "DGM_ENGINE"
"""Variable with an address that comes before all others but the one that a command or a call names."""
ARGUMENT = "engine"
"""Name of what gives a call its engine."""
RAY = "ray"
"""Name of the engine, and the address of the cluster that this machine is a node of; another's is ``ray://HOST:PORT``."""
_RAY_PREFIX = "ray://"
_RAY_FORM = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})")
DEFAULT_URL = "unix:///var/run/docker.sock"
_BETWEEN = re.compile(r"[\s,]+(?=[a-z]+://)")
"""Between addresses in one text; a path may hold a space or a comma."""


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """The place of an engine."""

    url: str
    """As the Docker CLI writes it: ``unix:///path``, ``tcp://host:port`` or ``ssh://user@host``."""
    origin: str = ""
    """The name of what gave the address, for people; empty: nothing did."""
    tls: "TLSConfig | None" = field(default=None, compare=False)

    @property
    def socket(self) -> str:
        """Path of its socket on this machine; empty if it has none."""
        return self.url.removeprefix("unix://") if self.url.startswith("unix://") else ""

    def __str__(self) -> str:
        """Return the address and what gave it."""
        return f"{self.url} ({self.origin})" if self.origin else self.url


class NamedEngine(NamedTuple):
    """An engine, or several, that a user named for dgm, not for all programs that use Docker."""

    addresses: tuple[str, ...]
    by: str
    """The name of what gave it: ``engine`` or ``DGM_ENGINE``."""

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
    named = NamedEngine(tuple(address for text in texts for address in _split_addresses(text)), by)
    _check_named(named)
    before = _NAMED.set(named)
    try:
        yield
    finally:
        _NAMED.reset(before)


def find_given_engine() -> NamedEngine | None:
    """Return the engine that this command or call names; None if it names none, whatever the environment says."""
    return _NAMED.get()


def find_named_engine() -> NamedEngine | None:
    """Return the engine that this command or call names, else the one of ``DGM_ENGINE``; None if neither is given."""
    variable = os.environ.get(ENGINE, "").strip()
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


def resolve_address() -> EngineAddress:
    """Return the address of the one engine: ``engine``, ``DGM_ENGINE``, else as the Docker CLI finds it.

    Raises:
        UserError: the address or the context is no good, or several engines are named.
    """
    addresses = resolve_addresses()
    if len(addresses) > 1:
        urls = " ".join(address.url for address in addresses)
        raise UserError(
            f"{addresses[0].origin}={urls}: one Docker engine is needed here; name them one after the other"
        )
    return addresses[0]


def resolve_addresses() -> Sequence[EngineAddress]:
    """Return the addresses of all engines between which sandboxes are divided: those that are named, else the one.

    Raises:
        UserError: an address or the context is no good, or an address is given twice.
    """
    if named := find_named_engine():
        _check_named(named)
        return [parse_address(address, named.by) for address in named.addresses]
    if host := os.environ.get("DOCKER_HOST", "").strip():
        return [parse_address(host, "DOCKER_HOST")]
    return [_find_context()]


def parse_address(text: str, origin: str) -> EngineAddress:
    """Return an address from its text; by TCP, it is encrypted as the Docker CLI's variables say.

    Raises:
        UserError: the text is no such address, or the variables name no certificates.
    """
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env, parse_host

    source = f"{origin}={text}"
    if is_ray_address(text):
        raise UserError(f"{source}: a Ray cluster; here a Docker engine is needed, such as ssh://user@host")
    if not text.startswith(("unix://", "tcp://", "ssh://")):
        raise UserError(f"{source}: begin with unix://, tcp:// or ssh://, such as ssh://user@host")
    try:
        parse_host(text)
        tls = kwargs_from_env().get("tls") if text.startswith("tcp://") else None
    except (DockerException, ValueError) as error:
        raise UserError(f"{source}: {error}") from error
    return EngineAddress(DEFAULT_URL if text == "unix://" else text, origin, tls or None)


def is_ray_address(text: str) -> bool:
    """Return whether a value of ``engine`` names a Ray cluster."""
    return text == RAY or text.startswith(_RAY_PREFIX)


def parse_ray_address(text: str, origin: str) -> str:
    """Return the address of a cluster as Ray takes it, ``auto`` or ``HOST:PORT``; ``origin`` is that of the text.

    Raises:
        UserError: it is no such address.
    """
    if text == RAY:
        return "auto"
    address = _RAY_FORM.fullmatch(text.removeprefix(_RAY_PREFIX))
    if not text.startswith(_RAY_PREFIX) or address is None or not 0 < int(address[2]) < 65536:
        raise UserError(
            f"{origin}={text}: write ray, or ray://HOST:PORT with the address that 'ray start --head' prints"
        )
    return address[0]


def _find_context() -> EngineAddress:
    """Return the address in the Docker CLI's context that ``DOCKER_CONTEXT`` or its configuration chooses."""
    from docker.context import ContextAPI

    name = os.environ.get("DOCKER_CONTEXT", "")
    which = f"the context '{name}' of DOCKER_CONTEXT" if name else "the Docker CLI's current context"
    try:
        context = ContextAPI.get_context(name or None)
    except Exception as error:  # the library's errors about contexts have no common type
        raise UserError(f"{which}: {error}") from error
    if context is None or not context.Host:
        raise UserError(f"{which}: there is no such context: see 'docker context ls', or set engine")
    if context.name == "default":
        return EngineAddress(DEFAULT_URL, which if name else "")
    return EngineAddress(context.Host, which if name else f"{which} '{context.name}'", context.TLSConfig)


def _split_addresses(text: str) -> tuple[str, ...]:
    """Return the addresses in one text, between which are spaces or commas."""
    return tuple(_BETWEEN.split(text.strip(", ") or text))


def _check_named(named: NamedEngine) -> None:
    """Check all addresses that a user named; raise as ``use_engine``."""
    for number, address in enumerate(named.addresses):
        if is_ray_address(address):
            parse_ray_address(address, named.by)
        else:
            parse_address(address, named.by)
        if address in named.addresses[:number]:
            raise UserError(f"{named.by}={address}: is named twice; leave one of them out")


def note_engine(run: str, sandbox: str) -> None:
    """Note the address of a run's engine, or of all its engines, if a user named one by whatever means.

    Args:
        run: the run's id.
        sandbox: the kind of its sandboxes.
    """
    text = ""
    if sandbox == RAY:
        cluster = find_cluster()
        if cluster == "auto":  # this machine's
            _note_of(run).unlink(missing_ok=True)
        elif cluster:
            text = f"ray://{cluster}"
    elif sandbox == "docker":
        text = " ".join(address.url for address in resolve_addresses() if address.origin)
    if text:
        _note_of(run).write_text(text, encoding="utf-8")


def check_engine(run: str, name: str, sandbox: str) -> None:
    """Make sure that the environment leads to the engine that the run was on; a user may name another.

    Args:
        run: the run's id.
        name: of the run, for people.
        sandbox: the kind that is about to be opened.

    Raises:
        UserError: it leads to another one.
    """
    note = _note_of(run)
    if find_named_engine() or not note.is_file():
        return
    before = note.read_text(encoding="utf-8")
    if is_ray_address(before) != (sandbox == RAY):
        return
    now = "the cluster of this machine" if sandbox == RAY else str(resolve_address())
    if sandbox == RAY or before != resolve_address().url:
        raise UserError(
            f"{name}: its sandboxes were on {before}, and now would be on {now}: set engine, or DGM_ENGINE "
            "(several engines with spaces between them)"
        )


def _note_of(run: str) -> Path:
    # The id is the run's, which may be a stranger's: it is no name of a file.
    return state_folder("engines") / hashlib.sha256(run.encode("utf-8", "surrogateescape")).hexdigest()[:32]
