"""Whole messages, and requests of Anthropic's: mended, checked, counted, split, read and written."""

import pytest

from dgm.domain import Usage
from dgm.messages import Message, Request, Role, Stop, Tool, ToolCall, WireReply
from dgm.wires import whole_of
from dgm.wires.wire import UnusableReply
from tests.support.wires.messages_script import CALL, TEXT, THINKING, WIRE, message
from tests.support.wires.vendors import (
    BODIES,
    MESSAGES,
    TURN,
    ask,
    ask_whole,
    streamed,
)


@pytest.mark.parametrize("whole", [message(TEXT), message(CALL, reason="tool_use"), message(THINKING, TEXT)])
def test_whole_answers_pass_untouched(whole):
    assert WIRE.accept(whole, BODIES[MESSAGES]) is whole


@pytest.mark.parametrize(
    "whole",
    [{}, {"content": None}, message(), message(TEXT, reason="tool_use"), message({**CALL, "name": ""})],
)
def test_answers_that_are_none_are_unreadable(whole):
    with pytest.raises(UnusableReply):
        WIRE.accept(whole, BODIES[MESSAGES])


def test_whole_answer_is_mended():
    content = [
        {"type": "text"},
        {"text": "a \ud83d"},
        {"type": "tool_use", "name": "bash", "input": '{"a": 1}'},
        {**CALL, "id": "call_0"},
    ]
    found = ask_whole(MESSAGES, {"content": content})
    assert [block.text for block in found.content[:2]] == ["", "a \ufffd"]
    assert [(block.id, block.input) for block in found.content[2:]] == [
        ("call_0", {"a": 1}),
        ("call_1", CALL["input"]),
    ]
    assert found.stop_reason == "tool_use"
    assert min(found.usage.input_tokens, found.usage.output_tokens) >= 1
    assert ask_whole(MESSAGES, {"content": "Hi"}).content[0].text == "Hi"


def test_split_answer_is_read_as_the_same():
    whole = message(
        {"type": "redacted_thinking", "data": "x"},
        THINKING,
        TEXT,
        CALL,
        {**CALL, "id": "b", "input": {}},
        reason="tool_use",
    )
    content = b"".join(event.render() for event in WIRE.split(whole))
    assert [block.type for block in ask(MESSAGES, streamed(content)).content] == [
        block["type"] for block in whole["content"]
    ]
    assert whole_of(WireReply(MESSAGES, content, True, Usage()), BODIES[MESSAGES]) == whole


def test_tokens_of_the_cache_are_beside_the_input():
    counts = {
        "input_tokens": 10,
        "output_tokens": 20,
        "cache_read_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 1},
        "output_tokens_details": {"thinking_tokens": 7},
    }
    used = WIRE.usage(message(TEXT, usage=counts), BODIES[MESSAGES])
    assert used == Usage(1, 314, 20, 0.0, 300, 4, 7)


def test_why_it_stopped():
    reasons = {
        "end_turn": Stop.END,
        "max_tokens": Stop.LENGTH,
        "refusal": Stop.REFUSAL,
        "tool_use": Stop.TOOL_CALLS,
        "later": Stop.END,
    }
    assert {reason: WIRE.stop(message(TEXT, reason=reason)) for reason in reasons} == reasons
    assert WIRE.stop(message(CALL)) is Stop.TOOL_CALLS


def test_requests():
    body = {"messages": [TURN, {"role": "assistant", "content": [{**CALL, "input": '{"a'}]}]}
    assert WIRE.mended_request(body)["messages"][1]["content"][0]["input"] == {"INVALID_JSON": '{"a'}
    sound = {"messages": [TURN, {"role": "assistant", "content": [CALL]}]}
    assert WIRE.mended_request(sound) is sound
    assert (WIRE.output_limit({"max_tokens": 5}), WIRE.limited({}, 5), WIRE.choices({})) == (
        5,
        {"max_tokens": 5},
        1,
    )
    thinking = {"type": "enabled", "budget_tokens": 9000}
    assert WIRE.limited({"thinking": thinking}, 4000)["thinking"]["budget_tokens"] == 3999


def test_requests_survive_the_way_through_the_wire():
    request = Request(
        [
            Message(Role.SYSTEM, "Be good."),
            Message(Role.USER, "Hi"),
            Message(Role.ASSISTANT, "x", (ToolCall("a", "bash", '{"c": 1}'),)),
            Message(Role.TOOL, "no", call_id="a", failed=True),
        ],
        tools=[Tool("bash", "Runs.", {"type": "object"})],
        model="m",
        temperature=0.5,
        max_output_tokens=9,
        stop=("x",),
        tool_choice="required",
        parallel=False,
        effort="low",
    )
    assert WIRE.read_request(WIRE.write_request(request, "m")) == request


def test_reply_is_read_with_its_reasoning_and_native():
    reply = WIRE.read_reply(message(THINKING, TEXT, CALL, reason="tool_use"), BODIES[MESSAGES])
    assert (reply.text, reply.reasoning) == ("Here.", "Let me see.")
    assert reply.calls == (ToolCall("toolu_1", "bash", '{"command": "ls ä"}'),)
    turns = [Message(Role.USER, "Hi"), Message(Role.ASSISTANT, "Here.", reply.calls, native=reply.native)]
    assert WIRE.write_request(Request(turns), "m")["messages"][1]["content"] == [THINKING, TEXT, CALL]
    refused = WIRE.read_reply(
        message(CALL, reason="refusal", stop_details={"explanation": "No."}), BODIES[MESSAGES]
    )
    assert (refused.text, refused.calls, refused.stop) == ("No.", (), Stop.REFUSAL)
