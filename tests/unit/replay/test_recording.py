"""A recorded run as something to work from: it is read, and never written."""

import asyncio
from types import SimpleNamespace

import pytest

from dgm.archive.events import ActionStarted, RunStopped
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, Entry, Expand, Usage
from dgm.errors import ArchiveCorrupt, DgmError
from dgm.gateway.journal import RunJournal
from dgm.messages import CallKey, Message, PaidCall, Reply, Request, Role
from dgm.replay.again import Replayer, ReplayJournal, ReplayRun, _perform_step, make_recorded_models
from dgm.search.prepare import AgentIndex
from tests.support.runs.replayed import MadeUp, session
from tests.support.runs.trees import named

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        session(made, named("hgm"), Settings(workers=2), MadeUp(made), evaluations=25)
        yield made


def call(action, number, model="openai/one"):
    request = Request((Message(Role.USER, "hi"),), model=model)
    return PaidCall(CallKey(action, number), model, "solve", request, Reply("ho", usage=Usage(1, 2, 3)), 0.1)


def expansions(run):
    return [
        item
        for item in run.store.read()
        if isinstance(item.event, ActionStarted) and isinstance(item.event.action, Expand)
    ]


def test_recorded_exchanges_are_served_and_nothing_is_taken(run):
    asyncio.run(RunJournal(run).record(call(ActionId(1), 1)))
    recording = ReplayJournal(run)
    last = run.store.last
    assert [exchange.reply.text for exchange in recording.recall(ActionId(1), [1])[0]] == ["ho"]
    recording.refuse(ActionId(1), "solve", 400, "no", "no")
    with pytest.raises(DgmError, match="action 1: a replay pays for no call"):
        asyncio.run(recording.record(call(ActionId(1), 2)))
    assert run.store.last == last


def test_models_speak_under_the_recorded_names(run):
    asyncio.run(RunJournal(run).record(call(ActionId(1), 1, "openai/one")))
    models = make_recorded_models(run, Settings(model="offline"), {})
    assert {role: model.name for role, model in models.items()} == {
        "solve": "openai/one",
        "improve": "offline",
        "diagnose": "offline",
        "probe": "offline",
    }


def test_what_is_made_beside_a_run_stays_out_of_it(run, tmp_path):
    kept = run.traces.put(b"then")
    files = sorted(run.folder.rglob("*"))
    beside = ReplayRun(run, tmp_path / "scratch")
    seed = run.tree.agents[0].commit
    commit = beside.repository.commit({"new.py": Entry(b"1")}, [seed])
    made = beside.traces.put(b"now")
    assert beside.repository.source(seed) == run.repository.source(seed)
    assert beside.repository.source(commit)["new.py"].data == b"1"
    assert (beside.traces.get(kept), beside.traces.get(made)) == (b"then", b"now")
    with pytest.raises(DgmError, match="writes nothing into the run that it replays"):
        beside.append(RunStopped("x"))
    assert sorted(run.folder.rglob("*")) == files


def test_an_expansion_is_compared_with_the_agents_of_its_time(run):
    index, starts = AgentIndex(run), expansions(run)
    assert len(starts) >= 3
    for start in starts:
        born = [
            agent
            for agent in run.tree.agents
            if run.outcome(agent.action) is None or run.outcome(agent.action).seq < start.seq
        ]
        assert sorted(index.contents(start.seq).values()) == sorted(f"agent {agent.id}" for agent in born)
        assert set(index.syntax(start.seq).values()) <= {f"agent {agent.id}" for agent in born}
        parent = start.event.action.parents[0]
        children = {f"agent {agent.id}": agent.commit for agent in born if agent.parents[:1] == (parent,)}
        assert index.siblings(parent, start.seq) == children


@pytest.mark.parametrize("starts", [[(1, "first")], [(1, "first"), (7, "second"), (9, "third")], []])
def test_a_step_is_performed_as_it_was_started_last(starts, tmp_path):
    class Echo:
        async def perform(self, action, what):
            return action, what

    store = SimpleNamespace(starts_of_action=lambda action: starts)
    replayer = Replayer(SimpleNamespace(store=store, folder=tmp_path), Echo(), {})
    step = _perform_step(replayer, SimpleNamespace(action=ActionId(4)))
    if starts:
        assert asyncio.run(step) == (4, starts[-1][1])
        return
    with pytest.raises(ArchiveCorrupt, match="action 4 was never started"):
        asyncio.run(step)
