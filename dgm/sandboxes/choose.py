"""The choice of the engine that runs untrusted code. There is no way to run it without one."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from dgm.archive.live import LiveCalls, LiveState, NodeState, remove_live, write_live
from dgm.config import Settings
from dgm.errors import Infrastructure, UserError
from dgm.plugins import make_plugin
from dgm.protocols import SandboxEngine
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import (
    RAY,
    EngineAddress,
    find_cluster,
    find_given_engine,
    find_named_engine,
    resolve_address,
    resolve_addresses,
)
from dgm.sandboxes.engine_group import EngineGroup

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_S = 1.0
"""Seconds between two looks; a live file is written only after a change."""

BUILTIN: Mapping[str, str] = {
    "docker": "dgm.sandboxes.choose:open_docker",
    "bubblewrap": "dgm.sandboxes.choose:open_bubblewrap",
    RAY: "dgm.sandboxes.ray.engine:open_ray",
}
"""Name → ``module:attribute``, as an entry point names it; called with a ``SandboxContext`` as a plug-in is."""
SHAPE: Mapping[str, int | None] = {"name": None, "open": 1, "reap": 1}
"""Attributes of a plug-in's engine, and the number of arguments of its methods; None for plain attributes."""
UNBOUNDED = "DGM_UNBOUNDED"
"""Variable by which a user accepts an engine that does not bound processes or memory. It is this machine's matter:
a run that comes from elsewhere must not bring it along."""


@dataclass(frozen=True, slots=True)
class SandboxContext:
    """The inputs of a sandbox engine (``dgm.plugins`` says how to ask for them)."""

    name: str
    """Name under which the engine was found."""
    settings: Settings
    """All settings of the run; of a command without a run, the defaults."""


class AutoChoice(NamedTuple):
    """The engine that ``auto`` takes."""

    engine: SandboxEngine
    why: str
    """Why it is not Docker; empty if it is."""


def choose(name: str = "auto", settings: Settings | None = None) -> SandboxEngine:
    """Return the engine called ``name``; ``auto`` is Docker if it answers and bounds agents, else bubblewrap.

    Where a command, a call or ``DGM_ENGINE`` names an engine or a Ray cluster, ``auto`` takes no other. Where a context
    or another variable does, a warning says why that engine is not used.

    Args:
        name: ``auto``, a built-in engine, an entry point of the group ``dgm.sandboxes``, or a reference.
        settings: of the run; None: the defaults.

    Raises:
        UserError: there is no such engine, it is not available here, or bounds neither processes nor memory, or an
            engine is given for bubblewrap; the message says what to do.
    """
    # One of DGM_ENGINE is there for other commands too.
    if name == "bubblewrap" and (useless := find_given_engine()):
        raise UserError(
            f"{useless.by}={useless.address}: the sandbox is bubblewrap, which uses no engine: leave {useless.by} out, "
            "or choose the sandbox 'docker'"
        )
    if name == "auto" and find_cluster() is not None:
        name = RAY
    if name != "auto":
        return open_kind(name, settings)
    engine, why = choose_auto()
    if why:
        level = logging.WARNING if _is_docker_meant() else logging.INFO
        log.log(level, "%s; using %s", why, engine.name)
    return engine


def open_kind(kind: str, settings: Settings | None = None) -> SandboxEngine:
    """Return the engine of a kind of sandbox, whatever engine a command names; raise as ``choose``."""
    context = SandboxContext(kind, settings or Settings())
    return cast("SandboxEngine", make_plugin("sandboxes", kind, context, BUILTIN, SHAPE))


def choose_auto() -> AutoChoice:
    """Return the engine that ``auto`` takes, and why; raise as ``choose``."""
    try:
        return AutoChoice(open_docker(), "")
    except UserError as no_docker:
        if find_named_engine():
            raise
        try:
            return AutoChoice(open_bubblewrap(), str(no_docker))
        except UserError as error:
            raise UserError(f"nothing here can confine an agent. {no_docker}; or {error}") from error


def is_unbounded_accepted() -> bool:
    """Return whether the user accepts engines that do not bound processes or memory."""
    return os.environ.get(UNBOUNDED, "") not in ("", "0")


def _is_docker_meant() -> bool:
    """Return whether the user has said where an engine is, or has one."""
    try:
        address = resolve_address()
    except UserError:
        # Several are named, or the one that is meant is no good.
        return True
    return bool(address.origin) or Path(address.socket or "/").exists()


def open_docker() -> SandboxEngine:
    """Return the Docker engine, or the group of all that are named.

    Raises:
        UserError: none answers, or it bounds neither processes nor memory.
    """
    addresses = resolve_addresses()
    return open_docker_at(addresses[0]) if len(addresses) == 1 else EngineGroup(addresses, open_docker_at)


def open_docker_at(address: EngineAddress) -> DockerEngine:
    """Return the Docker engine at an address; raise as ``open_docker``."""
    try:
        engine = DockerEngine(address)
    except Infrastructure as error:
        raise UserError(f"no Docker sandbox: {error}") from error
    if (lacks := engine.facts.lacks) and not is_unbounded_accepted():
        cause = (
            "rootless, without control groups of version 2" if engine.facts.rootless else "by its own words"
        )
        raise UserError(
            f"no Docker sandbox: the engine at {engine.address} does not bound {' and '.join(lacks)} ({cause}): one "
            f"agent could take all of that machine; use another engine, or accept it with {UNBOUNDED}=1"
        )
    return engine


def open_bubblewrap() -> SandboxEngine:
    """Return the engine that uses bubblewrap.

    Raises:
        UserError: it is not installed, or cannot confine a program here.
    """
    try:
        engine = BubblewrapEngine()
        engine.prove()
    except Infrastructure as error:
        raise UserError(f"no bubblewrap sandbox: {error}") from error
    return engine


@runtime_checkable
class _HasNodes(Protocol):
    """An engine whose sandboxes are on several machines."""

    def nodes(self) -> Sequence[NodeState]: ...


@asynccontextmanager
async def publish_live(
    folder: Path, count_calls: Callable[[], LiveCalls], engine: SandboxEngine, every_s: float = LOOK_S
) -> AsyncIterator[None]:
    """Publish what a run does now for other processes, such as ``dgm status``, while the context lasts.

    Args:
        folder: of the run.
        count_calls: returns the open model calls.
        engine: of the run's sandboxes.
        every_s: seconds between two looks.
    """
    remove_live(folder)
    publishing = asyncio.create_task(_publish(folder, count_calls, engine, every_s), name="live-file")
    try:
        yield
    finally:
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)
        remove_live(folder)


async def _publish(
    folder: Path, count_calls: Callable[[], LiveCalls], engine: SandboxEngine, every_s: float
) -> None:
    published = LiveState()
    while True:
        state = LiveState(count_calls(), tuple(engine.nodes()) if isinstance(engine, _HasNodes) else ())
        if state != published:
            try:
                write_live(folder, state)
                published = state
            except OSError as error:
                log.debug("the live state is not published: %s", error)
        await asyncio.sleep(every_s)
