"""Runs of schema 4, whose calls are traces, are read, gone on with, replayed and packed as before."""

import asyncio
import hashlib
import json
from pathlib import Path

import pytest

from dgm.archive.events import SCHEMA_VERSION, ModelCalled
from dgm.archive.journal import CallReader
from dgm.archive.packed import unpack
from dgm.archive.run import Run
from dgm.archive.verifying import verify
from dgm.domain import ActionId, Usage
from dgm.exports.pack import pack
from dgm.gateway.journal import RunJournal
from dgm.messages import CallKey, PaidCall, WireProtocol, WireReply, WireRequest
from tests.support.pins.agents import agent_of, question
from tests.support.pins.door import KEYS, make_settings, open_door, open_replay
from tests.support.runs.packable import ALICE

pytestmark = pytest.mark.starts_processes

PACKS = Path(__file__).parent / "schema_4"
"""Packed by version 4: a search with the offline model, and one whose agents spoke Chat over HTTP."""
CALLS = {
    "small": (65, "acafed5cc52b57abe877f48a1f92e63dcb32fc707f6920ed792befc73e07775a"),
    "wire": (9, "e4a6bf2b56b7cbbd2ed7c0377594c514b7ed09c14d3bf1f38cec4a64cdf508f8"),
}
"""The number of calls, and the digest of what version 4 read of them."""
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(params=CALLS)
def older(request, tmp_path):
    """A run's name and folder."""
    unpack(PACKS / f"{request.param}.dgm", tmp_path / "run")
    return request.param, tmp_path / "run"


@pytest.fixture
def wire(tmp_path):
    unpack(PACKS / "wire.dgm", tmp_path / "run")
    return tmp_path / "run"


def tools(calls):
    return [[call.id, call.name, call.arguments] for call in calls]


def summary(run):
    """The number of calls, and a digest of all that is read of them."""
    reader, found = CallReader(run.store), []
    for item in run.store.read():
        call = item.event
        if isinstance(call, ModelCalled):
            request, reply = reader.exchange(call)
            said = [
                [each.role.value, each.text, tools(each.calls), each.call_id] for each in request.messages
            ]
            answered = [reply.text, tools(reply.calls), reply.stop.value, reply.error, reply.usage.usd]
            raw = reader.request(call)
            body = dict(raw.body) if isinstance(raw, WireRequest) else None
            text = json.dumps([said, [tool.name for tool in request.tools], answered, body], sort_keys=True)
            found.append((call.action, call.number, hashlib.sha256(text.encode()).hexdigest()[:16]))
    return len(found), hashlib.sha256(json.dumps(found).encode()).hexdigest()


def test_all_exchanges_are_read_as_they_were(older):
    name, folder = older
    with Run.open(folder) as run:
        assert summary(run) == CALLS[name]
        assert run.store.query("PRAGMA user_version") == [(4,)]


def test_a_pack_of_one_holds_the_same_calls_in_todays_form(older, tmp_path):
    name, folder = older
    pack(folder, tmp_path / "new.dgm", ALICE)
    unpack(tmp_path / "new.dgm", tmp_path / "back")
    with Run.open(tmp_path / "back") as run:
        assert summary(run) == CALLS[name]
        assert not any(call.request or call.reply for call in run.store.calls(ActionId(1)))
        assert len(RunJournal(run).cut_calls(ActionId(1))) == (name == "wire")
    assert verify(tmp_path / "back")["exchanges"] == verify(folder)["exchanges"] == CALLS[name][0]


def test_it_goes_on_in_the_table(wire):
    request = WireRequest(WireProtocol.CHAT, {"messages": [{"role": "user", "content": "new"}]})
    reply = WireReply(WireProtocol.CHAT, b"{}", False, Usage(1, 2, 3))
    with Run.open(wire, write=True) as run:
        journal = RunJournal(run)
        asyncio.run(journal.record(PaidCall(CallKey(ActionId(2), 2), "m", "solve", request, reply, 0.1)))
        assert [one.request for one in journal.recall(ActionId(2), [2])[0]] == [request]
        assert [one.request.body["messages"][1]["content"] for one in journal.cut_calls(ActionId(1))] == [
            "Cut me off."
        ]
        assert run.store.query("PRAGMA user_version") == [(SCHEMA_VERSION,)]
        assert journal.numbers(ActionId(1)) == (9, set(range(1, 9)))
    assert verify(wire)["exchanges"] == 10


@pytest.mark.parametrize("go_on", [open_door, open_replay])
def test_recorded_answers_are_served_without_the_provider(wire, go_on, monkeypatch):
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)

    async def scenario():
        async with go_on(wire, make_settings("chat", NOWHERE)) as door:
            async with agent_of(door, 2) as agent:
                told = (await agent.read("chat", question("chat", "Answer me."))).text
            async with agent_of(door, 1) as agent:
                large = await agent.read("chat", question("chat", "List more. " * 8000, stream=True))
                refused = await agent.post("chat", question("chat", "Too much. " * 9000))
            return told, large.text, refused.json()["error"]["code"]

    told, large, code = asyncio.run(asyncio.wait_for(scenario(), 60))
    assert told == large != ""
    assert code == "context_length_exceeded"
