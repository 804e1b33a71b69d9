"""Hand-made children of the seed in real sandboxes: each is stopped at the stage that it fails, a good one at none."""

import asyncio
import json
from dataclasses import replace

import pytest

from dgm.archive.events import ActionStarted, AgentStillborn
from dgm.assemble import create, open_worker, parts_of
from dgm.config import resolve
from dgm.domain import SEED, Born, Entry, Expand, Stillborn, TaskId
from dgm.meta.seeds import read_seed
from dgm.meta.similarity import VERSION
from dgm.protocols import Proposal
from dgm.search.prepare import RunController

pytestmark = [pytest.mark.sampled, pytest.mark.sandbox, pytest.mark.slow]

SOLVED = (TaskId("templates-zero-becomes-fallback"), TaskId("templates-list-of-names-jumps"))
"""By the seed with the offline model."""
STAGES = [
    *("patch", "unchanged", "protected", "size", "conduct", "duplicate", "syntax"),
    *("contract", "novelty", "check", "improve", "probe"),
]
PARENT = read_seed()


def changed(path, old, new):
    """The seed with one edit."""
    text = PARENT[path].data.decode()
    assert text.count(old) == 1
    return {**PARENT, path: Entry(text.replace(old, new).encode(), PARENT[path].mode)}


GOOD = {**PARENT, "agent/notes.py": Entry(b'def note(text):\n    return "note: " + text\n')}
MAIN, START = "agent/__main__.py", "    return loop.work(job)"
BAD = [
    ({**GOOD, "agent/notes.py/x": Entry(b"")}, "patch"),
    (PARENT, "unchanged"),
    ({**PARENT, "agent.toml": Entry(PARENT["agent.toml"].data + b"\n")}, "protected"),
    ({**PARENT, **{f"more/{n}": Entry(b"%d" % n) for n in range(501)}}, "size"),
    (changed(MAIN, START, '    """Works."""\n' + START), "syntax"),
    (
        {
            **GOOD,
            "agent/notes.py": Entry(GOOD["agent/notes.py"].data.replace(b"+ text", b"+ text + chr(10)")),
        },
        "novelty",
    ),
    (changed(MAIN, "import sys\n", "import sys\nimport no_such_module\n"), "check"),
    (changed(MAIN, START, "    return 0"), "improve"),
    (changed(MAIN, START, '    return loop.work(job) if job["kind"] == "improve" else 0'), "probe"),
]


class ByHand:
    """Proposes what the test made."""

    name = "by-hand"

    def __init__(self):
        self.child = GOOD

    async def make(self, brief, bench):
        return Proposal(self.child, "made by hand", b"")


def test_each_child_is_stopped_where_it_fails_and_a_good_one_passes(tmp_path):
    flags = {
        "model": "offline",
        "sandbox": "bubblewrap",
        "gates.novelty": "similarity",
        "gates.novelty_threshold": 0.6,
    }
    settings = resolve(None, [], flags)
    parts, operator = parts_of(settings), ByHand()
    told = {}

    async def expanded(run, controller, worker, child):
        operator.child = child
        action, what = run.tree.next_action, Expand((SEED,), operator.name, probes=SOLVED)
        run.append(ActionStarted(action, what))
        outcome = await worker.perform(action, what)
        born = isinstance(outcome, Born)
        run.append(controller.birth(action, outcome) if born else AgentStillborn(action, outcome))
        return outcome, json.loads(run.traces.get(outcome.cost.traces["vetting"]))["stages"]

    async def go(run):
        controller = RunController(run, settings)
        async with open_worker(run, settings, parts) as worker:
            worker = replace(worker, operators={operator.name: operator})
            told["born"] = await expanded(run, controller, worker, GOOD)
            for child, stage in [(GOOD, "duplicate"), *BAD]:
                told[stage] = await expanded(run, controller, worker, child)

    with create(tmp_path / "run", settings, parts) as run:
        asyncio.run(go(run))
        probed = [call.role for n in range(1, 12) for call in run.store.calls(n)]
        assert set(probed) == {"probe"}
        assert run.tree.evaluations == 0

    outcome, stages = told.pop("born")
    assert isinstance(outcome, Born)
    assert outcome.syntax.startswith(VERSION)
    assert [each["stage"] for each in stages] == STAGES
    assert all(each["result"] in ("passed", "skipped") and each["seconds"] > 0 for each in stages)
    assert [tried["verdict"] for tried in stages[-1]["tries"]] == ["resolved"]
    for stage, (dead, ran) in told.items():
        assert isinstance(dead, Stillborn)
        assert dead.stage == stage, dead
        assert [each["stage"] for each in ran] == STAGES[: STAGES.index(stage) + 1]
        assert ran[-1]["result"] == "failed"
    assert len(told["probe"][1][-1]["tries"]) == 2
    assert {"probe-1-patch", "probe-2-log"} <= set(told["probe"][0].cost.traces)
