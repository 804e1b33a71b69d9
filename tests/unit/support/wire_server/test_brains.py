"""The brains behind the wires; above all, that the offline model answers over a wire as it does directly."""

import asyncio
import json

import pytest

from dgm.messages import Message, Request, RequestRefused, Role, Tool
from dgm.offline import decide
from tests.support import wire_conversations as talk
from tests.support.wire_server import Echo, Offline, Scripted, Thinking, WireServer

pytestmark = pytest.mark.slow

SYSTEM = "You are a coding agent. You work with the tools that are offered."
PROBLEM = "The repository is in /work. `mean` of an empty list should raise ValueError but divides by zero."
FILE = "12 stats.py\n1:def mean(values):\n2:    total = 0\n3:    for value in values:\n4:        total += value\n"
RESULTS = ("./stats.py\n./tests/test_stats.py\n", "./stats.py:1:def mean(values):\n", FILE, "OK", "x", "y")
TOOLS = (
    Tool("bash", "Run a command in a shell.", talk.SCHEMA),
    Tool(
        "edit",
        "Replace a text in a file.",
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": "string"}},
            "required": ["path", "old", "new"],
        },
    ),
)


def conversation():
    """Requests as an agent makes them, each with the offline model's own answer to it."""
    messages = [Message(Role.SYSTEM, SYSTEM), Message(Role.USER, PROBLEM)]
    for result in RESULTS:
        request = Request(tuple(messages), TOOLS, temperature=0.0)
        reply = decide(request)
        yield request, reply
        if not reply.calls:
            return
        messages.append(Message(Role.ASSISTANT, reply.text, reply.calls))
        messages += [Message(Role.TOOL, result, call_id=call.id) for call in reply.calls]


def chat(client, request):
    turns = []
    for m in request.messages:
        turn = {"role": str(m.role), "content": m.text}
        if m.calls:
            turn["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in m.calls
            ]
        if m.call_id:
            turn["tool_call_id"] = m.call_id
        turns.append(turn)
    tools = [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
        }
        for t in request.tools
    ]
    said = client.chat.completions.create(model=talk.GPT, messages=turns, tools=tools, temperature=0.0)
    message = said.choices[0].message
    calls = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()]
    return message.content, calls, said.usage.prompt_tokens


def responses(client, request):
    items = []
    for m in request.messages:
        if m.role is Role.TOOL:
            items.append({"type": "function_call_output", "call_id": m.call_id, "output": m.text})
        else:
            items.append({"role": str(m.role), "content": m.text})
        items += [
            {"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments}
            for c in m.calls
        ]
    tools = [
        {"type": "function", "name": t.name, "description": t.description, "parameters": t.parameters}
        for t in request.tools
    ]
    said = client.responses.create(model=talk.GPT, input=items, tools=tools, temperature=0.0)
    calls = [(i.call_id, i.name, i.arguments) for i in said.output if i.type == "function_call"]
    return said.output_text, calls, said.usage.input_tokens


def messages(client, request):
    turns = []
    for m in request.messages[1:]:
        blocks = [{"type": "text", "text": m.text}] if m.text and m.role is not Role.TOOL else []
        blocks += [
            {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)}
            for c in m.calls
        ]
        if m.role is Role.TOOL:
            blocks.append({"type": "tool_result", "tool_use_id": m.call_id, "content": m.text})
        role = "assistant" if m.role is Role.ASSISTANT else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    tools = [
        {"name": t.name, "description": t.description, "input_schema": t.parameters} for t in request.tools
    ]
    system = request.messages[0].text
    # The package has no such parameter any more; other clients still send it.
    warm = {"temperature": 0.0}
    said = client.messages.create(
        model=talk.CLAUDE, max_tokens=9999, messages=turns, system=system, tools=tools, extra_body=warm
    )
    text = "".join(b.text for b in said.content if b.type == "text")
    calls = [(b.id, b.name, json.dumps(b.input)) for b in said.content if b.type == "tool_use"]
    used = said.usage
    return text, calls, used.input_tokens + used.cache_read_input_tokens + used.cache_creation_input_tokens


@pytest.mark.parametrize("ask", [chat, responses, messages])
@pytest.mark.parametrize("wrap", [lambda brain: brain, Thinking], ids=["plain", "thinking"])
def test_the_offline_model_answers_over_a_wire_as_directly(ask, wrap):
    asked = list(conversation())
    assert len(asked) > 3
    with WireServer(brain=wrap(Offline())) as server:
        client = talk.anthropic_client(server) if ask is messages else talk.openai_client(server)
        with client:
            for request, reply in asked:
                calls = [(c.id, c.name, c.arguments) for c in reply.calls]
                assert ask(client, request) == (reply.text, calls, reply.usage.input_tokens)


def test_what_a_wire_understands_is_the_agents_own_request():
    *_, (request, _) = conversation()
    script = Scripted([talk.DONE])
    with WireServer(brain=script) as server:
        with talk.openai_client(server) as client:
            chat(client, request)
            responses(client, request)
        with talk.anthropic_client(server) as client:
            messages(client, request)
    for heard in script.asked:
        assert (heard.messages, heard.tools, heard.temperature) == (request.messages, request.tools, 0.0)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v1/chat/completions", "context_length_exceeded"),
        ("/v1/responses", "context_length_exceeded"),
        ("/v1/messages", "prompt is too long"),
    ],
)
def test_too_long_a_request_is_refused_in_the_providers_words(path, told):
    body = talk.small(path)
    body["input" if "input" in body else "messages"] = [{"role": "user", "content": "x" * 200_001}]
    with WireServer(brain=Offline()) as server:
        answer = talk.raw(server, path, body)
    assert answer.status_code == 400
    assert told in answer.text


def test_a_script_may_refuse_and_may_end():
    script = Scripted([RequestRefused("content_filter", "no"), talk.DONE], repeat=False)
    path = "/v1/chat/completions"
    with WireServer(brain=script) as server:
        answers = [talk.raw(server, path, talk.small(path)) for _ in range(3)]
    assert [a.status_code for a in answers] == [400, 200, 500]
    assert answers[0].json()["error"]["code"] == "content_filter"
    assert "the script has 2 replies" in answers[2].json()["error"]["message"]


def test_thinking_is_the_same_for_the_same_request():
    def asked(text):
        return asyncio.run(Thinking(Echo()).answer(Request((Message(Role.USER, text),))))

    assert asked("a") == asked("a")
    assert asked("a").reasoning != asked("b").reasoning
    assert asked("a").usage.reasoning_tokens > 0
