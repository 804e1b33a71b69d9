"""Laws of the wire protocols, over what a stranger may send and a model may say."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.domain import Usage
from dgm.gateway.allowed import BadRequest
from dgm.gateway.translation import ParsedCall, parse_call, parse_document
from dgm.messages import Reply, Stop, ToolCall
from dgm.wires import CHAT, MESSAGES, RESPONSES
from dgm.wires.wire import WireAnswer

pytestmark = pytest.mark.slow

WIRES = (CHAT, RESPONSES, MESSAGES)
WORDS = st.sampled_from(
    (
        *("type", "role", "content", "text", "input", "messages", "tools", "function", "name", "arguments"),
        *("id", "call_id", "tool_use_id", "tool_calls", "tool_choice", "thinking", "budget_tokens", "effort"),
        *("system", "user", "assistant", "tool", "message", "function_call", "function_call_output"),
        *("tool_use", "tool_result", "input_text", "output_text", "refusal", "item_reference", "reasoning"),
        *("stop", "max_tokens", "model", "default", "auto", "enabled", "adaptive", "include", "format"),
    )
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text()
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=25,
)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
WELL_FORMED = {
    "/chat/completions": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "u"}]},
            {"role": "assistant", "content": None, "refusal": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "name": "f", "content": "t"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": True,
        "temperature": 1,
        "top_p": 0.5,
        "stop": ["x"],
        "max_tokens": 9,
        "reasoning_effort": "low",
        "stream": True,
        "stream_options": {"include_usage": True},
        "n": 1,
    },
    "/responses": {
        "model": "m",
        "instructions": "s",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "u"}]},
            {"type": "reasoning", "id": "r", "summary": []},
            {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a"}],
            },
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "t"}]},
        ],
        "tools": [
            {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "include": ["reasoning.encrypted_content"],
        "previous_response_id": "resp_1",
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "text"}},
        "temperature": 1,
        "max_output_tokens": 9,
        "stream": False,
    },
    "/messages": {
        "model": "m",
        "max_tokens": 5000,
        "system": [{"type": "text", "text": "s"}],
        "messages": [
            {"role": "user", "content": "u"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "text", "text": "a"},
                    {"type": "tool_use", "id": "c", "name": "f", "input": {"a": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": "t", "is_error": True},
                    {"type": "text", "text": "u"},
                ],
            },
        ],
        "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"effort": "low"},
        "stop_sequences": ["x"],
        "temperature": 1,
    },
}


@st.composite
def nearly(draw, whole):
    """A well-formed request with one to three places changed, emptied or added to."""
    body = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        place = body
        while True:
            inner = [
                one for one in (place.values() if isinstance(place, dict) else place) if one and not_leaf(one)
            ]
            if not inner or draw(st.booleans()):
                break
            place = draw(st.sampled_from(inner))
        places = list(place) if isinstance(place, dict) else list(range(len(place)))
        match draw(st.sampled_from(("change", "drop", "add"))):
            case "change" if places:
                place[draw(st.sampled_from(places))] = draw(JSON)
            case "drop" if places:
                del place[draw(st.sampled_from(places))]
            case _ if isinstance(place, dict):
                place[draw(WORDS | st.text(max_size=3))] = draw(JSON)
            case _:
                place.append(draw(JSON))
    return body


def not_leaf(value):
    return isinstance(value, dict | list)


TEXTS = st.text(st.characters(codec="utf-8"))
REPLIES = st.builds(
    Reply,
    TEXTS,
    st.lists(st.builds(ToolCall, TEXTS, TEXTS, TEXTS), max_size=3).map(tuple),
    st.sampled_from(Stop),
    st.builds(Usage, input_tokens=st.integers(0, 99), cached_tokens=st.integers(0, 99)),
    TEXTS,
)


def parsed_or_refused(wire, body):
    """The call, or the words of its refusal; anything else is raised."""
    try:
        return parse_call(wire, parse_document(body))
    except BadRequest as refusal:
        error = json.loads(wire.render_error(refusal.status, refusal.code, str(refusal)))
        return error["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.path)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_whatever_arrives_is_parsed_or_refused_in_one_line(wire, data):
    written = (nearly(WELL_FORMED[wire.path]) | JSON).map(lambda value: json.dumps(value).encode())
    found = parsed_or_refused(wire, data.draw(written | st.binary()))
    if isinstance(found, ParsedCall):
        told = "".join(message.text for message in found.request.messages)
        assert told.encode().decode() == told
    else:
        assert found.isprintable()


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.path)
def test_well_formed_request_is_parsed(wire):
    assert parse_call(wire, WELL_FORMED[wire.path]).request.tool_choice == "tool:f"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.path)
@settings(max_examples=60, deadline=None)
@given(reply=REPLIES, thinking=st.sampled_from(["", "summarized", "omitted"]))
def test_whatever_a_model_says_is_told_in_whole_events(wire, reply, thinking):
    answer = WireAnswer(
        reply, wire.prefix + "1", "m", 1, {"thinking": thinking} if wire.path == "/messages" else {}
    )
    assert json.loads(wire.render(wire.write_answer(answer), stream=False))
    events = wire.render(wire.write_answer(answer), stream=True).decode()
    assert events.endswith("\n\n")
    for event in events.removesuffix("\n\n").split("\n\n"):
        kind, _, data = event.rpartition("data: ")
        assert data == "[DONE]" or json.loads(data)
        assert not kind or json.loads(data)["type"] == kind.removeprefix("event: ").strip()
