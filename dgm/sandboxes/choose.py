"""The choice of the engine that runs untrusted code. There is no way to run it without one."""

import logging
import os
from pathlib import Path
from typing import Literal

from dgm.errors import Infrastructure, UserError
from dgm.protocols import SandboxEngine
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import ENGINE, resolve_address

log = logging.getLogger(__name__)

EngineName = Literal["auto", "docker", "bubblewrap"]


def choose(name: EngineName = "auto") -> SandboxEngine:
    """Return the engine called ``name``; ``auto`` is Docker if it answers, else bubblewrap.

    Where ``--engine`` names an engine, ``auto`` takes no other. Where a context or a variable does, a warning says why
    it is not used.

    Raises:
        UserError: it is not available here; the message says what to install or start.
    """
    match name:
        case "docker":
            return _docker()
        case "bubblewrap":
            return _bubblewrap()
        case "auto":
            return _either()


def _either() -> SandboxEngine:
    try:
        return _docker()
    except UserError as no_docker:
        if os.environ.get(ENGINE):
            raise
        try:
            found = _bubblewrap()
        except UserError as error:
            raise UserError(f"nothing here can confine an agent. {no_docker}; or {error}") from error
        log.log(logging.WARNING if _is_docker_meant() else logging.INFO, "%s; using bubblewrap", no_docker)
        return found


def _is_docker_meant() -> bool:
    """Return whether a person has said where an engine is, or has one."""
    try:
        address = resolve_address()
    except UserError:
        return True
    return bool(address.origin) or Path(address.path).exists()


def _docker() -> SandboxEngine:
    try:
        return DockerEngine()
    except Infrastructure as error:
        raise UserError(f"no Docker sandbox: {error}") from error


def _bubblewrap() -> SandboxEngine:
    try:
        engine = BubblewrapEngine()
        engine.prove()
    except Infrastructure as error:
        raise UserError(f"no bubblewrap sandbox: {error}") from error
    return engine
