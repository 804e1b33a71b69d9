"""Whatever JSON a provider sends, it is an answer or none; nothing else falls out, and it can be sent back."""

import contextlib
import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.messages import Message, Request, Role, WireProtocol
from dgm.wires import WIRES
from dgm.wires.events import DONE, ErrorInAnswer, UnusableReply

USER = Message(Role.USER, "Go.")
TURN_OF_USER = {"role": "user", "content": "Go."}
BODIES = {
    WireProtocol.CHAT: {"model": "m", "messages": [TURN_OF_USER]},
    WireProtocol.RESPONSES: {"model": "m", "input": [TURN_OF_USER]},
    WireProtocol.MESSAGES: {"model": "m", "messages": [TURN_OF_USER], "max_tokens": 9},
}
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
DETAIL = {"type": "reasoning.text", "text": "Hm.", "signature": None, "index": 0}
TURN = {
    "role": "assistant", "content": "Hi.", "refusal": None, "reasoning_content": "Hm.", "reasoning_details": [DETAIL],
    "function_call": None, "tool_calls": [CALL],
}  # fmt: skip
USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 5,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 1},
}
CHUNKS = [
    {"choices": [{"index": 0, "delta": TURN, "finish_reason": None}], "usage": None},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{**CALL, "id": None}]}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"reasoning_details": [DETAIL]}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": USAGE},
]
WHOLE = {"choices": [{"index": 0, "message": TURN, "finish_reason": "tool_calls"}], "usage": USAGE}
RESPONSE = {
    "object": "response",
    "status": "completed",
    "incomplete_details": {"reason": "max_output_tokens"},
    "output": [
        {"type": "reasoning", "id": "r", "summary": [{"type": "s", "text": "Hm."}], "encrypted_content": "x"},
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi."}]},
        {"type": "function_call", "id": "f", "call_id": "c", "name": "bash", "arguments": "{}"},
    ],
    "usage": {"input_tokens": 5, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}},
}  # fmt: skip
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["", "x", "stop", "call_0", "incomplete"]),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=2)), max_size=2),
    st.dictionaries(st.sampled_from(["type", "id", "text", "name"]), st.integers(), max_size=2),
)


def places(value, path=()):
    """Every place in a piece of JSON."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield from places(part, (*path, name))


@st.composite
def spoiled(draw, valid):
    """The valid JSON with one to three places replaced."""
    value = {"root": copy.deepcopy(valid)}
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([path for path in places(value) if path]))
        inside = value
        for name in path[:-1]:
            inside = inside[name]
        inside[path[-1]] = draw(JUNK)
    return value["root"]


def sound(reply):
    """Whether a reply is one that can be journaled and sent on."""
    texts = [
        reply.text,
        reply.reasoning,
        *(part for c in reply.calls for part in (c.id, c.name, c.arguments)),
    ]
    used = reply.usage
    return (
        all(isinstance(text, str) for text in texts)
        and all(call.id and call.name for call in reply.calls)
        and len({call.id for call in reply.calls}) == len(reply.calls)
        and used.input_tokens > 0
        and used.output_tokens > 0
        and 0 <= used.cached_tokens + used.written_tokens <= used.input_tokens
        and 0 <= used.reasoning_tokens <= used.output_tokens
    )


def sent_back(reply):
    return Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native)


MESSAGE = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "Hi."},
        {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "output_tokens": 5},
}
WHOLES = {
    WireProtocol.CHAT: WHOLE,
    WireProtocol.RESPONSES: RESPONSE,
    WireProtocol.MESSAGES: MESSAGE,
}
SPOILED = st.sampled_from(list(WireProtocol)).flatmap(
    lambda protocol: st.tuples(st.just(protocol), spoiled(WHOLES[protocol]))
)


def accept(protocol, whole):
    """What is made of a whole answer that passed its check."""
    wire, body = WIRES[protocol], BODIES[protocol]
    mended = wire.mended(whole, body)
    reply = wire.read_reply(mended, body)
    assert sound(reply)
    assert wire.write_request(Request((USER, sent_back(reply), USER)), "m")
    assert all(event.render() for event in wire.split(mended))
    assert wire.stop(mended) == reply.stop


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(SPOILED)
def test_any_whole_answer_is_one_or_none(drawn):
    protocol, whole = drawn
    if isinstance(whole, dict):
        with contextlib.suppress(UnusableReply, ErrorInAnswer):
            WIRES[protocol].check(whole)
            accept(protocol, whole)


def read_stream(protocol, events):
    reader = WIRES[protocol].reader(BODIES[protocol])
    for event in events:
        if isinstance(event, dict):
            reader.take(event, str(event.get("type") or ""))
    reader.finish(done=True)
    return reader.whole()


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(spoiled(CHUNKS))
def test_any_stream_of_completions_is_an_answer_or_none(chunks):
    with contextlib.suppress(UnusableReply, ErrorInAnswer):
        accept(WireProtocol.CHAT, read_stream(WireProtocol.CHAT, chunks if isinstance(chunks, list) else []))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([WireProtocol.RESPONSES, WireProtocol.MESSAGES]).flatmap(
        lambda protocol: st.tuples(st.just(protocol), spoiled(events_of(protocol)))
    )
)
def test_any_stream_of_events_is_an_answer_or_none(drawn):
    protocol, events = drawn
    with contextlib.suppress(UnusableReply, ErrorInAnswer):
        accept(protocol, read_stream(protocol, events if isinstance(events, list) else []))


def events_of(protocol):
    return [event.data for event in WIRES[protocol].split(WHOLES[protocol]) if event.data != DONE]
