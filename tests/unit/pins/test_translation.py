"""An agent of each protocol has the same conversation with a model of each; the provider and its clients are strict."""

import asyncio
import itertools
import json

import pytest

from dgm.domain import Usage
from dgm.messages import Reply, RequestRefused, Role, Stop
from tests.support.pins.agents import (
    CALLING,
    CALLS,
    DONE,
    GO_ON,
    PATHS,
    SAYS,
    SYSTEM,
    agent_of,
    question,
    reply_to,
    run,
)
from tests.support.pins.door import KEY, MODELS, make_settings, open_door, read_spend
from tests.support.wire_server import Thinking, WireServer

pytestmark = pytest.mark.starts_processes


def read_calls(calls):
    """Return calls with their arguments as JSON."""
    return [(call.id, call.name, json.loads(call.arguments)) for call in calls]


CALLED = read_calls(CALLS)
LENGTH = Reply("It is", stop=Stop.LENGTH, usage=Usage(1, 95, 4))
KINDS = list(itertools.product(PATHS, [False, True]))
"""Protocol of an agent, and whether it wants streams."""


class Conversation:
    """Calls two tools, ends, is cut by the limit; then the conversation is too long."""

    def __init__(self):
        self.asked = {}

    async def answer(self, request):
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        if turn == 3:
            raise RequestRefused("context_length_exceeded", "too long")
        task = next(message.text for message in request.messages if message.role is Role.USER)
        self.asked[task] = request
        return [CALLING, DONE, LENGTH][turn]


async def talk(agent, protocol, stream, task):
    """Return the three answers and the refusal."""
    body = question(protocol, task, stream=stream)
    first = await agent.read(protocol, body)
    body = reply_to(protocol, body, first, "3", "a.py")
    second = await agent.read(protocol, body)
    # The streaming helpers of openai's client read no answer that the limit cut.
    body = {**reply_to(protocol, body, second), "stream": False}
    body.pop("stream_options", None)
    third = await agent.read(protocol, body)
    refusal = await agent.post(protocol, {**reply_to(protocol, body, third), "stream": stream})
    return first, second, third, refusal


@pytest.mark.parametrize("provider", PATHS)
def test_a_conversation_with_tools_is_the_same_on_both_sides(tmp_path, provider):
    brain, name = Conversation(), MODELS[provider][1].partition("/")[2]
    server = WireServer(brain=Thinking(brain), models=(name,), key=KEY, keep_reasoning=True)

    async def scenario():
        async with open_door(tmp_path / "run", make_settings(provider, server.url)) as door:

            async def converse(action, kind):
                async with agent_of(door, action) as agent:
                    return await talk(agent, *kind, f"task {action}")

            return await asyncio.gather(*itertools.starmap(converse, enumerate(KINDS, 1)))

    with server:
        conversations = run(scenario())
    for action, (kind, (*turns, refusal)) in enumerate(zip(KINDS, conversations, strict=True), 1):
        read = [(answer.text, answer.calls, answer.stop) for answer in turns]
        assert read == [(SAYS, CALLED, "calls"), (DONE.text, [], "end"), ("It is", [], "length")], kind
        last = brain.asked[f"task {action}"]
        heard = [(turn.role, turn.text, read_calls(turn.calls), turn.call_id) for turn in last.messages]
        assert heard == [
            (Role.SYSTEM, SYSTEM, [], ""),
            (Role.USER, f"task {action}", [], ""),
            (Role.ASSISTANT, SAYS, CALLED, ""),
            (Role.TOOL, "3", [], CALLS[0].id),
            (Role.TOOL, "a.py", [], CALLS[1].id),
            (Role.ASSISTANT, DONE.text, [], ""),
            (Role.USER, GO_ON, [], ""),
        ], kind
        assert [(tool.name, tool.parameters["required"]) for tool in last.tools] == [("bash", ["command"])]
        assert last.max_output_tokens == 1000
        error = refusal.json()["error"]
        code = error["type"] if kind[0] == "messages" else error["code"]
        assert (refusal.status_code, code) in [
            (400, "context_length_exceeded"),
            (400, "invalid_request_error"),
        ]
    billed = sum(sum(answer.tokens) for *turns, _ in conversations for answer in turns)
    assert (server.answered, read_spend(tmp_path / "run").tokens) == (3 * len(KINDS), billed)
