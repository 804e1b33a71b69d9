"""The engines of a run are told beside its log while it runs."""

import asyncio

from dgm.archive.live_nodes import read_live_nodes, write_live_nodes
from dgm.protocols import SandboxSpec
from dgm.sandboxes.choose import tell_nodes
from dgm.sandboxes.engine_address import parse_address
from dgm.sandboxes.engine_group import EngineGroup
from tests.support.fake_engines import FakeEngine, connect_to


async def until(holds):
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


def test_busy_slots_of_each_engine_are_told(tmp_path):
    async def go():
        engines = {"a": FakeEngine(cpus=4), "b": FakeEngine(cpus=2)}
        group = EngineGroup([parse_address(f"ssh://{name}", "") for name in engines], connect_to(engines))
        async with tell_nodes(tmp_path, group, every_s=0.005):
            async with group.open(SandboxSpec("python")):
                await until(lambda: [node.busy for node in read_live_nodes(tmp_path)] == [1, 0])
            await until(lambda: [node.busy for node in read_live_nodes(tmp_path)] == [0, 0])
            assert [node.opened for node in read_live_nodes(tmp_path)] == [1, 0]
        assert read_live_nodes(tmp_path) == ()

    asyncio.run(go())


def test_of_one_engine_nothing_is_told_and_an_old_file_goes(tmp_path):
    async def go():
        write_live_nodes(tmp_path, [])
        async with tell_nodes(tmp_path, FakeEngine()):
            assert list(tmp_path.iterdir()) == []

    asyncio.run(go())
