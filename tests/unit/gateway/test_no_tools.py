"""A model that takes no tools: the agent is told, pays nothing, and hears the same again in a repetition or replay."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dgm.archive.volatile_text import UNKNOWN
from dgm.domain import Usage
from dgm.gateway.lease import CallLimits, Lease
from dgm.messages import (
    NO_TOOLS,
    Exchange,
    Message,
    Reply,
    Request,
    RequestRefused,
    Role,
    WireProtocol,
    WireReply,
    WireRequest,
)
from dgm.models.builtin import RecordedModel
from tests.support.gateway.bench import ACTION, MemoryJournal, ask, gateway, talking
from tests.support.gateway.wire_provider import Provider, failing, whole

pytestmark = pytest.mark.slow

WORDS = "this model takes no tools: gemma does not support tools"
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


def work(folder: Path, model, journal):
    """What an agent gets that offers a tool, and then goes on with text; and its lease."""

    async def scenario():
        async with talking(gateway(folder, model, journal)) as (_, lease, http):
            return [await ask(http, tools=[TOOL]), await ask(http)], lease

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def test_an_agent_is_told_that_the_model_takes_no_tools_and_goes_on(tmp_path):
    journal, model = MemoryJournal(), Provider(failing(RequestRefused(NO_TOOLS, WORDS)), whole())
    ((status, told), (after, _)), lease = work(tmp_path / "a", model, journal)
    assert (status, told["error"]["code"], told["error"]["message"]) == (400, NO_TOOLS, WORDS)
    assert (after, lease.failure, lease.blameless) == (200, None, "")
    refused, answered = journal.paid.values()
    assert (refused.reply.usage, refused.reply.error) == (Usage(calls=1), NO_TOOLS)
    assert lease.usage == answered.reply.usage

    for again in (Provider(), RecordedModel("scripted")):
        (repeated, gone_on), lease = work(tmp_path / "b", again, journal)
        assert repeated == (status, told)
        assert (gone_on[0], lease.failure) == (200, None)


def exchange(number, tools, *, blank=False):
    body = {"model": "m", "messages": [{"role": "user", "content": str(number)}], **tools}
    request = WireRequest(WireProtocol.CHAT, body)
    reply = WireReply(WireProtocol.CHAT, json.dumps({}).encode(), False, Usage(1, 1, 1))
    return Exchange(number, replace(request, body={}) if blank else request, reply)


@pytest.mark.parametrize(
    ("paid", "takes"),
    [
        ([], True),
        ([exchange(1, {}), exchange(2, {})], False),
        ([exchange(1, {"tools": [TOOL]}), exchange(2, {})], True),
        ([exchange(1, {"tools": []})], False),
        ([exchange(1, {}, blank=True)], True),
        ([Exchange(1, Request((Message(Role.USER, "hi"),)), Reply("ok"))], True),
    ],
    ids=["nothing", "text", "tools", "no tool", "not recorded", "own form"],
)
def test_a_replay_tells_the_agent_what_its_record_shows(paid, takes):
    lease = Lease(ACTION, "solve", RecordedModel(), CallLimits())
    lease.memory.recall(paid, UNKNOWN)
    assert lease.takes_tools is takes
