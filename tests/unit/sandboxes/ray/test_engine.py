"""Sandboxes on the nodes of a cluster: what is asked of them arrives, and what fails there is never a verdict."""

import asyncio
import contextlib
import sys
from dataclasses import replace

import pytest

from dgm.config import ScaleSettings
from dgm.domain import Entry
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.protocols import Mount, SandboxSpec, SharedSocket
from dgm.sandboxes.ray import keeper as keepers
from dgm.sandboxes.ray import wire
from dgm.sandboxes.ray.engine import RayEngine
from tests.support.local_cluster import ENGINE, LocalCluster, PlainEngine, perform_on_cluster

SPEC = SandboxSpec("python", {"dgm.run": "r1"})
SCALE = ScaleSettings(lease_s=3).model_copy(update={"node_engine": ENGINE})


@pytest.fixture(autouse=True)
def _empty():
    PlainEngine.left.clear()
    PlainEngine.broken_nodes.clear()


def perform(test, *, scale=SCALE, **room):
    perform_on_cluster(test, scale, **(room or {"a": 2}))


@pytest.mark.starts_processes
def test_what_is_asked_of_a_sandbox_arrives():
    async def test(_, engine):
        async with engine.open(SPEC) as sandbox:
            done = await sandbox.exec(["cat"], timeout_s=20, stdin=b"x" * 50, output_limit=20)
            assert (done.exit_code, done.output, done.truncated) == (0, b"x" * 20, True)
            files = {"a\udcff": Entry(b"\xff", 0o100755)}
            await sandbox.put(files, "/work")
            assert await sandbox.get("/work", limit_bytes=10) == files
            with pytest.raises(AgentFault) as raised:
                await sandbox.get("/work", limit_bytes=0)
            assert raised.value.stage == "size"
            with pytest.raises(AgentFault) as raised:
                await sandbox.exec(["fault"], timeout_s=20)
            assert (raised.value.stage, raised.value.output) == ("processes", b"so far")
            await sandbox.halt()
            (labels,) = PlainEngine.left
            assert (labels["dgm.run"], labels["dgm.node"]) == ("r1", "a")
        assert PlainEngine.left == []

    perform(test)


def test_a_host_is_used_again():
    async def test(cluster, engine):
        for _ in range(3):
            async with engine.open(SPEC):
                pass
        assert cluster.started == ["a"]

    perform(test)


def test_who_waits_gets_the_host_that_becomes_free():
    async def test(cluster, engine):
        async def use():
            async with engine.open(SPEC):
                await asyncio.sleep(0.01)

        await asyncio.gather(*(use() for _ in range(6)))
        assert cluster.started == ["a"]

    perform(test, a=1)


def test_other_needs_get_the_room_of_free_hosts():
    async def test(cluster, engine):
        for spec in (SPEC, replace(SPEC, cpus=2.0), SPEC):
            async with engine.open(spec):
                pass
        assert cluster.started == ["a", "a", "a"]

    perform(test, a=1)


def test_more_than_a_node_has_is_said_at_once():
    async def test(_, engine):
        with pytest.raises(Infrastructure, match="no node of the cluster has 64 processors"):
            async with engine.open(replace(SPEC, cpus=64.0)):
                pass

    perform(test)


def test_a_folder_is_sent_once_to_a_node(tmp_path):
    (tmp_path / "tool").write_text("x")
    sent = []

    async def test(cluster, engine):
        spec = replace(SPEC, mounts=[Mount(tmp_path, "/opt/x", digest="d")])

        async def use():
            async with engine.open(spec):
                await asyncio.sleep(0.05)

        store = keepers.NodeKeeper.store_folder

        async def count(self, *args):
            sent.append(args[1])
            return await store(self, *args)

        cluster.keeper("a").thing.store_folder = lambda *args: count(cluster.keepers["a"], *args)
        await asyncio.gather(*(use() for _ in range(3)))
        await use()
        facts = wire.decode(await cluster.keepers["a"].describe(ENGINE), wire.NodeFacts)
        assert (len(sent), facts.cache_bytes > 0, facts.sandboxes) == (1, True, 0)
        assert facts.cache_limit == SCALE.cache_mb * 2**20

    perform(test)


_ASK = """
import socket, sys
near = socket.socket(socket.AF_UNIX); near.connect(sys.argv[1]); near.sendall(b"hello\\n")
print(near.makefile().readline().strip(), flush=True)
near.makefile().readline()
"""


@pytest.mark.starts_processes
def test_programs_reach_the_heads_socket_until_the_way_is_lost(tmp_path, monkeypatch):
    async def answer(reader, writer):
        writer.write(b"answer to " + await reader.readline())
        await writer.drain()
        with contextlib.suppress(asyncio.CancelledError):
            await reader.read()
        writer.close()

    async def test(cluster, engine):
        server = await asyncio.start_unix_server(answer, str(tmp_path / "gateway.sock"))
        shared = SharedSocket(tmp_path / "gateway.sock", "/run/dgm/gateway.sock")
        async with engine.open(replace(SPEC, socket=shared)) as sandbox:
            (near,) = keepers_sockets(cluster)
            running = asyncio.create_task(sandbox.exec([sys.executable, "-c", _ASK, near], timeout_s=30))
            while not sandbox._link.pipe._received:
                await asyncio.sleep(0.01)
            await sandbox._link.pipe.break_off("there was no connection for 60 s")
            with pytest.raises(Infrastructure, match="lost the gateway: there was no connection"):
                await running
        server.close()

    perform(test)


def keepers_sockets(cluster):
    leases = [lease for keeper in cluster.keepers.values() for lease in keeper._leases.values()]
    return [str(path) for lease in leases for path in lease.sandboxes.values() if path]


def test_a_node_with_another_dgm_is_not_used(caplog):
    async def test(cluster, engine):
        async def old(_):
            facts = wire.NodeFacts("other", "0.0.9", "plain", "", 0, 0, 0, 0)
            return wire.encode(facts)

        cluster.keeper("a").thing.describe = old
        async with engine.open(SPEC):
            pass
        assert cluster.started == ["b"]
        assert "a has another dgm (0.0.9" in caplog.text

    perform(test, a=2, b=2)


def test_what_no_node_can_open_is_one_line():
    async def test(_, engine):
        with pytest.raises(
            Infrastructure, match="no node of the cluster has Docker, which the image x needs"
        ):
            async with engine.open(replace(SPEC, image="docker:x")):
                pass
        with pytest.raises(UserError, match="nope"):
            async with engine.open(replace(SPEC, image="nope")):
                pass

    perform(test)


def test_labels_are_reaped_on_all_nodes():
    async def test(_, engine):
        PlainEngine.left += [{"dgm.run": "r1"}, {"dgm.run": "r2"}]
        assert await engine.reap({"dgm.run": "r1"}) == 1
        assert PlainEngine.left == [{"dgm.run": "r2"}]

    perform(test)


def test_a_cluster_that_scales_itself_is_asked_for_room_until_the_session_ends():
    scale = SCALE.model_copy(update={"demand": 8})

    async def test(cluster, engine):
        cluster.room.clear()
        assert await engine.reap({"dgm.run": "r1"}) == 0
        waiting = asyncio.create_task(use(engine, SPEC))
        while not cluster.wishes:
            await asyncio.sleep(0.005)
        assert cluster.wishes == [(1.0, 1024, 8)]
        cluster.add_node("new", 1)
        await waiting
        await use(engine, replace(SPEC, cpus=0.5, memory_mb=2048))
        await use(engine, SPEC)
        assert cluster.wishes[1:] == [(1.0, 2048, 8)]
        engine._session.keeping.cancel()
        await asyncio.gather(engine._session.keeping, return_exceptions=True)
        assert cluster.wishes[2:] == [(1.0, 2048, 0)]

    perform(test, scale=scale)


async def use(engine, spec):
    async with engine.open(spec):
        pass


def test_a_cluster_is_asked_for_nothing_unless_the_settings_say_so():
    async def test(cluster, engine):
        await use(engine, SPEC)
        assert cluster.wishes == []

    perform(test)


def test_a_second_event_loop_begins_anew():
    cluster = LocalCluster(a=1)
    engine = RayEngine(cluster, SCALE)

    async def use():
        cluster.died, cluster.keepers = {"a": asyncio.Event()}, {}
        assert await engine.reap({"dgm.run": "r1"}) == 0
        async with engine.open(SPEC):
            pass

    for _ in range(2):
        asyncio.run(asyncio.wait_for(use(), 30))
    assert (PlainEngine.left, cluster.started) == ([], ["a", "a"])


def test_nodes_are_counted_with_their_busy_slots_and_failures():
    async def test(cluster, engine):
        async with engine.open(SPEC):
            (node,) = engine.nodes()
            assert (node.busy, node.opened, node.failures, node.problem) == (1, 1, 0, "")
        PlainEngine.broken_nodes.add("a")
        with pytest.raises(Infrastructure):
            async with engine.open(SPEC):
                pass
        (node,) = engine.nodes()
        assert (node.busy, node.opened, node.failures) == (0, 2, 1)

    perform(test)


def test_a_session_ends_well_while_a_lease_is_lost():
    async def test(_, engine):
        async with engine.open(SPEC):
            session = engine._session
        (lost, use) = list(session._uses.items())[-1]
        session.keeping.cancel()
        dropping = asyncio.ensure_future(session._drop(lost, use, Infrastructure("no answer")))
        ended, _ = await asyncio.gather(session.keeping, dropping, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError)

    perform(test, a=1, b=1, c=1)
