"""The operators crossover, invent and module make a child for real: in sandboxes, with the offline model and over HTTP.

Over HTTP the model answers as language models do: prose around JSON, wrong JSON first, tools that nobody offered, an
edit that fits nowhere.
"""

import shutil

import pytest

from dgm.archive.events import AgentBorn
from dgm.archive.snapshots import write_folder
from dgm.config import resolve
from dgm.domain import AgentId, Evaluate, Expand, TaskId
from dgm.meta.contract import read_contract
from dgm.meta.module import files_of_part
from tests.support.fields import ancestor, specialist
from tests.support.hosted import KEY, PROVIDERS, read_exchanges
from tests.support.runs.planned import PATIENT, begun, performed
from tests.support.wire_server import Talkative, WireServer
from tests.support.wire_server.talkative import COMPLAINT, NOWHERE, UNOFFERED

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

BY_HAND = ((("ledger", "settings"), "line-ends"), (("tokens", "router"), "log-results"))
PLANS = {
    "crossover": (Expand((AgentId(1), AgentId(2)), "crossover"), PROVIDERS["openai-chat"]),
    "invent": (Expand((AgentId(1),), "invent"), PROVIDERS["anthropic"]),
    "module": (Expand((AgentId(1),), "module", aim="context"), PROVIDERS["openai"]),
}


# The offline model makes a child by every operator in test_markers.py too.
@pytest.fixture(params=[pytest.param("offline", marks=pytest.mark.minutes), "talkative"])
def by(request, tmp_path, monkeypatch):
    """Makes a child of two specialists, and closes the run."""
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    opened = []

    def making(operator):
        what, provider = PLANS[operator]
        seed = tmp_path / "seed"
        write_folder(ancestor(), seed)
        flags = {"seed_agent": str(seed), "operator": f"self-edit+{operator}", "sandbox": "bubblewrap"}
        if request.param == "offline":
            opened.append(made(tmp_path, resolve(None, PATIENT, {**flags, "model": "offline"}), what))
            return opened[-1]
        monkeypatch.setenv(provider.key_env, KEY)
        with WireServer(key=KEY, models=(provider.own_name,), brain=Talkative()) as server:
            # What it answers is no JSON at first, which a schema would forbid.
            reached = provider.words(server.url, "answer_schema=false")[3::2]
            settings = resolve(None, [*PATIENT, *reached], {**flags, "model": provider.model})
            opened.append(made(tmp_path, settings, what))
        return opened[-1]

    making.talks = request.param == "talkative"
    yield making
    for run in opened:
        run.close()


def made(folder, settings, what):
    hand_made = [(specialist(fields, change), f"changed {change}") for fields, change in BY_HAND]
    run = begun(folder / "run", settings, hand_made)
    # Who has tried nothing is not shown; this one declines at once.
    performed(run, settings, [[Evaluate(AgentId(2), TaskId("ledger-shares-add-up-to-more"))], [what]])
    return run


def the_child(run):
    """The one child with its source, and all that was asked for it."""
    assert len(run.tree.agents) == 4, list(run.store.read(0))[-3:]
    child = run.tree.agents[3]
    return child, run.repository.source(child.commit), read_exchanges(run, child.action)


def called(asked):
    """Names and arguments of the tools that the model called."""
    return [(call.name, call.arguments) for _, reply in asked for call in reply.calls]


def trace(run, child, name):
    (born,) = (
        each.event
        for each in run.store.read(0)
        if isinstance(each.event, AgentBorn) and each.event.id == child.id
    )
    return run.traces.get(born.outcome.cost.traces[name]).decode()


def slipped(asked):
    """An improve job in which the model called a tool that is not there, and an edit that fits nowhere."""
    calls = called(asked)
    return any(name == UNOFFERED for name, _ in calls) and any(NOWHERE.strip() in words for _, words in calls)


def test_crossover(by):
    run = by("crossover")
    child, source, asked = the_child(run)
    assert child.parents == (1, 2)
    table = source["agent/fields.py"].data.decode()
    assert all(f'"{field}",' in table for fields, _ in BY_HAND for field in fields)
    assert b"<<<<<<<" not in source["agent/fields.py"].data
    for path, of in (("agent/tools.py", 1), ("agent/loop.py", 2)):
        assert source[path] == run.repository.source(run.tree.agents[of].commit)[path]
    assert slipped(asked) == by.talks


def test_invent(by):
    run = by("invent")
    child, source, asked = the_child(run)
    parent = run.repository.source(run.tree.agents[1].commit)
    assert child.parents == (1,)
    assert source != parent
    assert source["agent.toml"] == parent["agent.toml"]
    assert not any(request.tools for request, _ in asked)
    opening = asked[0][0].messages[-1].text
    assert "- agent 1: solved 0 of 0; made by self-edit: changed line-ends" in opening
    assert "- agent 2: solved 0 of 1; made by self-edit: changed log-results" in opening
    complaints = [message.text for request, _ in asked for message in request.messages]
    assert any(text.startswith(COMPLAINT) for text in complaints) == by.talks
    log = trace(run, child, "log")
    assert ("could not be applied" in log) == by.talks
    assert len(asked) >= 3


def test_module(by):
    run = by("module")
    child, source, asked = the_child(run)
    parent = run.repository.source(run.tree.agents[1].commit)
    changed = {path for path in parent if parent[path] != source.get(path)}
    assert changed
    assert changed <= {*files_of_part(parent, "context", read_contract(parent))}
    assert "speaks of none" in trace(run, child, "statement")
    assert slipped(asked) == by.talks
