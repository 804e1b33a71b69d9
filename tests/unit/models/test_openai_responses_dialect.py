"""Responses through the real package: what is sent, what is understood, what is no answer."""

import json

import httpx2
import openai
import pytest

from dgm.messages import Message, Native, Request, RequestRefused, Role, Stop, Tool, ToolCall
from dgm.models.dialect import Broken
from dgm.models.openai_responses import ResponsesDialect
from tests.unit.models.openai_mock import EVENTS, Hanging, Server, Torn, check, stream, talk, whole

BASH = Tool("bash", "Run it.", {"type": "object", "properties": {"command": {"type": "string"}}})
GO = Request(
    (Message(Role.SYSTEM, "You are brief."), Message(Role.USER, "Go.")), (BASH,), max_output_tokens=500
)
USAGE = {
    "input_tokens": 1200,
    "input_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 100},
    "output_tokens": 90,
    "output_tokens_details": {"reasoning_tokens": 64},
    "total_tokens": 1290,
}
THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Let me look."}],
    "encrypted_content": "gAAAA=",
}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "bash",
    "arguments": '{"command":"ls"}',
}


def said(*parts, item_id="msg_1"):
    content = [
        {"type": "output_text", "text": part, "annotations": []} if isinstance(part, str) else part
        for part in parts
    ]
    return {"id": item_id, "type": "message", "role": "assistant", "status": "completed", "content": content}


def response(*output, status="completed", usage=USAGE, error=None, reason=None):
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5.2",
        "status": status,
        "error": error,
        "incomplete_details": reason and {"reason": reason},
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def streamed(body):
    """The body as the end of a stream."""
    events = [
        {
            "type": "response.created",
            "response": {**body, "status": "in_progress", "output": [], "usage": None},
        }
    ]
    for at, item in enumerate(body["output"]):
        begun = {**item, "status": "in_progress"}
        events.append({"type": "response.output_item.added", "output_index": at, "item": begun})
        events.append(
            {"type": "response.output_text.delta", "output_index": at, "item_id": item["id"], "delta": "x"}
        )
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    events.append({"type": f"response.{body['status']}", "response": body})
    return stream(*({**event, "sequence_number": n} for n, event in enumerate(events)), end="")


def ask(answer, request=GO):
    is_stream = answer.headers["content-type"].startswith("text/event-stream")
    return talk(ResponsesDialect(Server(answer).client(), "gpt-5.2", is_stream), request)[0]


def both(body, request=GO):
    """What a body says: the same, in one piece and streamed."""
    plain, drawn = ask(whole(body), request), ask(streamed(body), request)
    assert plain == drawn
    return plain


def sent(request, *, streaming=False):
    answer = streamed(response(said("ok"))) if streaming else whole(response(said("ok")))
    server = Server(answer)
    talk(ResponsesDialect(server.client(), "gpt-5.2", streaming), request)
    return server.asked[0]


def test_conversation_is_sent_in_the_servers_words():
    request = Request(
        (
            Message(Role.SYSTEM, "You are brief."),
            Message(Role.SYSTEM, "You are kind."),
            Message(Role.USER, "Go."),
            Message(Role.ASSISTANT, "Looking.", (ToolCall("call_1", "bash", '{"command": "ls"}'),)),
            Message(Role.TOOL, "a.py", call_id="call_1"),
            Message(Role.SYSTEM, "Two steps left."),
            Message(Role.ASSISTANT, "Done."),
        ),
        (BASH, Tool("stop", "End.")),
        "openai/gpt-5.2",
        0.5,
        500,
        0.9,
        (),
        "tool:bash",
        False,
        "low",
    )
    asked = sent(request)
    assert asked["instructions"] == "You are brief.\n\nYou are kind."
    assert asked["input"] == [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Looking."},
        {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": '{"command": "ls"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
        {"role": "developer", "content": "Two steps left."},
        {"role": "assistant", "content": "Done."},
    ]
    assert asked["tools"] == [
        {"type": "function", "name": "bash", "description": "Run it.", "parameters": BASH.parameters, "strict": False},
        {"type": "function", "name": "stop", "description": "End.", "strict": False,
         "parameters": {"type": "object", "properties": {}}},
    ]  # fmt: skip
    assert (asked["model"], asked["tool_choice"]) == ("gpt-5.2", {"type": "function", "name": "bash"})
    assert (asked["max_output_tokens"], asked["temperature"], asked["top_p"]) == (500, 0.5, 0.9)
    assert (asked["parallel_tool_calls"], asked["reasoning"]) == (False, {"effort": "low"})


@pytest.mark.parametrize("streaming", [False, True])
def test_nothing_is_kept_at_the_provider(streaming):
    asked = sent(Request((Message(Role.USER, "Go."),), parallel=False), streaming=streaming)
    assert (asked["store"], asked["include"]) == (False, ["reasoning.encrypted_content"])
    assert set(asked) == {"model", "input", "store", "include", "stream"}


@pytest.mark.parametrize(("choice", "tools", "wanted"), [
    ("auto", (BASH,), None), ("none", (BASH,), "none"), ("required", (BASH,), "required"), ("none", (), None),
])  # fmt: skip
def test_choice_of_tools_is_sent_where_it_says_something(choice, tools, wanted):
    assert sent(Request(GO.messages, tools, tool_choice=choice)).get("tool_choice") == wanted


def test_stop_texts_are_refused_and_nothing_is_asked():
    server = Server()
    with pytest.raises(RequestRefused, match="stop is not supported") as caught:
        talk(ResponsesDialect(server.client(), "m", True), Request(GO.messages, stop=("END",)))
    assert (caught.value.code, server.requests) == ("unsupported_parameter", [])


def test_model_that_does_not_reason_is_not_asked_for_its_reasoning_again():
    refusal = {"message": "Encrypted content is not supported with this model.", "type": "invalid_request_error",
               "param": "include", "code": None}  # fmt: skip
    server = Server(whole({"error": refusal}, 400), whole(response(said("a"))), whole(response(said("b"))))
    replies = talk(ResponsesDialect(server.client(), "gpt-4.1", False), GO, GO)
    assert [reply.text for reply in replies] == ["a", "b"]
    assert ["include" in asked for asked in server.asked] == [True, False, False]


def test_other_bad_requests_are_the_packages_error():
    refusal = {
        "message": "Unsupported parameter: 'temperature'",
        "param": "temperature",
        "code": "unsupported_parameter",
    }
    server = Server(whole({"error": refusal}, 400))
    with pytest.raises(openai.BadRequestError, match="temperature"):
        talk(ResponsesDialect(server.client(), "m", False), GO)
    assert len(server.requests) == 1


def test_text_and_usage_are_read():
    reply = both(response(said("Hel", "lo."), said("Bye.", item_id="msg_2")))
    assert (reply.text, reply.calls, reply.stop, reply.native) == ("Hello.\n\nBye.", (), Stop.END, None)
    used = reply.usage
    assert (used.calls, used.input_tokens, used.output_tokens, used.usd) == (1, 1200, 90, 0)
    assert (used.cached_tokens, used.written_tokens, used.reasoning_tokens) == (1024, 100, 64)


def test_missing_usage_is_estimated():
    used = both(response(said("x" * 80), usage=None)).usage
    assert (used.calls, used.output_tokens) == (1, 20)
    assert used.input_tokens > 1


def test_calls_are_read():
    second = {**CALL, "id": "fc_2", "call_id": "call_2", "arguments": ""}
    reply = both(response(said("Looking."), CALL, second))
    assert (reply.text, reply.stop) == ("Looking.", Stop.TOOL_CALLS)
    assert reply.calls == (ToolCall("call_1", "bash", '{"command":"ls"}'), ToolCall("call_2", "bash", "{}"))


def test_call_without_an_id_gets_one():
    assert both(response({**CALL, "call_id": None})).calls[0].id == "call_0"


def test_refusal_is_told_in_the_models_words():
    reply = both(response(said({"type": "refusal", "refusal": "I can't help with that."})))
    assert (reply.text, reply.stop) == ("I can't help with that.", Stop.REFUSAL)


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", Stop.LENGTH), ("content_filter", Stop.REFUSAL)]
)
def test_incomplete_response_says_why(reason, stop):
    reply = both(response(THOUGHT, status="incomplete", reason=reason))
    assert (reply.text, reply.calls, reply.stop) == ("", (), stop)
    assert both(response(status="incomplete", reason=reason)).stop is stop


def back(reply, text=None, calls=None):
    """What a reply becomes when the agent sends it back, changed or not."""
    turn = Message(
        Role.ASSISTANT,
        reply.text if text is None else text,
        reply.calls if calls is None else calls,
        native=reply.native,
    )
    return sent(Request((turn,)))["input"]


def test_reasoning_is_read_and_sent_back_as_it_came():
    reply = both(
        response(
            {**THOUGHT, "status": None, "content": None}, {**said("Looking."), "phase": "commentary"}, CALL
        )
    )
    assert reply.reasoning == "Let me look."
    assert back(reply) == [THOUGHT, {**said("Looking."), "phase": "commentary"}, CALL]


def test_reasonings_status_is_not_sent_back():
    reply = both(response({**THOUGHT, "status": "completed", "summary": []}, CALL))
    assert back(reply) == [{**THOUGHT, "summary": []}, CALL]


def test_changed_turn_keeps_its_reasoning_and_what_it_is_paired_by():
    reply = both(response(THOUGHT, said("Looking."), CALL))
    calls = (ToolCall("call_1", "bash", '{"command":"pwd"}'), ToolCall("other", "bash", "{}"))
    assert back(reply, "Hm.", calls) == [
        THOUGHT,
        said("Hm."),
        {k: v for k, v in CALL.items() if k != "status"} | {"arguments": '{"command":"pwd"}'},
        {"type": "function_call", "call_id": "other", "name": "bash", "arguments": "{}"},
    ]


def test_reasoning_without_what_it_led_to_is_not_sent_back():
    assert back(both(response(THOUGHT, status="incomplete", reason="max_output_tokens"))) == []


def test_reasoning_that_is_not_encrypted_makes_no_native():
    plain = {name: value for name, value in THOUGHT.items() if name != "encrypted_content"}
    reply = both(response(plain, said("Hi.")))
    assert (reply.reasoning, reply.native) == ("Let me look.", None)
    assert back(reply) == [{"role": "assistant", "content": "Hi."}]


def test_reasoning_in_the_open_is_read():
    thought = {"type": "reasoning_text", "text": "Hm."}
    open_thought = {"id": "rs_1", "type": "reasoning", "summary": [], "content": [thought]}
    assert both(response(open_thought, said("Hi."))).reasoning == "Hm."


def test_another_vendors_native_is_ignored():
    turn = Message(Role.ASSISTANT, "Hi.", native=Native("openai-chat", json.dumps({"reasoning": "x"})))
    assert sent(Request((turn,)))["input"] == [{"role": "assistant", "content": "Hi."}]


def failed(code, message="It failed."):
    return response(status="failed", usage=None, error={"code": code, "message": message})


@pytest.mark.parametrize("code", ["server_error", "rate_limit_exceeded"])
@pytest.mark.parametrize("told", [whole, streamed])
def test_failure_that_may_pass_is_broken(code, told):
    with pytest.raises(Broken, match=f"{code}: It failed."):
        ask(told(failed(code)))


@pytest.mark.parametrize("code", ["context_length_exceeded", "invalid_prompt"])
@pytest.mark.parametrize("told", [whole, streamed])
def test_failure_that_is_the_requests_is_told_to_the_agent(code, told):
    with pytest.raises(RequestRefused, match="It failed") as caught:
        ask(told(failed(code)))
    assert caught.value.code == code


@pytest.mark.parametrize("told", [whole, streamed])
def test_failure_that_a_person_must_mend_is_the_packages_error(told):
    with pytest.raises(openai.APIError) as caught:
        ask(told(failed("insufficient_quota")))
    assert caught.value.code == "insufficient_quota"


@pytest.mark.parametrize("event", [
    {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None, "sequence_number": 1},
    {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "slow down"}},
])  # fmt: skip
def test_error_event_is_the_packages_error(event):
    with pytest.raises(openai.APIError, match="slow down") as caught:
        ask(stream({"type": "response.created", "response": response()}, event))
    assert caught.value.code == "rate_limit_exceeded"


@pytest.mark.parametrize(("answer", "why"), [
    (stream({"type": "response.created", "response": response()}, end=""), "without a final response"),
    (stream({"type": "response.completed"}, end=""), "holds no response"),
    (stream("data: {\"type\n\n"), "not JSON"),
    (whole(response()), "holds no output"),
    (whole({"object": "response", "status": "completed"}), "holds no output"),
    (whole(response(said("a"), status="in_progress")), "is in_progress"),
    (whole(response({**CALL, "name": None})), "names no function"),
    (httpx2.Response(200, headers={"content-type": "text/html"}, text="<html>"), r"no JSON \(text/html"),
])  # fmt: skip
def test_what_is_no_answer_is_broken(answer, why):
    with pytest.raises(Broken, match=why):
        ask(answer)


def test_items_that_came_before_count_where_the_end_leaves_them_out():
    body = response(THOUGHT, said("Hi."))
    events = [
        {"type": "response.output_item.done", "output_index": at, "item": item}
        for at, item in enumerate(body["output"])
    ]
    reply = ask(stream(*events, {"type": "response.completed", "response": {**body, "output": []}}, end=""))
    assert reply == both(body)


@pytest.mark.parametrize("body", [Torn, Hanging])
def test_answer_that_is_whole_outlives_its_stream(body):
    events = streamed(response(said("Hi."))).content
    assert ask(httpx2.Response(200, headers=EVENTS, stream=body(events))).text == "Hi."


def test_empty_response_tells_what_it_comes_to():
    with pytest.raises(Broken) as caught:
        ask(whole(response()))
    assert (caught.value.reply.text, caught.value.reply.usage.input_tokens) == ("", 1200)


def test_stream_that_is_none_is_broken():
    with pytest.raises(Broken, match="where a stream was asked for"):
        talk(ResponsesDialect(Server(whole(response(said("a")))).client(), "m", True), GO)


def test_check_asks_for_the_list_of_models():
    server = Server(whole({"object": "list", "data": [{"id": "m", "object": "model"}]}))
    check(ResponsesDialect(server.client(), "m", True))
    assert server.requests[0].url.path == "/v1/models"
