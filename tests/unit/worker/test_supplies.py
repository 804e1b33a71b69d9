"""Packages are found for the Python of each image, once."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from dgm.errors import Infrastructure
from dgm.protocols import Completed, SandboxSpec
from dgm.worker.supplies import AgentSupplies


class Engine:
    """Sandboxes that tell a Python's version, image by image."""

    name = "told"

    def __init__(self, **versions):
        self.versions, self.opened = versions, []

    @asynccontextmanager
    async def open(self, spec):
        self.opened.append(spec)
        self.image = spec.image
        yield self

    async def exec(self, argv, **_):
        said = self.versions[self.image]
        return Completed(0 if said else 127, said.encode())


def test_an_agent_without_packages_opens_no_sandbox():
    engine = Engine()
    supply = asyncio.run(AgentSupplies(engine, ()).supply(SandboxSpec("python")))
    assert (supply.mounts, supply.packages, engine.opened) == ((), "", [])


def test_an_image_without_a_python_is_named():
    supplies = AgentSupplies(Engine(bare=""), ("tiny",))
    with pytest.raises(Infrastructure, match="image bare has no python3"):
        asyncio.run(supplies.supply(SandboxSpec("bare", filled={"/testbed": "/x"})))
