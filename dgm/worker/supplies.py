"""What an agent's sandbox has beside the image: its Python packages, for the Python of each image it works in."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dgm.protocols import Mount, SandboxEngine, SandboxSpec
from dgm.sandboxes.packages import packages_mount


@dataclass(frozen=True, slots=True)
class Supply:
    """What an agent has in sandboxes of one image."""

    mounts: Sequence[Mount] = ()
    packages: str = ""
    """Value of ``PYTHONPATH``; empty if it has no packages."""


class Supplies:
    """The supplies of agents that need nothing beside the image."""

    async def supply(self, spec: SandboxSpec) -> Supply:  # noqa: ARG002  (nothing depends on the image)
        """Return the supply for the image of ``spec``."""
        return Supply()


class AgentSupplies(Supplies):
    """The supplies of one agent and its descendants, found out once for each image."""

    def __init__(self, engine: SandboxEngine, requires: Sequence[str]) -> None:
        self._engine = engine
        self._requires = tuple(requires)
        self._known: dict[str, Supply] = {}
        self._turn = asyncio.Lock()

    async def supply(self, spec: SandboxSpec) -> Supply:
        """Return the supply for the image of ``spec``, whose labels a sandbox gets that is asked for its Python.

        Raises:
            UserError: the packages cannot be installed.
            Infrastructure: a sandbox failed, or has no Python.
        """
        if not self._requires:
            return Supply()
        async with self._turn:
            known = self._known.get(spec.image)
            if known is None:
                plain = replace(spec, mounts=(), socket=None, filled={})
                mounts = await packages_mount(self._requires, self._engine, plain)
                known = Supply(mounts, ":".join(mount.target for mount in mounts))
                self._known[spec.image] = known
        return known
