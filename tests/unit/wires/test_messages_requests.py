"""What dgm itself asks in Messages: turns as the provider takes them, reasoning unharmed, marks for its cache."""

import json

import pytest

from dgm.messages import Message, Native, Request, RequestRefused, Role, Tool, ToolCall
from dgm.wires import WIRES
from tests.support.wires.messages_script import CALL, TEXT, THINKING
from tests.support.wires.vendors import MESSAGES

MODEL = "claude-sonnet-5"
BASH = Tool("bash", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
REDACTED = {"type": "redacted_thinking", "data": "c2VjcmV0"}


def arguments_of(request, model):
    return WIRES[MESSAGES].write_request(request, model)


def said(text="", *calls, native=None):
    return Message(Role.ASSISTANT, text, calls, native=native)


def result(name, text="", failed=False):
    return Message(Role.TOOL, text, call_id=name, failed=failed)


def turns(*messages, **more):
    written = arguments_of(Request(messages, **more), MODEL)["messages"]
    return [(turn["role"], [{k: v for k, v in b.items() if k != "cache_control"} for b in turn["content"]])
            for turn in written]  # fmt: skip


LS = ToolCall("a", "bash", '{"command": "ls"}')
PWD = ToolCall("b", "bash", '{"command": "pwd"}')
HI = Message(Role.USER, "Hi")


def test_results_make_one_turn_and_stand_first():
    written = turns(
        HI, said("ok", LS, PWD), result("a", "x"), Message(Role.USER, "and?"), result("b", "", True)
    )
    assert [role for role, _ in written] == ["user", "assistant", "user"]
    assert written[1][1] == [
        {"type": "text", "text": "ok"},
        {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "b", "name": "bash", "input": {"command": "pwd"}},
    ]
    assert written[2][1] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "x"},
        {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": "The tool failed and said nothing.",
            "is_error": True,
        },
        {"type": "text", "text": "and?"},
    ]


def test_blank_texts_are_left_out_and_adjacent_turns_merged():
    written = turns(
        HI, Message(Role.USER, " \n"), said(""), Message(Role.USER, "there"), said("x"), said("y ")
    )
    assert written == [
        ("user", [{"type": "text", "text": "Hi"}, {"type": "text", "text": "there"}]),
        ("assistant", [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]),
    ]


def test_a_user_speaks_first():
    assert [role for role, _ in turns(said("Hello"), HI)] == ["user", "assistant", "user"]


def test_nothing_to_answer_is_refused():
    with pytest.raises(RequestRefused) as caught:
        turns(Message(Role.SYSTEM, "x"), Message(Role.USER, ""))
    assert caught.value.code == "invalid_request"


@pytest.mark.parametrize("text", ["{cut", "[1]", '"x"', "[" * 100_000])
def test_arguments_that_are_no_object_are_shown_as_they_were(text):
    written = turns(HI, said("", ToolCall("a", "bash", text)), result("a", "x"))
    assert written[1][1][0]["input"] == {"INVALID_JSON": text}


NATIVE = Native("anthropic", json.dumps([THINKING, {**TEXT, "citations": None}, REDACTED, CALL]))
SAME = ToolCall("toolu_1", "bash", '{ "command" : "ls \\u00e4" }')


def test_a_native_goes_back_whole_where_the_turn_is_unchanged():
    written = turns(HI, said("Here.", SAME, native=NATIVE), result("toolu_1", "x"))
    assert written[1][1] == json.loads(NATIVE.data)


def test_of_a_changed_turn_only_the_reasoning_goes_back():
    written = turns(HI, said("There.", SAME, native=NATIVE), result("toolu_1", "x"))
    assert written[1][1] == [THINKING, REDACTED, {"type": "text", "text": "There."}, CALL]


def test_reasoning_that_was_cut_off_is_left_out():
    native = Native("anthropic", json.dumps([{**THINKING, "signature": ""}]))
    assert [role for role, _ in turns(HI, said("", native=native), HI)] == ["user"]
    native = Native("anthropic", json.dumps([THINKING, TEXT, {**THINKING, "signature": ""}]))
    assert turns(HI, said("Here.", native=native), HI)[1][1] == [THINKING, TEXT]


def test_tools_and_how_to_choose_among_them():
    def choice(**more):
        return arguments_of(Request([HI], [BASH, Tool("bare", "")], **more), MODEL).get("tool_choice")

    tools = arguments_of(Request([HI], [BASH, Tool("bare", "")]), MODEL)["tools"]
    assert tools[0] == {"name": "bash", "description": "Runs a command.", "input_schema": BASH.parameters}
    assert tools[1]["input_schema"] == {"type": "object"} and "description" not in tools[1]
    assert choice() is None
    assert choice(parallel=False) == {"type": "auto", "disable_parallel_tool_use": True}
    assert choice(tool_choice="required") == {"type": "any"}
    assert choice(tool_choice="none", parallel=False) == {"type": "none"}
    assert choice(tool_choice="tool:bash", parallel=False) == {
        "type": "tool", "name": "bash", "disable_parallel_tool_use": True}  # fmt: skip
    assert "tool_choice" not in arguments_of(Request([HI], tool_choice="required"), MODEL)


def test_limits_and_effort():
    asked = arguments_of(
        Request([HI], max_output_tokens=5, stop=("END",), effort="minimal", temperature=0.5), MODEL
    )
    assert (asked["max_tokens"], asked["stop_sequences"]) == (5, ["END"])
    assert asked["output_config"] == {"effort": "low"}
    assert asked["temperature"] == 0.5
    assert arguments_of(Request([HI], effort="none"), MODEL)["thinking"] == {"type": "disabled"}
    with pytest.raises(RequestRefused, match="effort 'huge'"):
        arguments_of(Request([HI], effort="huge"), MODEL)


def marks(asked):
    blocks = [*asked.get("tools", ()), *asked.get("system", ())]
    blocks += [block for turn in asked["messages"] for block in turn["content"]]
    return [
        block.get("text") or block.get("content") or block["name"]
        for block in blocks
        if "cache_control" in block
    ]


def test_cache_marks_stand_where_the_next_request_is_still_the_same():
    talk = [
        HI,
        said("", LS),
        result("a", "first"),
        said("", PWD),
        result("b", "second"),
        said("z"),
        result("c"),
    ]
    assert marks(arguments_of(Request([Message(Role.SYSTEM, "S"), *talk[:5]], [BASH]), MODEL)) == [
        "S", "first", "second"]  # fmt: skip
    assert marks(arguments_of(Request(talk[:3], [BASH]), MODEL)) == ["bash", "Hi", "first"]
    assert marks(arguments_of(Request(talk), MODEL)) == ["second"]
