"""Sandboxes on the nodes of a cluster: what is asked of them arrives, and what fails there is never a verdict."""

import asyncio
import sys
from dataclasses import replace

import pytest

from dgm.config import ScaleSettings
from dgm.domain import Entry
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.protocols import Mount, SandboxSpec, SharedSocket
from dgm.sandboxes.ray import engine as engines
from dgm.sandboxes.ray import node as nodes
from tests.support.local_cluster import ENGINE, PlainEngine, empty_engine, perform_on_cluster

SPEC = SandboxSpec("python", {"dgm.run": "r1"})
SCALE = ScaleSettings().model_copy(update={"node_engine": ENGINE})


@pytest.fixture(autouse=True)
def _empty():
    with empty_engine():
        yield


def perform(test, *, scale=SCALE, **room):
    perform_on_cluster(test, scale, **(room or {"a": 2}))


async def use(engine, spec=SPEC, seconds=0.0):
    async with engine.open(spec):
        await asyncio.sleep(seconds)


@pytest.mark.starts_processes
def test_what_is_asked_of_a_sandbox_arrives():
    async def test(cluster, engine):
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
            (spec,) = PlainEngine.specs
            assert (spec.labels["dgm.run"], spec.labels["dgm.node"]) == ("r1", "a")
        assert (PlainEngine.specs, cluster.room) == ([], {"a": 2})

    perform(test)


def test_more_sandboxes_than_there_is_room_for_wait():
    async def test(cluster, engine):
        await asyncio.gather(*(use(engine, seconds=0.01) for _ in range(6)))
        assert (len(cluster.placed), len(cluster.actors), cluster.room) == (6, 1, {"a": 1})

    perform(test, a=1)


def test_room_that_does_not_come_in_time_is_said():
    async def test(_, engine):
        async with engine.open(SPEC):
            with pytest.raises(Infrastructure, match=r"no node had room within 0 s \(scale\.wait_s\)"):
                await use(engine)

    perform(test, scale=SCALE.model_copy(update={"wait_s": 0.05}), a=1)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (replace(SPEC, cpus=64.0), Infrastructure, "no node of the cluster has 64 processors, 1024 MB for a"),
        (replace(SPEC, image="nope"), UserError, "nope"),
        (replace(SPEC, runtime="python"), UserError, "nodes show no second image"),
    ],
)
def test_what_no_node_can_open_is_said_at_once(spec, error, message):
    async def test(_, engine):
        with pytest.raises(error, match=message):
            await use(engine, spec)

    perform(test)


def test_an_image_of_a_task_needs_docker_on_a_node():
    async def test(cluster, engine):
        with pytest.raises(Infrastructure, match="has 1 processors, 1024 MB, and Docker,"):
            await use(engine, replace(SPEC, image="docker:x"))
        assert cluster.room == {"a": 2}

    perform(test)


def test_shown_folders_arrive_and_constant_ones_stay(tmp_path):
    (tmp_path / "tool").write_text("x")
    mounts = [Mount(tmp_path, "/opt/x", digest="d"), Mount(tmp_path, "/opt/y")]

    async def test(cluster, engine):
        shown = []
        for _ in range(2):
            async with engine.open(replace(SPEC, mounts=mounts)):
                constant, other = PlainEngine.specs[0].mounts
                assert [(mount.source / "tool").read_text() for mount in (constant, other)] == ["x", "x"]
                shown.append((constant.source, other.source))
        assert shown[0][0] == shown[1][0]
        assert shown[0][0].exists()
        assert not shown[0][1].exists()

    perform(test)


def test_few_unused_folders_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes, "UNUSED_FOLDERS", 2)
    (tmp_path / "tool").write_text("x")

    async def test(cluster, engine):
        for digest in "abcab":
            await use(engine, replace(SPEC, mounts=[Mount(tmp_path, "/opt/x", digest)]))
        assert len(list(cluster.actors[0].node._folder.iterdir())) == 2

    perform(test)


_ASK = """
import socket, sys
near = socket.socket(socket.AF_UNIX); near.connect(sys.argv[1]); near.sendall(b"hello\\n")
print(near.makefile().readline().strip(), flush=True)
"""


@pytest.mark.starts_processes
def test_programs_reach_the_heads_socket_and_without_it_count_for_nothing(tmp_path):
    async def answer(reader, writer):
        writer.write(b"answer to " + await reader.readline())
        writer.close()

    async def test(cluster, engine):
        server = await asyncio.start_unix_server(answer, str(tmp_path / "gateway.sock"))
        shared = SharedSocket(tmp_path / "gateway.sock", "/run/dgm/gateway.sock")
        async with engine.open(replace(SPEC, socket=shared)) as sandbox:
            near = PlainEngine.specs[0].socket
            assert near.target == shared.target
            ask = [sys.executable, "-c", _ASK, str(near.source)]
            assert (await sandbox.exec(ask, timeout_s=30)).output == b"answer to hello\n"
            (opened,) = cluster.actors[0].node._opened.values()
            opened.cut.set_result("the connection was cut")
            with pytest.raises(Infrastructure, match="the connection was cut"):
                await sandbox.exec(["sleep", "30"], timeout_s=60)
        assert not near.source.exists()
        server.close()

    perform(test)


@pytest.mark.starts_processes
def test_a_dead_node_is_no_verdict_and_the_others_go_on():
    async def test(cluster, engine):
        async with engine.open(SPEC) as sandbox, engine.open(SPEC) as other:
            running = asyncio.create_task(sandbox.exec(["sleep", "30"], timeout_s=60))
            await asyncio.sleep(0.2)
            cluster.died["a"].set()
            for lost in (running, other.halt(), other.exec(["true"], timeout_s=20)):
                with pytest.raises(Infrastructure, match="lost"):
                    await lost
        async with engine.open(SPEC) as sandbox:
            assert (await sandbox.exec(["true"], timeout_s=20)).exit_code == 0
        assert cluster.placed == ["a", "a", "b"]

    perform(test, a=2, b=2)


@pytest.mark.starts_processes
def test_what_ran_while_a_node_stood_still_counts_for_nothing():
    async def test(cluster, engine):
        async with engine.open(SPEC) as sandbox:
            running = asyncio.create_task(sandbox.exec(["sleep", "0.2"], timeout_s=20))
            await asyncio.sleep(0.1)
            watch = cluster.actors[0].node._watch
            watch._gap_end = watch.beat() + 1.0
            with pytest.raises(Infrastructure, match="stood still"):
                await running

    perform(test)


def test_a_node_whose_engine_fails_is_left_alone_while_others_are_there(monkeypatch):
    async def test(cluster, engine):
        PlainEngine.broken_nodes.add("a")
        with pytest.raises(Infrastructure, match="no sandbox on the node a: the engine is dead"):
            await use(engine)
        await use(engine)
        await use(engine)
        PlainEngine.broken_nodes.clear()
        cluster.room["b"] = 0
        monkeypatch.setattr(engines, "_LOOK_AGAIN_S", 0.02)
        engine._nodes["a"].rests_until -= engines.REST_S - 0.1
        await use(engine)
        assert cluster.placed == ["a", "b", "b", "a"]
        assert cluster.room == {"a": 1, "b": 0}

    perform(test, a=1, b=1)


def test_a_node_with_another_dgm_is_not_used(monkeypatch):
    builds = iter(["other", *["same"] * 10])

    async def test(cluster, engine):
        monkeypatch.setattr(engines, "describe_build", lambda: next(builds))
        await use(engine)
        assert cluster.placed == ["a", "b"]
        await use(engine)
        assert cluster.placed == ["a", "b", "b"]

    monkeypatch.setattr(nodes, "describe_build", lambda: "same")
    perform(test, a=1, b=1)


def test_no_usable_node_is_one_line(monkeypatch):
    async def test(cluster, engine):
        with pytest.raises(
            Infrastructure, match=r"can be used: b: has another dgm .here; the head has other"
        ):
            await use(engine)
        assert cluster.room == {"a": 1, "b": 1}

    monkeypatch.setattr(engines, "describe_build", lambda: "other")
    monkeypatch.setattr(nodes, "describe_build", lambda: "here")
    perform(test, a=1, b=1)


def test_a_cancelled_sandbox_is_removed():
    async def test(cluster, engine):
        using = asyncio.create_task(use(engine, seconds=30))
        while not PlainEngine.specs:
            await asyncio.sleep(0.01)
        using.cancel()
        await asyncio.gather(using, return_exceptions=True)
        assert (PlainEngine.specs, cluster.room) == ([], {"a": 2})

    perform(test)


def test_a_sandbox_that_cannot_be_closed_ends_its_actor(monkeypatch):
    monkeypatch.setattr(engines, "_CLOSE_S", 0.05)
    monkeypatch.setattr(PlainEngine, "close_s", 0.5)

    async def test(cluster, engine):
        await use(engine)
        monkeypatch.setattr(PlainEngine, "close_s", 0.0)
        assert cluster.actors[0].gone.is_set()
        await use(engine)
        assert len(cluster.actors) == 2

    perform(test)


def test_labels_are_reaped_on_all_nodes():
    async def test(_, engine):
        PlainEngine.specs += [replace(SPEC, labels={"dgm.run": run}) for run in ("r1", "r2")]
        assert await engine.reap({"dgm.run": "r1"}) == 1
        assert [spec.labels["dgm.run"] for spec in PlainEngine.specs] == ["r2"]

    perform(test)


def test_an_engine_serves_several_event_loops():
    for _ in range(2):
        perform(lambda _, engine: use(engine))
