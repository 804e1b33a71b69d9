"""Whole chat completions: mended, checked, counted, split into a stream, read as neutral replies; and requests."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.domain import Usage
from dgm.messages import Message, Request, Role, Stop, Tool, ToolCall, WireReply
from dgm.wires import WIRES, whole_of
from dgm.wires.wire import ErrorInAnswer, UnusableReply
from tests.support.wires.vendors import BODIES, CHAT, TURN, ask, ask_whole, sse, streamed

WIRE = WIRES[CHAT]
ASKED = {**BODIES[CHAT], "messages": [{"role": "user", "content": "x" * 377}]}


def completion(message=None, finish="stop", **more):
    message = {"role": "assistant", "content": "Hi"} if message is None else message
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}


def call(arguments="{}", call_id="a", name="bash", **more):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def called(*calls, finish="tool_calls"):
    return completion({"role": "assistant", "content": None, "tool_calls": list(calls)}, finish)


@pytest.mark.parametrize("ids", [("", ""), ("a", "a"), (None, None), ("a", ""), ("", "call_0")])
def test_calls_get_ids_of_their_own(ids):
    message = ask_whole(CHAT, called(*(call(call_id=name) for name in ids))).choices[0].message
    assert len({one.id for one in message.tool_calls}) == 2
    assert all(one.id for one in message.tool_calls)


def test_missing_fields_of_a_whole_answer_are_added():
    found = ask_whole(CHAT, {"choices": [{"message": {"content": "a \ud83d"}}]}).choices[0]
    assert (found.index, found.finish_reason, found.message.content) == (0, "stop", "a \ufffd")


@pytest.mark.parametrize(
    "whole",
    [
        {"error": {"message": "busy"}},
        {"object": "error", "message": "busy", "code": 400},
        {"message": "busy", "code": 400},
        {"detail": "busy"},
        {"choices": None, "base_resp": {"status_code": 1, "status_msg": "busy"}},
        {"choices": [{"error": {"message": "busy"}, "message": {"content": ""}}]},
        completion(finish="error"),
    ],
)
def test_errors_in_successful_answers_are_raised(whole):
    with pytest.raises(ErrorInAnswer):
        WIRE.accept(whole, BODIES[CHAT])


@pytest.mark.parametrize(
    "whole",
    [{}, {"choices": []}, {"choices": [{}]}, completion(finish="tool_calls"), called(call(name=""))],
)
def test_answers_that_are_none_are_unreadable(whole):
    with pytest.raises(UnusableReply):
        WIRE.accept(whole, BODIES[CHAT])


@settings(max_examples=20, deadline=None)
@given(st.text(max_size=20), st.integers(0, 3), st.sampled_from(["stop", "eos"]))
def test_split_answer_is_read_as_the_same(text, calls, reason):
    message = {"role": "assistant", "content": text, "reasoning_content": "hm", "refusal": None}
    if calls:
        message["tool_calls"] = [call(json.dumps({"n": n}), f"c{n}") for n in range(calls)]
    counts = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    whole = WIRE.accept(completion(message, reason, usage=counts), BODIES[CHAT])
    content = b"".join(event.render() for event in WIRE.split(whole))
    theirs = ask(CHAT, streamed(content))
    assert theirs.choices[0].message.content == whole["choices"][0]["message"]["content"]
    assert [one.id for one in theirs.choices[0].message.tool_calls or ()] == [f"c{n}" for n in range(calls)]
    assert theirs.usage.total_tokens == 7
    ours = whole_of(WireReply(CHAT, content, True, Usage()), BODIES[CHAT])
    del message["refusal"]
    assert ours["choices"] == [{"index": 0, "message": message, "finish_reason": reason}]
    assert ours["usage"] == counts


def counts_of(into=10, out=5, total=None, reasoning=None, **more):
    counts = {"prompt_tokens": into, "completion_tokens": out, "total_tokens": total, **more}
    details = {"completion_tokens_details": {"reasoning_tokens": reasoning}} if reasoning else {}
    return {name: value for name, value in {**counts, **details}.items() if value is not None}


@pytest.mark.parametrize(
    ("counts", "tokens"),
    [
        (counts_of(total=15), (10, 5, 0, 0)),
        # Gemini: thoughts are in the total only.
        (counts_of(total=115), (10, 105, 0, 0)),
        # xAI: beside, with a total and without one.
        (counts_of(total=115, reasoning=100), (10, 105, 0, 100)),
        (counts_of(reasoning=100), (10, 105, 0, 100)),
        # OpenAI: within.
        (counts_of(out=50, total=60, reasoning=40), (10, 50, 0, 40)),
        (counts_of(out=50, reasoning=40), (10, 50, 0, 40)),
        (counts_of(total=15, reasoning=9), (10, 5, 0, 5)),
        # DeepSeek, OpenAI, Moonshot: the cache is within the input.
        (counts_of(prompt_cache_hit_tokens=8, prompt_cache_miss_tokens=2), (10, 5, 8, 0)),
        (counts_of(into=None, prompt_cache_hit_tokens=8, prompt_cache_miss_tokens=2), (10, 5, 8, 0)),
        (counts_of(prompt_tokens_details={"cached_tokens": 8}), (10, 5, 8, 0)),
        (counts_of(cached_tokens=8), (10, 5, 8, 0)),
        # Nothing, or nothing that is a number: characters / 4.
        (None, (100, 1, 0, 0)),
        ("many", (100, 1, 0, 0)),
        ({"prompt_tokens": None, "completion_tokens": -3, "total_tokens": float("nan")}, (100, 1, 0, 0)),
        (counts_of("10", 5.0, True, prompt_tokens_details=[]), (10, 5, 0, 0)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, (100, 1, 0, 0)),
        ({"completion_tokens": 5, "total_tokens": 15}, (10, 5, 0, 0)),
    ],
)
def test_tokens_are_counted_as_each_provider_bills_them(counts, tokens):
    used = WIRE.usage(completion(usage=counts), ASKED)
    assert used.calls == 1
    assert (used.input_tokens, used.output_tokens, used.cached_tokens, used.reasoning_tokens) == tokens


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ODD = st.dictionaries(
    st.sampled_from([*counts_of(total=1, reasoning=1), "input_tokens", "output_tokens", "cache_creation"]),
    JSON,
)


@pytest.mark.parametrize("protocol", list(WIRES))
@settings(max_examples=25, deadline=None)
@given(counts=ODD, other=JSON)
def test_odd_values_never_break_counting_or_reading(protocol, counts, other):
    wire = WIRES[protocol]
    for whole in (
        {"usage": counts},
        {wire.turns: other, "usage": other},
        {"choices": other, "content": other, "output": other},
    ):
        used = wire.usage(whole, {wire.turns: other})
        assert min(used.input_tokens, used.output_tokens) >= 1
        wire.stop(whole)
        wire.read_reply(whole, {wire.turns: other, "tools": other, "system": other, "tool_choice": other})
        with suppress(UnusableReply, ErrorInAnswer):
            wire.accept(whole, {wire.turns: other})
    body = {
        wire.turns: [{"role": "assistant", "content": other, "tool_calls": other, "type": "message"}],
        "n": other,
    }
    for given_body in ({wire.turns: other, "tools": other, "stop": other, "max_tokens": other}, body):
        wire.read_request(given_body)
        wire.mended_request(given_body)
        wire.choices(given_body)
        wire.output_limit(given_body)


@pytest.mark.parametrize(
    ("whole", "stop"),
    [
        (completion(), Stop.END),
        (called(call()), Stop.TOOL_CALLS),
        (called(call(), finish="stop"), Stop.TOOL_CALLS),
        (called(call(), finish="length"), Stop.LENGTH),
        (completion(finish="content_filter"), Stop.REFUSAL),
        (completion({"content": None, "refusal": "No."}), Stop.REFUSAL),
        ({}, Stop.END),
    ],
)
def test_why_it_stopped(whole, stop):
    assert WIRE.stop(whole) is stop


def test_limits_are_read_and_set_under_the_names_that_are_used():
    assert WIRE.output_limit({}) is None
    assert WIRE.output_limit({"max_tokens": 5, "max_completion_tokens": 9}) == 9
    assert WIRE.limited({}, 7) == {"max_tokens": 7}
    assert WIRE.limited({"max_completion_tokens": 9}, 7) == {"max_completion_tokens": 7}
    assert WIRE.limited({"max_tokens": 5, "max_completion_tokens": 9}, 7) == {
        "max_tokens": 7,
        "max_completion_tokens": 7,
    }
    assert (WIRE.choices({}), WIRE.choices({"n": 3}), WIRE.choices({"n": "x"})) == (1, 3, 1)


@pytest.mark.parametrize(
    ("arguments", "mended"),
    [
        ('{"a"', {"INVALID_JSON": '{"a"'}),
        ("", {}),
        (None, {}),
        ("null", {}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_broken_json_of_the_history_becomes_an_object(arguments, mended):
    body = {"messages": [TURN, {"role": "assistant", "tool_calls": [call(arguments)]}]}
    found = WIRE.mended_request(body)["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(found) == mended


def test_requests_survive_the_way_through_the_wire():
    request = Request(
        [
            Message(Role.SYSTEM, "Be good."),
            Message(Role.USER, "Hi"),
            Message(Role.ASSISTANT, "", (ToolCall("a", "bash", '{"c":1}'),)),
            Message(Role.TOOL, "no", call_id="a", failed=True),
        ],
        tools=[Tool("bash", "Runs.", {"type": "object"})],
        model="m",
        temperature=0.5,
        max_output_tokens=9,
        top_p=0.1,
        stop=("x",),
        tool_choice="tool:bash",
        parallel=False,
        effort="low",
    )
    assert WIRE.read_request(WIRE.write_request(request, "m")) == request


def test_reply_is_read_with_its_reasoning_and_native():
    message = {"role": "assistant", "content": "x", "reasoning_content": "hm", "tool_calls": [call()]}
    reply = WIRE.read_reply(completion(message, "tool_calls"), BODIES[CHAT])
    assert (reply.text, reply.reasoning, reply.calls) == ("x", "hm", (ToolCall("a", "bash", "{}"),))
    assert reply.stop is Stop.TOOL_CALLS
    turn = Message(Role.ASSISTANT, "x", reply.calls, native=reply.native)
    assert WIRE.write_request(Request([turn]), "m")["messages"] == [message]


def test_recorded_bytes_are_read_whole_or_streamed():
    whole = completion()
    body = json.dumps(whole).encode()
    assert whole_of(WireReply(CHAT, body, False, Usage()), BODIES[CHAT]) == whole
    assert whole_of(WireReply(CHAT, body, True, Usage()), BODIES[CHAT]) == whole
    assert whole_of(WireReply(CHAT, b"<html>", True, Usage(), error="x"), BODIES[CHAT]) == {}
    events = [{"choices": [{"index": 0, "delta": {"content": "x"}}]}, {"error": {"message": "busy"}}]
    cut = whole_of(WireReply(CHAT, sse(*events), True, Usage()), BODIES[CHAT])
    assert cut["choices"][0]["message"]["content"] == "x"
