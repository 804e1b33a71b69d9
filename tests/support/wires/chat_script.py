"""Answers by script: Chat Completions as its provider streams them."""

import json

from dgm.wires import WIRES
from tests.support.wires.vendors import BODIES, CHAT, ask_streamed

WIRE = WIRES[CHAT]
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("bash", "edit")]
MESSAGE = {
    "role": "assistant",
    "content": [{"type": "text", "text": "x"}],
    "reasoning": "hm",
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
}
OFFERED = {**BODIES[CHAT], "tools": TOOLS}
COUNTED = {**BODIES[CHAT], "stream_options": {"include_usage": True}}


def chunk(delta=None, finish=None, index=0, **more):
    choice = {"index": index, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


def piece(index=0, name=None, arguments=None, **more):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    placed = {} if index is None else {"index": index}
    return chunk({"tool_calls": [{**placed, **more, "function": function}]})


def call(index, name, arguments, call_id):
    return piece(index, name, arguments, id=call_id, type="function")


def calls_of(completion):
    calls = completion.choices[0].message.tool_calls or []
    return [(one.id, one.function.name, json.loads(one.function.arguments)) for one in calls]


def both(*events, request=None, **more):
    """The message as the vendor's client reads it and as ours does; they have to agree."""
    theirs, ours = ask_streamed(CHAT, *events, request=request, **more)
    for one, other in zip(theirs.choices, ours["choices"], strict=True):
        assert (one.message.content or None) == (other["message"]["content"] or None)
        assert one.finish_reason == other["finish_reason"]
        named = [(call["id"], call["function"]["name"]) for call in other["message"].get("tool_calls", ())]
        assert [(call.id, call.function.name) for call in one.message.tool_calls or ()] == named
    return theirs, ours
