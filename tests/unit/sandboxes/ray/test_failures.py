"""What fails on a cluster is never a verdict, and the sandboxes of the other nodes go on."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from dgm.config import ScaleSettings
from dgm.errors import Infrastructure
from dgm.protocols import SandboxSpec, SharedSocket
from dgm.sandboxes.ray import engine as engines
from dgm.sandboxes.ray import keeper as keepers
from dgm.sandboxes.ray import remote_sandbox
from dgm.sandboxes.ray import session as sessions
from dgm.sandboxes.ray.engine import RayEngine
from tests.support.local_cluster import ENGINE, PlainEngine, perform_on_cluster

SPEC = SandboxSpec("python", {"dgm.run": "r1"})
SCALE = ScaleSettings(lease_s=3).model_copy(update={"node_engine": ENGINE})


@pytest.fixture(autouse=True)
def _empty():
    PlainEngine.left.clear()
    PlainEngine.broken_nodes.clear()


def perform(test, *, scale=SCALE, **room):
    perform_on_cluster(test, scale, **(room or {"a": 2}))


@pytest.mark.starts_processes
def test_what_was_long_without_the_gateway_counts_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(remote_sandbox, "APART_S", 0.1)

    async def test(_, engine):
        server = await asyncio.start_unix_server(lambda _r, w: w.close(), str(tmp_path / "gateway.sock"))
        shared = SharedSocket(tmp_path / "gateway.sock", "/run/dgm/gateway.sock")
        async with engine.open(replace(SPEC, socket=shared)) as sandbox:
            assert (await sandbox.exec(["true"], timeout_s=20)).exit_code == 0
            running = asyncio.create_task(sandbox.exec(["sleep", "0.8"], timeout_s=20))
            await asyncio.sleep(0.1)
            sandbox._link.pipe._writer.transport.abort()
            with pytest.raises(Infrastructure, match="was without the gateway for"):
                await running
            assert (await sandbox.exec(["true"], timeout_s=20)).exit_code == 0
        server.close()

    perform(test)


@pytest.mark.starts_processes
def test_a_dead_node_is_no_verdict_and_the_others_go_on():
    async def test(cluster, engine):
        async with engine.open(SPEC) as sandbox:
            running = asyncio.create_task(sandbox.exec(["sleep", "30"], timeout_s=60))
            await asyncio.sleep(0.2)
            cluster.kill_node("a")
            with pytest.raises(Infrastructure, match="a is lost"):
                await running
        for _ in range(2):
            async with engine.open(SPEC) as sandbox:
                assert (await sandbox.exec(["true"], timeout_s=20)).exit_code == 0
        assert set(cluster.started[1:]) == {"b"}

    perform(test, a=2, b=2)


def test_a_node_whose_engine_is_dead_is_left_alone():
    async def test(cluster, engine):
        PlainEngine.broken_nodes.add("a")
        async with engine.open(SPEC):  # so that b is known, whoever comes first
            pass

    async def failing(cluster, engine):
        PlainEngine.broken_nodes.add("a")
        with pytest.raises(Infrastructure, match="no sandbox on the node a: the engine is dead"):
            async with engine.open(SPEC):
                pass
        for _ in range(3):
            async with engine.open(SPEC):
                pass
        assert set(cluster.started[1:]) == {"b"}

    perform(failing, a=2, b=2)
    with pytest.raises(Infrastructure, match="the engine is dead"):
        perform(test, a=2)


@pytest.mark.starts_processes
def test_what_a_node_says_after_its_lease_was_over_counts_for_nothing(monkeypatch):
    monkeypatch.setattr(keepers, "_LOOK_EVERY_S", 0.01)

    async def test(cluster, engine):
        async with engine.open(SPEC) as sandbox:
            running = asyncio.create_task(sandbox.exec(["sleep", "0.3"], timeout_s=20))
            await asyncio.sleep(0.05)
            cluster.out_of_reach.add("a")
            while PlainEngine.left:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            cluster.out_of_reach.clear()
            with pytest.raises(Infrastructure, match="a was out of reach for longer than its lease"):
                await running
        async with engine.open(SPEC) as sandbox:
            assert (await sandbox.exec(["true"], timeout_s=20)).exit_code == 0
        assert PlainEngine.left == []

    perform(test, scale=SCALE.model_copy(update={"lease_s": 0.5}), a=2)


@pytest.mark.starts_processes
def test_a_node_that_is_out_of_reach_for_less_than_its_lease_goes_on():
    async def test(cluster, engine):
        async with engine.open(SPEC) as sandbox:
            running = asyncio.create_task(sandbox.exec(["sleep", "0.1"], timeout_s=20))
            await asyncio.sleep(0.05)
            cluster.out_of_reach.add("a")
            await asyncio.sleep(0.2)
            cluster.out_of_reach.clear()
            assert (await running).exit_code == 0

    perform(test)


def test_who_waits_for_room_is_placed_on_a_node_whose_rest_is_over(monkeypatch):
    monkeypatch.setattr(sessions, "REST_S", 0.2)
    monkeypatch.setattr(engines, "_LOOK_AGAIN_S", 1.0)

    async def test(cluster, engine):
        PlainEngine.broken_nodes.add("a")
        with pytest.raises(Infrastructure, match="the engine is dead"):
            async with engine.open(SPEC):
                pass
        PlainEngine.broken_nodes.clear()
        cluster.room["b"] = 0
        async with engine.open(SPEC):
            assert cluster.started == ["a", "a"]

    perform(test, a=1, b=1)


def test_a_node_whose_engine_works_again_is_tried_again(monkeypatch):
    monkeypatch.setattr(sessions, "REST_S", 0.1)

    async def test(cluster, engine):
        PlainEngine.broken_nodes.add("a")
        with pytest.raises(Infrastructure, match="the engine is dead"):
            async with engine.open(SPEC):
                pass
        PlainEngine.broken_nodes.clear()
        async with engine.open(SPEC):
            assert cluster.started == ["a", "b"]
            await asyncio.sleep(0.1)
            async with engine.open(SPEC):
                assert cluster.started == ["a", "b", "a"]

    perform(test, a=1, b=1)


@pytest.mark.starts_processes
def test_a_node_is_left_alone_whose_engine_fails_in_two_sandboxes_one_after_the_other():
    async def test(cluster, engine):
        async def use(*words):
            async with engine.open(SPEC) as sandbox:
                with contextlib.suppress(Infrastructure):
                    await sandbox.exec(list(words), timeout_s=20)
                    assert words == ("true",)
            return list(engine._session.avoided)

        assert [await use("fail"), await use("true"), await use("fail")] == [[], [], []]
        assert await use("fail") == ["a"]
        assert await use("true") == ["a"]
        assert cluster.started == ["a", "b"]

    perform(test, a=1, b=1)


def test_what_is_left_of_a_sandbox_whose_program_died_is_removed():
    async def test(cluster, engine):
        async with engine.open(SPEC) as sandbox:
            sandbox._host.gone.set()
            with pytest.raises(Infrastructure, match="a is lost"):
                await sandbox.halt()
            assert len(PlainEngine.left) == 1
        assert PlainEngine.left == []
        assert not next(iter(cluster.keepers["a"]._leases.values())).sandboxes

    perform(test)


def test_a_head_that_was_held_up_is_taken_again_and_a_newer_one_fences_it_off():
    async def test(cluster, engine):
        async with engine.open(SPEC):
            pass
        session = engine._session
        cluster.keepers["a"]._leases.clear()
        async with engine.open(SPEC):
            pass
        assert engine._session is session
        newer = RayEngine(cluster, SCALE)
        async with newer.open(SPEC):
            assert newer._session.incarnation > session.incarnation
            for _ in range(2):
                with pytest.raises(Infrastructure, match="a newer process of dgm works on this run"):
                    async with engine.open(SPEC):
                        pass
        newer._session.keeping.cancel()
        await asyncio.gather(newer._session.keeping, return_exceptions=True)

    perform(test)
