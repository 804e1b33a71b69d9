"""Chat Completions through the real package: what is sent, and what is understood."""

import json

import pytest

from dgm.messages import Message, Native, Request, Role, Stop, Tool, ToolCall
from tests.unit.models.openai_chat_wire import (
    BASH,
    COUNTED,
    GO,
    ask,
    chunk,
    completion,
    function,
    piece,
    sent,
)
from tests.unit.models.openai_mock import stream, whole


def test_conversation_is_sent_in_the_servers_words():
    request = Request(
        (
            Message(Role.SYSTEM, "You are brief."),
            Message(Role.USER, "Go."),
            Message(Role.ASSISTANT, "", (ToolCall("call_1", "bash", '{"command": "ls"}'),)),
            Message(Role.TOOL, "a.py", call_id="call_1"),
            Message(Role.ASSISTANT, "Done."),
        ),
        (BASH, Tool("stop", "End.")),
        "openai/gpt-5.2",
        0.5,
        500,
        0.9,
        ("END",),
        "tool:bash",
        False,
        "low",
    )
    asked = sent(request)
    assert asked["model"] == "gpt-5.2"
    assert asked["messages"] == [
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [function("bash", '{"command": "ls"}', "call_1")],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a.py"},
        {"role": "assistant", "content": "Done."},
    ]
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["bash", "stop"]
    assert asked["tools"][1]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert asked["tool_choice"] == {"type": "function", "function": {"name": "bash"}}
    assert (asked["temperature"], asked["top_p"], asked["stop"]) == (0.5, 0.9, ["END"])
    assert (asked["parallel_tool_calls"], asked["reasoning_effort"]) == (False, "low")
    assert (asked["max_completion_tokens"], asked["store"], asked["stream"]) == (500, False, False)
    assert "max_tokens" not in asked


def test_what_was_not_asked_for_is_not_sent():
    asked = sent(Request((Message(Role.USER, "Go."),), parallel=False))
    assert set(asked) == {"model", "messages", "store", "stream"}


def test_compatible_server_is_sent_what_it_knows():
    asked = sent(GO, compatible=True, streamed=True)
    assert (asked["max_tokens"], asked["stream"], asked["stream_options"]) == (
        500,
        True,
        {"include_usage": True},
    )
    assert not {"max_completion_tokens", "store", "tool_choice", "parallel_tool_calls"} & set(asked)


@pytest.mark.parametrize(("choice", "tools", "wanted"), [
    ("auto", (BASH,), None), ("none", (BASH,), "none"), ("required", (BASH,), "required"), ("none", (), None),
    ("required", (), "required"),
])  # fmt: skip
def test_choice_of_tools_is_sent_where_it_says_something(choice, tools, wanted):
    assert sent(Request(GO.messages, tools, tool_choice=choice)).get("tool_choice") == wanted


def test_failed_tool_is_told_in_words():
    request = Request((*GO.messages, Message(Role.TOOL, "no such file", call_id="call_1", failed=True)))
    assert sent(request)["messages"][-1]["content"] == "The tool failed:\nno such file"


def test_half_a_character_does_not_stop_a_call():
    asked = sent(
        Request((Message(Role.USER, "cut \udc80 here"),), (Tool("t", "\ud800", {"type": "object"}),))
    )
    assert asked["messages"][0]["content"] == "cut ? here"
    assert asked["tools"][0]["function"]["description"] == "?"


PLAIN = whole(completion({"content": "Hello."}))
STREAMED = stream(
    chunk({"role": "assistant", "content": "", "refusal": None}),
    ": keep-alive\n\n",
    chunk({"content": "Hel"}),
    chunk({"content": "lo."}),
    chunk({}, "stop"),
    COUNTED,
)


@pytest.mark.parametrize("answer", [PLAIN, STREAMED])
def test_text_and_usage_are_read(answer):
    reply = ask(answer, compatible=False)
    assert (reply.text, reply.calls, reply.stop, reply.native) == ("Hello.", (), Stop.END, None)
    used = reply.usage
    assert (used.calls, used.input_tokens, used.output_tokens, used.usd) == (1, 1200, 90, 0)
    assert (used.cached_tokens, used.written_tokens, used.reasoning_tokens) == (1024, 100, 64)


TWO_CALLS = (
    ToolCall("call_a", "bash", '{"command": "ls"}'),
    ToolCall("call_b", "bash", '{"command": "pwd"}'),
)


@pytest.mark.parametrize("answer", [
    whole(completion({"tool_calls": [function("bash", '{"command": "ls"}', "call_a"),
                                     function("bash", '{"command": "pwd"}', "call_b")]}, "tool_calls")),
    # One after the other, as OpenAI does.
    stream(chunk(piece(0, "", "bash", "call_a")), chunk(piece(0, '{"comm')), chunk(piece(0, 'and": "ls"}')),
           chunk(piece(1, "", "bash", "call_b")), chunk(piece(1, '{"command": "pwd"}')), chunk({}, "tool_calls")),
    # Interleaved.
    stream(chunk(piece(0, "", "bash", "call_a")), chunk(piece(1, "", "bash", "call_b")),
           chunk(piece(1, '{"command": ')), chunk(piece(0, '{"command": ')), chunk(piece(1, '"pwd"}')),
           chunk(piece(0, '"ls"}')), chunk({}, "tool_calls")),
    # Without an index: a name starts a call, what has neither continues the last.
    stream(chunk(piece(None, '{"command": ', "bash", "call_a")), chunk(piece(None, '"ls"}')),
           chunk(piece(None, '{"command": "pwd"}', "bash", "call_b")), chunk({}, "tool_calls")),
    # Without an index, but with the id on every piece.
    stream(chunk(piece(None, '{"command": ', "bash", "call_a")), chunk(piece(None, "", "bash", "call_b")),
           chunk(piece(None, '"ls"}', None, "call_a")), chunk(piece(None, '{"command": "pwd"}', None, "call_b")),
           chunk({}, "tool_calls")),
    # Every call counted as 0, and the reason is that of a text.
    stream(chunk(piece(0, '{"command": "ls"}', "bash", "call_a")),
           chunk(piece(0, '{"command": "pwd"}', "bash", "call_b")), chunk({}, "stop")),
])  # fmt: skip
def test_several_calls_are_put_together(answer):
    reply = ask(answer)
    assert (reply.text, reply.calls, reply.stop) == ("", TWO_CALLS, Stop.TOOL_CALLS)


@pytest.mark.parametrize("answer", [
    whole(completion({"function_call": {"name": "bash", "arguments": "{}"}}, "function_call")),
    stream(chunk({"function_call": {"name": "bash", "arguments": "{"}}),
           chunk({"function_call": {"arguments": "}"}}), chunk({}, "function_call")),
])  # fmt: skip
def test_legacy_function_call_is_a_call(answer):
    reply = ask(answer)
    assert (reply.calls, reply.stop) == ((ToolCall("call_0", "bash", "{}"),), Stop.TOOL_CALLS)


def test_calls_without_an_id_of_their_own_get_one_that_is_free():
    calls = [function("bash", "{}", None), function("bash", "{}", "call_0"), function("bash", "{}", "same"),
             function("bash", "{}", "same"), function("bash", "{}", "")]  # fmt: skip
    request = Request((*GO.messages, Message(Role.ASSISTANT, "", (ToolCall("call_1", "bash", "{}"),))))
    reply = ask(whole(completion({"tool_calls": calls}, "tool_calls")), request)
    assert [call.id for call in reply.calls] == ["call_2", "call_0", "same", "call_3", "call_4"]


@pytest.mark.parametrize(
    ("arguments", "text"), [("", "{}"), (None, "{}"), ({"command": "ls"}, '{"command": "ls"}')]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_arguments_are_always_json_text(arguments, text, streamed):
    call = {"index": 0, **function("bash", arguments)}
    answer = (
        stream(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"))
        if streamed
        else whole(completion({"tool_calls": [call]}, "tool_calls"))
    )
    assert ask(answer).calls[0].arguments == text


@pytest.mark.parametrize(("finish", "stop"), [
    ("stop", Stop.END), ("length", Stop.LENGTH), ("content_filter", Stop.REFUSAL), ("eos", Stop.END),
])  # fmt: skip
@pytest.mark.parametrize("streamed", [False, True])
def test_reason_to_stop_is_understood(finish, stop, streamed):
    plain = whole(completion({"content": "So"}, finish))
    assert ask(stream(chunk({"content": "So"}), chunk({}, finish)) if streamed else plain).stop is stop


@pytest.mark.parametrize("answer", [
    whole(completion({"refusal": "I can't help with that."})),
    stream(chunk({"refusal": "I can't help "}), chunk({"refusal": "with that."}), chunk({}, "stop")),
])  # fmt: skip
def test_refusal_is_told_in_the_models_words(answer):
    reply = ask(answer)
    assert (reply.text, reply.stop) == ("I can't help with that.", Stop.REFUSAL)


@pytest.mark.parametrize("answer", [
    whole(completion({"content": "x" * 80}, usage=None)),
    whole(completion({"content": "x" * 80}, usage={"prompt_tokens": 0, "completion_tokens": 0})),
    stream(chunk({"content": "x" * 80}, "stop")),
])  # fmt: skip
def test_missing_usage_is_estimated_and_never_nothing(answer):
    used = ask(answer).usage
    assert (used.calls, used.output_tokens) == (1, 20)
    assert 20 <= used.input_tokens <= 40
    empty = ask(whole(completion({"content": ""}, usage=None)), Request((Message(Role.USER, ""),))).usage
    assert (empty.input_tokens, empty.output_tokens) == (1, 1)


def test_reasoning_that_only_the_total_counts_is_output():
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 45,
             "completion_tokens_details": {"reasoning_tokens": 30}}  # fmt: skip
    used = ask(whole(completion({"content": "a"}, usage=usage))).usage
    assert (used.input_tokens, used.output_tokens, used.reasoning_tokens) == (10, 35, 30)


def test_usage_of_every_chunk_counts_once():
    many = [{"prompt_tokens": 7, "completion_tokens": n, "total_tokens": 7 + n} for n in (1, 2, 3)]
    used = ask(
        stream(*(chunk({"content": "a"}, usage=usage) for usage in many), chunk({}, "stop", usage=None))
    ).usage
    assert (used.input_tokens, used.output_tokens) == (7, 3)


DETAILS = [
    {"type": "reasoning.text", "text": "Let me look.", "signature": "c2ln", "format": "claude", "index": 0},
    {"type": "reasoning.encrypted", "data": "ZW5j", "format": "openai", "index": 1},
]  # fmt: skip
THOUGHT = {"reasoning": "Let me look.", "reasoning_details": DETAILS}


@pytest.mark.parametrize("answer", [
    whole(completion({**THOUGHT, "content": "Looking.", "tool_calls": [function("bash", "{}")]}, "tool_calls")),
    stream(
        chunk({"reasoning": "Let me ", "reasoning_details": [
            {"type": "reasoning.text", "text": "Let me ", "signature": None, "format": "claude", "index": 0}]}),
        chunk({"reasoning": "look.", "reasoning_details": [
            {"type": "reasoning.text", "text": "look.", "format": "claude", "index": 0}]}),
        chunk({"reasoning_details": [
            {"type": "reasoning.text", "text": "", "signature": "c2ln", "format": "claude", "index": 0}]}),
        chunk({"reasoning_details": [DETAILS[1]]}),
        chunk({"content": "Looking."}), chunk(piece(0, "{}", "bash", "call_abc")), chunk({}, "tool_calls")),
])  # fmt: skip
def test_reasoning_is_read_and_sent_back_as_it_came(answer):
    reply = ask(answer)
    assert reply.reasoning == "Let me look."
    turn = Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native)
    back = sent(Request((*GO.messages, turn)), compatible=True)["messages"][-1]
    assert back == {
        "role": "assistant", "content": "Looking.", "tool_calls": [function("bash", "{}")], **THOUGHT,
    }  # fmt: skip


@pytest.mark.parametrize("answer", [
    whole(completion({"reasoning_content": "Hm.", "content": "Yes."})),
    stream(chunk({"reasoning_content": "H"}), chunk({"reasoning_content": "m."}), chunk({"content": "Yes."}, "stop")),
])  # fmt: skip
def test_changed_turn_keeps_its_reasoning_before_our_text(answer):
    reply = ask(answer)
    assert (reply.reasoning, reply.text) == ("Hm.", "Yes.")
    turn = Message(Role.ASSISTANT, "No.", (ToolCall("c", "bash", "{}"),), native=reply.native)
    assert sent(Request((turn,)), compatible=True)["messages"] == [
        {
            "role": "assistant",
            "content": "No.",
            "tool_calls": [function("bash", "{}", "c")],
            "reasoning_content": "Hm.",
        }
    ]


def test_calls_whose_json_was_written_anew_are_unchanged():
    native = {"role": "assistant", "content": None, "reasoning": "Hm.",
              "tool_calls": [function("bash", '{"command":"ls"}', "c")]}  # fmt: skip
    turn = Message(
        Role.ASSISTANT,
        "",
        (ToolCall("c", "bash", '{ "command": "ls" }'),),
        native=Native("openai-chat", json.dumps(native)),
    )
    assert sent(Request((turn,)))["messages"] == [native]


def test_signature_on_a_call_is_sent_back():
    extra = {"google": {"thought_signature": "c2ln"}}
    signed = {**function("bash", "{}", "c"), "extra_content": extra}
    answers = (
        whole(completion({"tool_calls": [signed]}, "tool_calls")),
        stream(chunk({"tool_calls": [{"index": 0, **signed}]}), chunk({}, "stop")),
    )
    for answer in answers:
        reply = ask(answer)
        turn = Message(Role.ASSISTANT, "", reply.calls, native=reply.native)
        assert sent(Request((turn,)))["messages"][0]["tool_calls"] == [signed]


def test_another_vendors_native_is_ignored():
    turn = Message(Role.ASSISTANT, "Hi.", native=Native("anthropic", '[{"type": "thinking"}]'))
    assert sent(Request((turn,)))["messages"] == [{"role": "assistant", "content": "Hi."}]
