"""A search on two nodes of a real Ray cluster on this machine: the same verdicts, and a killed node or head costs none.

With ``-s`` the first test prints what a search on the cluster takes, compared with one on the same engine without Ray.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from dgm import assemble
from dgm.archive.events import ActionLost, TaskGraded
from dgm.benchmarks.opening import open_suite
from dgm.config import resolve
from dgm.domain import Verdict
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.ray.cluster import connect
from dgm.sandboxes.ray.engine import RayEngine
from dgm.sandboxes.scratch import list_sandboxes
from tests.e2e.killing import audit

pytestmark = [pytest.mark.ray, pytest.mark.sandbox]
ray = pytest.importorskip("ray")

SETTINGS = {
    "model": "offline",
    "benchmark": "starter",
    "workers": 1,
    "seed": 3,
    "limits.check_s": 60,
    "scale.node_engine": "bubblewrap",
}
_STORE_BYTES = 100 * 2**20
_LEFT_S = 30.0


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A head without processors, and two nodes."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(assemble.__file__).removesuffix("/dgm/assemble.py"))
    common = {"object_store_memory": _STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **common})
    cluster.two = [
        cluster.add_node(num_cpus=2, memory=4 * 2**30, object_store_memory=_STORE_BYTES) for _ in range(2)
    ]
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def search(folder, engine, evaluations, meanwhile=None):
    """Search; return the verdicts by agent and task, all events, and the seconds that it took."""
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
        began = time.monotonic()
        asyncio.run(go(run))
        seconds = time.monotonic() - began
    outcomes = [event.outcome for event in events if isinstance(event, TaskGraded)]
    verdicts = {
        (outcome.agent, outcome.task): outcome.verdict
        for outcome in outcomes
        if outcome.verdict is not Verdict.INVALID
    }
    return verdicts, events, seconds


def busy_nodes():
    """Return the ids of the nodes with open sandboxes."""
    with contextlib.suppress(FileNotFoundError):
        return {note.labels["dgm.node"] for _, note in list_sandboxes() if "dgm.node" in note.labels}
    return set()


def assert_nothing_left():
    ends = time.monotonic() + _LEFT_S
    while busy_nodes() and time.monotonic() < ends:
        time.sleep(0.2)
    assert busy_nodes() == set()


def test_verdicts_are_those_of_this_machine_alone(cluster, tmp_path, capfd):
    engine = RayEngine(connect(cluster.address), resolve(None, (), SETTINGS).scale)
    search(tmp_path / "warm", engine, 1)
    far, _, far_s = search(tmp_path / "far", engine, 6)
    here, _, here_s = search(tmp_path / "here", BubblewrapEngine(), 6)
    assert capfd.readouterr().out == ""
    with capfd.disabled():
        print(f"\n6 evaluations: {far_s:.1f} s with Ray, {here_s:.1f} s without: {far_s / here_s:.2f} ×")
    assert len(far) == 6
    assert far == here
    assert_nothing_left()


def test_a_node_killed_in_mid_task_costs_a_repetition(cluster, tmp_path):
    engine = RayEngine(connect(cluster.address), resolve(None, (), SETTINGS).scale)

    async def kill_one(events):
        while not any(isinstance(event, TaskGraded) for event in events):
            await asyncio.sleep(0.1)
        while not (busy := [node for node in cluster.two if node.node_id in busy_nodes()]):
            await asyncio.sleep(0.02)
        await asyncio.to_thread(cluster.remove_node, busy[0], allow_graceful=False)

    verdicts, events, _ = search(tmp_path / "killed", engine, 4, kill_one)
    assert len(verdicts) == 4
    graded = [event.outcome for event in events if isinstance(event, TaskGraded)]
    invalid = [outcome for outcome in graded if outcome.verdict is Verdict.INVALID]
    assert invalid or [event for event in events if isinstance(event, ActionLost)]
    assert len(graded) - len(invalid) == 4
    here, _, _ = search(tmp_path / "here", BubblewrapEngine(), 4)
    same = verdicts.keys() & here.keys()
    assert same
    assert [verdicts[key] for key in same] == [here[key] for key in same]
    assert_nothing_left()
    found = audit(tmp_path / "killed")
    assert (found["graded_twice"], found["calls_twice"], found["fsck"], found["leftovers"]) == (0, 0, 0, [])


def test_a_killed_head_leaves_no_sandbox(cluster, tmp_path):
    words = ["run", "--name", "r", "--set", f"engine=ray://{cluster.address}", "--max-evaluations", "20"]
    words += [word for key in ("model", "seed", "workers") for word in (f"--{key}", str(SETTINGS[key]))]
    words += ["--set", "scale.node_engine=bubblewrap"]
    environment = {**os.environ, "DGM_ARCHIVE": str(tmp_path / "archive")}
    head = subprocess.Popen([sys.executable, "-m", "dgm", *words], env=environment, start_new_session=True)
    try:
        while not busy_nodes():
            assert head.poll() is None
            time.sleep(0.05)
    finally:
        head.send_signal(signal.SIGKILL)
        head.wait()
    assert_nothing_left()
