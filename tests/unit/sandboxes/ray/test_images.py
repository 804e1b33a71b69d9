"""Images of tasks on the nodes of a cluster: made once on a node, taken where they are, the same on all nodes."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from dgm.config import ScaleSettings
from dgm.domain import Entry
from dgm.errors import Infrastructure, UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes.ray.engine import RayEngine
from tests.support.local_cluster import (
    IMAGE_ENGINE,
    ImageEngine,
    LocalCluster,
    PlainEngine,
    perform_on_cluster,
)

SCALE = ScaleSettings(lease_s=3).model_copy(update={"node_engine": IMAGE_ENGINE})
SPEC = SandboxSpec("docker:dgm/task:1", {"dgm.run": "r1"})
CONTEXT = {"Dockerfile": Entry(b"FROM dgm/python\n")}
MADE = ("build", "FROM dgm/python\n", "dgm/task:1")


@pytest.fixture(autouse=True)
def _empty(monkeypatch):
    PlainEngine.left.clear()
    for name, value in (("everywhere", set()), ("offered", {}), ("log", []), ("broken", False)):
        monkeypatch.setattr(ImageEngine, name, value)


def perform(test, *, scale=SCALE, **room):
    perform_on_cluster(test, scale, **room)


async def hold(engine, spec=SPEC, over=None):
    """Open a sandbox, and keep it until an event."""
    async with engine.open(spec):
        if over:
            await over.wait()


async def until_open():
    while not PlainEngine.left:
        await asyncio.sleep(0.005)


def test_an_image_is_made_once_on_a_node_while_others_wait():
    async def test(cluster, engine):
        engine.task_images.build(CONTEXT, "dgm/task:1", network=False)
        engine.task_images.check("dgm/task:1")
        await asyncio.gather(*(hold(engine) for _ in range(3)))
        await hold(engine)
        assert [each for each in ImageEngine.log if each[0] == "build"] == [MADE]

    perform(test)


def test_a_task_goes_where_its_image_is_and_elsewhere_only_if_that_node_is_full():
    async def test(cluster, engine):
        for number in (1, 2):
            engine.task_images.build(CONTEXT, f"dgm/task:{number}", network=False)
            engine.task_images.check(f"dgm/task:{number}")
        over = asyncio.Event()
        first = asyncio.create_task(hold(engine, over=over))
        await until_open()
        await hold(engine, replace(SPEC, image="docker:dgm/task:2"))
        assert cluster.started == ["a", "b"]
        over.set()
        await first
        for _ in range(2):
            for number, node in ((1, "a"), (2, "b")):
                async with engine.open(replace(SPEC, image=f"docker:dgm/task:{number}")):
                    assert PlainEngine.left[0]["dgm.node"] == node
        assert len([each for each in ImageEngine.log if each[0] == "build"]) == 2

    perform(test, a=1, b=1)


def test_all_nodes_take_the_digest_that_the_first_one_found():
    scale = SCALE.model_copy(update={"registry": "hub.example/team"})
    ImageEngine.offered["hub.example/team/swebench/one:latest"] = "sha256:1"

    async def test(_, engine):
        engine.plan_instance(["swebench/one:latest", "sweb.one"], "dgm/instance:1")
        spec = replace(SPEC, image="docker:dgm/instance:1")
        over = asyncio.Event()
        first = asyncio.create_task(hold(engine, spec, over))
        await until_open()
        ImageEngine.offered["hub.example/team/swebench/one:latest"] = "sha256:2"
        await hold(engine, spec)
        over.set()
        await first
        pulled = ("pull", "hub.example/team/swebench/one:latest@sha256:1", "swebench/one:latest")
        made = ("prepare", "swebench/one:latest", "dgm/instance:1")
        assert ImageEngine.log == [pulled, made, pulled, made]

    perform(test, scale=scale, a=1, b=1)


def test_an_image_that_a_registry_has_ready_is_not_built():
    scale = SCALE.model_copy(update={"registry": "hub.example"})
    ImageEngine.offered["hub.example/dgm/task:1"] = "sha256:1"

    async def test(_, engine):
        engine.task_images.build(CONTEXT, "dgm/task:1", network=False)
        engine.task_images.check("dgm/task:1")
        await hold(engine)
        assert ImageEngine.log == [
            ("pull", "hub.example/dgm/task:1@sha256:1", "dgm/task:1"),
            ("check", "dgm/task:1"),
        ]

    perform(test, scale=scale)


def test_a_folder_of_an_image_is_held_as_the_task_says():
    ImageEngine.everywhere.add("team/app:1")

    async def test(_, engine):
        engine.task_images.hold("team/app:1", "/app", "dgm/task-workspace:1")
        await hold(engine, replace(SPEC, image="docker:dgm/task-workspace:1", filled={"/app": "/testbed"}))
        assert ImageEngine.log == [("hold", "team/app:1/app", "dgm/task-workspace:1")]

    perform(test)


def test_a_node_that_cannot_make_an_image_still_takes_other_sandboxes():
    async def test(cluster, engine):
        engine.task_images.build({**CONTEXT, "broken": Entry(b"")}, "dgm/task:1", network=False)
        engine.task_images.check("dgm/task:1")
        for _ in range(2):
            with pytest.raises(Infrastructure, match=r"no image for a task on the node .: .*cannot be built"):
                await hold(engine)
        assert sorted(cluster.started) == ["a", "b"]
        assert engine._session.avoided == []

    perform(test, a=1, b=1)


def test_a_node_whose_engine_fails_is_left_alone():
    async def test(cluster, engine):
        engine.plan_instance(["x"], "dgm/instance:1")
        ImageEngine.everywhere.add("x")
        ImageEngine.broken = True
        with pytest.raises(Infrastructure, match="the Docker engine says: no"):
            await hold(engine, replace(SPEC, image="docker:dgm/instance:1"))
        assert list(engine._session.avoided) == cluster.started

    perform(test, a=1, b=1)


def test_an_image_that_nobody_has_is_one_line():
    async def test(_, engine):
        with pytest.raises(
            Infrastructure, match=r"has no image x:1, and no registry offers it.*scale\.registry"
        ):
            await hold(engine, replace(SPEC, image="docker:x:1"))

    perform(test)


def test_the_longest_unused_images_go_and_those_of_open_sandboxes_stay():
    scale = SCALE.model_copy(update={"images_gb": 1.0})

    async def test(cluster, engine):
        for number in (1, 2, 3):
            engine.plan_instance(["x"], f"dgm/instance:{number}")
        ImageEngine.everywhere.add("x")
        async with contextlib.AsyncExitStack() as opened:
            for number in (1, 2):
                spec = replace(SPEC, image=f"docker:dgm/instance:{number}")
                await opened.enter_async_context(engine.open(spec))
            assert tags(cluster) == ["dgm/instance:1", "dgm/instance:2"]
        await hold(engine, replace(SPEC, image="docker:dgm/instance:3"))
        assert tags(cluster) == ["dgm/instance:3"]

    perform(test, scale=scale)


def tags(cluster):
    (shelf,) = cluster.keepers["a"]._images.values()
    return sorted(shelf._images.tags())


def test_bubblewrap_and_addresses_are_refused_before_a_node_is_asked():
    bare = RayEngine(LocalCluster(a=1), ScaleSettings(node_engine="bubblewrap"))
    with pytest.raises(UserError, match=r"scale\.node_engine=bubblewrap: the image x needs Docker"):
        bare.task_images.check("x")
    far = {"Dockerfile": Entry(b"FROM dgm/python\nADD https://example.com/x /x\n")}
    with pytest.raises(UserError, match="fetches an address"):
        RayEngine(LocalCluster(a=1), SCALE).task_images.build(far, "t", network=False)
