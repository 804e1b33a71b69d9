"""A model that speaks two protocols is asked in the one that the agent speaks."""

import json

from dgm.domain import Usage
from dgm.messages import Message, Request, Role, WireProtocol, WireReply
from dgm.models.builtin import RecordedModel
from tests.support.gateway.bench import ACTION, MemoryJournal, chat, client, gateway
from tests.support.gateway.wire_provider import STREAM, Provider, streamed

CHAT, RESPONSES = WireProtocol.CHAT, WireProtocol.RESPONSES
USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
TEXT = {"type": "output_text", "text": "from then", "annotations": []}
ITEM = {"type": "message", "id": "m", "role": "assistant", "content": [TEXT]}
SAID = {"id": "resp_1", "object": "response", "status": "completed", "output": [ITEM], "usage": USAGE}
QUESTION = Request((Message(Role.USER, "why?"),))


def both():
    async def answer(request, delivery):
        if request.protocol is CHAT:
            return await streamed(passed=4)(request, delivery)
        return WireReply(RESPONSES, json.dumps(SAID).encode(), False, Usage(1, 1, 1))

    return Provider(answer, protocol=RESPONSES, also=(CHAT,))


async def test_an_agents_chat_passes_and_streams_and_the_hosts_question_goes_by_responses(tmp_path):
    provider, journal = both(), MemoryJournal()
    async with gateway(tmp_path / "g", provider, journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                answer = await http.post("/chat/completions", json=chat(stream=True))
            reply = await opened.ask(lease, QUESTION)
    assert answer.content == b"".join(STREAM)
    assert reply.text == "from then"
    assert [request.protocol for request in provider.asked] == [CHAT, RESPONSES]

    # A replay finds both, whatever order they come in.
    async with gateway(tmp_path / "r", RecordedModel("scripted"), journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            assert (await opened.ask(lease, QUESTION)).text == "from then"
            async with client(opened, lease.token) as http:
                again = await http.post("/chat/completions", json=chat(stream=True))
    assert again.content == answer.content


async def test_the_neutral_question_alone_makes_no_call_a_translated_one(tmp_path):
    provider, journal = both(), MemoryJournal()
    async with gateway(tmp_path / "g", provider, journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            assert await opened.caller.answers(lease)
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                await http.post("/chat/completions", json=chat(stream=True))
    assert [request.protocol for request in provider.asked] == [RESPONSES, CHAT]
