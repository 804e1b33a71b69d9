"""What dgm itself asks in Chat Completions and Responses: turns in the protocol's words, reasoning as it came."""

import pytest

from dgm.messages import Message, Request, RequestRefused, Role, Tool, ToolCall
from dgm.wires import WIRES
from tests.support.wires.vendors import BODIES, RESPONSES

BASH = Tool("bash", "Run it.", {"type": "object", "properties": {"command": {"type": "string"}}})
LS = ToolCall("call_1", "bash", '{"command": "ls"}')
GO = Message(Role.USER, "Go.")
TALK = (
    Message(Role.SYSTEM, "You are brief."),
    GO,
    Message(Role.ASSISTANT, "Looking.", (LS,)),
    Message(Role.TOOL, "a.py", call_id="call_1"),
    Message(Role.ASSISTANT, "Done."),
)
TOOLS = (BASH, Tool("stop", "End."))
EMPTY = {"type": "object", "properties": {}}


def sent(protocol, *messages, tools=(), **more):
    return WIRES[protocol].write_request(Request(messages or (GO,), tools, **more), "m")


def test_conversation_is_asked_in_the_words_of_responses():
    asked = sent(RESPONSES, *TALK, tools=TOOLS, tool_choice="tool:bash", parallel=False, effort="low")
    assert asked["instructions"] == "You are brief."
    assert asked["input"] == [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Looking."},
        {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": '{"command": "ls"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
        {"role": "assistant", "content": "Done."},
    ]
    assert (asked["tools"][1]["parameters"], asked["tools"][1]["strict"]) == (EMPTY, False)
    assert asked["tool_choice"] == {"type": "function", "name": "bash"}
    assert (asked["parallel_tool_calls"], asked["reasoning"]["effort"]) == (False, "low")


def test_stop_texts_have_no_word_in_responses():
    with pytest.raises(RequestRefused, match="stop"):
        sent(RESPONSES, stop=("END",))


def test_reasoning_of_responses_goes_back_as_it_came():
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Let me look."}],
        "encrypted_content": "gAAAA=",
    }
    call = {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "bash"}
    whole = {"status": "completed", "output": [thought, {**call, "arguments": '{"command": "ls"}'}]}
    reply = WIRES[RESPONSES].read_reply(whole, BODIES[RESPONSES])
    asked = sent(RESPONSES, GO, Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native))[
        "input"
    ]
    assert asked[1] == thought
    assert (asked[2]["call_id"], asked[2]["arguments"]) == ("call_1", '{"command": "ls"}')
    assert reply.reasoning == "Let me look."
