"""The choice of the engine that runs untrusted code. There is no way to run it without one."""

import logging
from typing import Literal

from dgm.errors import Infrastructure, UserError
from dgm.protocols import SandboxEngine
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.docker import DockerEngine

log = logging.getLogger(__name__)

EngineName = Literal["auto", "docker", "bubblewrap"]


def choose(name: EngineName = "auto") -> SandboxEngine:
    """Return the engine called ``name``; ``auto`` is Docker if it answers, else bubblewrap.

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
        log.info("%s; trying bubblewrap", no_docker)
        try:
            return _bubblewrap()
        except UserError as error:
            raise UserError(f"nothing here can confine an agent. {no_docker}; or {error}") from error


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
