"""The choice of the engine that runs untrusted code. There is no way to run it without one."""

import logging
import os
from pathlib import Path
from typing import Literal, NamedTuple

from dgm.errors import Infrastructure, UserError
from dgm.protocols import SandboxEngine
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import find_given_engine, find_named_engine, resolve_address

log = logging.getLogger(__name__)

SandboxKind = Literal["docker", "bubblewrap"]
EngineName = Literal["auto"] | SandboxKind
UNBOUNDED = "DGM_UNBOUNDED"
"""Variable with which a person accepts an engine that does not bound processes or memory. It is this machine's matter:
a run that comes from elsewhere must not bring it along."""


class AutoChoice(NamedTuple):
    """The engine that ``auto`` takes."""

    engine: SandboxEngine
    why: str
    """Why it is not Docker; empty if it is."""


def choose(name: EngineName = "auto") -> SandboxEngine:
    """Return the engine called ``name``; ``auto`` is Docker if it answers and bounds agents, else bubblewrap.

    Where a command, a call or ``DGM_ENGINE`` names an engine, ``auto`` takes no other. Where a context or another
    variable does, a warning says why it is not used.

    Raises:
        UserError: it is not available here, or bounds neither processes nor memory, or an engine is given for
            bubblewrap; the message says what to do.
    """
    if name != "auto":
        if name == "bubblewrap":
            _refuse_useless_engine()
        return open_kind(name)
    found = choose_auto()
    if found.why:
        level = logging.WARNING if _is_docker_meant() else logging.INFO
        log.log(level, "%s; using %s", found.why, found.engine.name)
    return found.engine


def open_kind(kind: SandboxKind) -> SandboxEngine:
    """Return the engine of a kind of sandbox, whatever engine a command names; raise as ``choose``."""
    return _docker() if kind == "docker" else _bubblewrap()


def choose_auto() -> AutoChoice:
    """Return the engine that ``auto`` takes, and why; raise as ``choose``."""
    try:
        return AutoChoice(_docker(), "")
    except UserError as no_docker:
        if find_named_engine():
            raise
        try:
            return AutoChoice(_bubblewrap(), str(no_docker))
        except UserError as error:
            raise UserError(f"nothing here can confine an agent. {no_docker}; or {error}") from error


def is_unbounded_accepted() -> bool:
    """Return whether a person accepts engines that do not bound processes or memory."""
    return os.environ.get(UNBOUNDED, "") not in ("", "0")


def _refuse_useless_engine() -> None:
    """Refuse an engine that was given for bubblewrap; one of ``DGM_ENGINE`` is there for other commands too."""
    if given := find_given_engine():
        raise UserError(
            f"{given.by}={given.address}: the sandbox is bubblewrap, which uses no engine: leave {given.by} out, or "
            "choose the sandbox 'docker'"
        )


def _is_docker_meant() -> bool:
    """Return whether a person has said where an engine is, or has one."""
    try:
        address = resolve_address()
    except UserError:
        return True
    return bool(address.origin) or Path(address.path).exists()


def _docker() -> SandboxEngine:
    try:
        engine = DockerEngine()
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


def _bubblewrap() -> SandboxEngine:
    try:
        engine = BubblewrapEngine()
        engine.prove()
    except Infrastructure as error:
        raise UserError(f"no bubblewrap sandbox: {error}") from error
    return engine
