"""Packages are found for the Python of each image, once."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from dgm.domain import Entry
from dgm.errors import Infrastructure, UserError
from dgm.protocols import Completed, Job, JobKind, Mount, SandboxSpec
from dgm.worker.supplies import AgentSupplies, Supply


def agent(*lines):
    text = "\n".join(["[agent]", 'command = ["run"]', 'check = ["check"]', *lines])
    return {"agent.toml": Entry(text.encode())}


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
    supply = asyncio.run(AgentSupplies(engine, agent()).supply(SandboxSpec("python")))
    assert (supply.mounts, supply.packages, engine.opened) == ((), "", [])


def test_an_image_without_a_python_is_named():
    supplies = AgentSupplies(Engine(bare=""), agent('requires = ["tiny"]'))
    with pytest.raises(Infrastructure, match="image bare has no python3"):
        asyncio.run(supplies.supply(SandboxSpec("bare", filled={"/testbed": "/x"})))


def test_an_agent_with_an_image_is_at_home_there_and_brings_its_files_elsewhere():
    supplies = AgentSupplies(Engine(), agent('image = "node"'))
    home = asyncio.run(supplies.home_spec({"dgm.run": "r"}))
    assert (home.image, home.labels, home.disk_mb) == ("node", {"dgm.run": "r"}, 1024)
    assert asyncio.run(supplies.supply(home)).runtime == ""
    assert asyncio.run(supplies.supply(SandboxSpec("docker:task"))).runtime == "node"


def test_its_packages_are_those_of_its_own_images_python():
    engine = Engine(node="")
    with pytest.raises(Infrastructure, match="image node has no python3"):
        asyncio.run(
            AgentSupplies(engine, agent('image = "node"', 'requires = ["tiny"]')).supply(SandboxSpec("x"))
        )
    assert engine.opened[0].runtime == ""


def test_an_agent_without_an_image_is_at_home_where_all_are():
    assert asyncio.run(AgentSupplies(Engine(), agent()).home_spec({})).image == "python"


def test_a_recipe_that_there_is_not_is_said():
    with pytest.raises(UserError, match=r"unknown sandbox image 'nodde'.*did you mean 'node'"):
        asyncio.run(AgentSupplies(Engine(), agent('image = "nodde"')).home_spec({}))


def test_a_dockerfile_needs_an_engine_with_images():
    source = {**agent('image = "Dockerfile"'), "Dockerfile": Entry(b"FROM scratch\n")}
    with pytest.raises(UserError, match=r"agent.toml: image: told has no images but those of recipes"):
        asyncio.run(AgentSupplies(Engine(), source).home_spec({}))


def test_npm_packages_are_beside_the_agent_and_beside_the_source_that_it_edits(tmp_path):
    modules = Mount(tmp_path, "/agent/node_modules", digest="d")
    supply = Supply((modules,), modules=modules)
    solve = Job(JobKind.SOLVE, "p", {}, {}, "python", "/work/repo", 1.0)
    improve = Job(JobKind.IMPROVE, "p", {}, {}, "python", "/work/agent", 1.0)
    assert [mount.target for mount in supply.mounts_for(solve)] == ["/agent/node_modules"]
    assert [mount.target for mount in supply.mounts_for(improve)] == [
        "/agent/node_modules",
        "/work/node_modules",
    ]
