"""Whole messages, and requests of Anthropic's: mended, checked, counted, split, read and written."""

import pytest

from dgm.domain import Usage
from dgm.messages import Message, Request, Role, Stop, Tool, ToolCall
from dgm.wires.wire import UnusableReply
from tests.support.wires.messages_script import CALL, TEXT, THINKING, WIRE, message
from tests.support.wires.vendors import (
    BODIES,
    MESSAGES,
    ask_whole,
)


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
