"""A search on two nodes of a real Ray cluster on this machine: the same verdicts, and a killed node costs none."""

import asyncio
import contextlib

import pytest

from dgm import assemble
from dgm.archive.events import ActionLost, TaskGraded
from dgm.benchmarks.opening import open_suite
from dgm.config import resolve
from dgm.domain import Verdict
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.ray.engine import RayEngine
from dgm.sandboxes.ray.ray_cluster import connect
from dgm.sandboxes.scratch import list_sandboxes

pytestmark = [pytest.mark.ray, pytest.mark.sandbox]
ray = pytest.importorskip("ray")

SETTINGS = {
    "model": "offline",
    "benchmark": "starter",
    "workers": 1,
    "seed": 3,
    "limits.check_s": 60,
    "scale.node_engine": "bubblewrap",
    "scale.lease_s": 5,
}
_STORE_BYTES = 100 * 2**20


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """The cluster as dgm joins it, a head without processors, and two nodes."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(assemble.__file__).removesuffix("/dgm/assemble.py"))
    common = {"object_store_memory": _STORE_BYTES, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **common})
    nodes = [made.add_node(num_cpus=2, object_store_memory=_STORE_BYTES) for _ in range(2)]
    yield connect(made.address), made, nodes
    ray.shutdown()
    made.shutdown()


def perform(folder, engine, evaluations, meanwhile=None):
    """Search; return the verdicts by agent and task, and all events."""
    settings = resolve(None, (), {**SETTINGS, "budget.evaluations": evaluations})
    parts = assemble.RunParts(engine, open_suite(settings.benchmark, engine, settings.benchmarks))
    events = []

    async def go(run):
        async with assemble.search(run, settings, parts, lambda each: events.append(each.event)) as search:
            beside = asyncio.create_task(meanwhile(events)) if meanwhile else None
            await search.go()
            if beside is not None:
                await beside

    with assemble.create(folder, settings, parts) as run:
        asyncio.run(go(run))
    graded = [event.outcome for event in events if isinstance(event, TaskGraded)]
    return {
        (each.agent, each.task): each.verdict for each in graded if each.verdict is not Verdict.INVALID
    }, events


def test_verdicts_are_those_of_this_machine_alone(cluster, tmp_path):
    found, _ = perform(tmp_path / "far", RayEngine(cluster[0], resolve(None, (), SETTINGS).scale), 6)
    here, _ = perform(tmp_path / "here", BubblewrapEngine(), 6)
    assert len(found) == 6
    assert found == here


def test_a_node_killed_in_mid_task_costs_a_repetition(cluster, tmp_path, capfd):
    joined, made, nodes = cluster
    engine = RayEngine(joined, resolve(None, (), SETTINGS).scale)

    async def kill_one(events):
        while not any(isinstance(event, TaskGraded) for event in events):
            await asyncio.sleep(0.1)
        while True:
            await asyncio.sleep(0.1)
            labels = [note.labels for _, note in list_sandboxes() if "dgm.node" in note.labels]
            for node in nodes:
                if any(each["dgm.node"] == node.node_id for each in labels):
                    await asyncio.to_thread(made.remove_node, node, allow_graceful=False)
                    return

    found, events = perform(tmp_path / "killed", engine, 4, kill_one)
    assert len(found) == 4
    lost = [event for event in events if isinstance(event, ActionLost)]
    invalid = [
        event
        for event in events
        if isinstance(event, TaskGraded) and event.outcome.verdict is Verdict.INVALID
    ]
    assert lost or invalid
    assert capfd.readouterr().out == ""
    with contextlib.suppress(FileNotFoundError):
        assert [note.labels for _, note in list_sandboxes() if "dgm.node" in note.labels] == []
