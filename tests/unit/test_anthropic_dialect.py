"""The Anthropic dialect writes what the provider takes and reads what it says, through the real package."""

import asyncio
import json

import httpx2
import pytest

from dgm.config import ProviderSettings
from dgm.errors import UserError
from dgm.messages import Message, Native, Reply, Request, Role, Stop, Tool
from dgm.models.anthropic_messages import MessagesDialect, open_client
from dgm.models.dialect import Broken
from dgm.models.faults import Refused, Transient, fault_of

MODEL = "claude-sonnet-5"
USAGE = {
    "input_tokens": 10,
    "output_tokens": 20,
    "cache_read_input_tokens": 300,
    "cache_creation_input_tokens": 4,
    "output_tokens_details": {"thinking_tokens": 7},
}
TEXT = {"type": "text", "text": "Here."}
THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls ä"}}
BASH = Tool("bash", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
ASKED = Request([Message(Role.USER, "Hi")], max_output_tokens=64)


def body(content, stop="end_turn", **more):
    return {"id": "m", "type": "message", "role": "assistant", "model": MODEL, "content": content,
            "stop_reason": stop, "stop_sequence": None, "usage": USAGE, **more}  # fmt: skip


def sse(events):
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def told(content, stop="end_turn", piece=3, **more):
    """A message in events, as the provider tells it."""
    start = {**body([], None), "usage": {**USAGE, "output_tokens": 1}}
    events = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(content):
        field = {"text": "text", "thinking": "thinking", "tool_use": "input"}.get(block["type"])
        whole = json.dumps(block["input"]) if field == "input" else block.get(field, "")
        empty = {"input": {}} if field == "input" else {field: ""} if field else {}
        first = {**block, **empty, **({"signature": ""} if field == "thinking" else {})}
        events.append({"type": "content_block_start", "index": index, "content_block": first})
        kind = {"text": "text_delta", "thinking": "thinking_delta", "input": "input_json_delta"}.get(field)
        name = "partial_json" if field == "input" else field
        events += [
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": kind, name: whole[at : at + piece]},
            }
            for at in range(0, len(whole), piece)
        ]
        if field == "thinking":
            delta = {"type": "signature_delta", "signature": block["signature"]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    usage = {
        "output_tokens": 20,
        "input_tokens": None,
        "output_tokens_details": USAGE["output_tokens_details"],
    }
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, **more}, "usage": usage})
    return [*events, {"type": "message_stop"}]


def ask(answer, request=ASKED, stream=False, seen=None):
    """One try against a transport that gives ``answer``: content as text, or a whole response."""

    def respond(http):
        if seen is not None:
            seen.append(json.loads(http.content))
        if isinstance(answer, httpx2.Response):
            return answer
        kind = "text/event-stream" if stream else "application/json"
        return httpx2.Response(200, content=answer, headers={"content-type": kind})

    async def scenario():
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
        dialect = MessagesDialect(open_client(ProviderSettings(), "sk-ant-test-key", http), MODEL, stream)
        try:
            return await dialect.ask(request)
        finally:
            await dialect.close()

    return asyncio.run(asyncio.wait_for(scenario(), 60))


def answered(content, stop, *, stream, **more) -> Reply:
    if stream:
        return ask(sse(told(content, stop, **more)), stream=True)
    return ask(json.dumps(body(content, stop, **more)))


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_read_with_all_that_it_holds(stream):
    content = [THINKING, REDACTED, TEXT, CALL, {**CALL, "id": "toolu_2", "input": {}}]
    reply = answered(content, "tool_use", stream=stream)
    assert reply.text == "Here."
    assert [(call.id, call.name, json.loads(call.arguments)) for call in reply.calls] == [
        ("toolu_1", "bash", {"command": "ls ä"}), ("toolu_2", "bash", {})]  # fmt: skip
    assert reply.reasoning == "Let me see."
    assert reply.stop is Stop.TOOL_CALLS
    assert reply.native == Native("anthropic", json.dumps(content, ensure_ascii=False))
    usage = reply.usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (1, 314, 20)
    assert (usage.cached_tokens, usage.written_tokens, usage.reasoning_tokens, usage.usd) == (300, 4, 7, 0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reason", "stop"),
    [("end_turn", Stop.END), ("stop_sequence", Stop.END), ("max_tokens", Stop.LENGTH),
     ("model_context_window_exceeded", Stop.LENGTH), ("refusal", Stop.REFUSAL), ("news", Stop.END)],
)  # fmt: skip
def test_reasons_to_stop(reason, stop, stream):
    reply = answered([TEXT], reason, stream=stream)
    assert (reply.stop, reply.text, reply.native) == (stop, "Here.", None)


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_tells_why_and_calls_nothing(stream):
    why = {"type": "refusal", "category": "cyber", "explanation": "Declined."}
    reply = answered([CALL], "refusal", stream=stream, stop_details=why)
    assert (reply.stop, reply.text, reply.calls) == (Stop.REFUSAL, "Declined.", ())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("content", "reason"), [([TEXT], "pause_turn"), ([TEXT], "tool_use"), ([TEXT], None), ([], "end_turn")]
)
def test_what_is_no_answer_is_broken(content, reason, stream):
    with pytest.raises(Broken):
        answered(content, reason, stream=stream)


def test_an_empty_answer_may_be_meant():
    with pytest.raises(Broken) as caught:
        answered([], "end_turn", stream=False)
    assert caught.value.reply is not None and caught.value.reply.stop is Stop.END


def test_arguments_are_kept_as_the_model_wrote_them():
    events = told([CALL], "max_tokens")
    cut = [event for event in events if event.get("delta", {}).get("type") != "input_json_delta"]
    delta = {"type": "input_json_delta", "partial_json": '{"command": "l'}
    cut.insert(3, {"type": "content_block_delta", "index": 0, "delta": delta})
    reply = ask(sse(cut), stream=True)
    assert reply.calls[0].arguments == '{"command": "l'
    assert reply.stop is Stop.LENGTH


@pytest.mark.parametrize("left_out", range(1, 9))
def test_a_stream_that_ends_early_is_broken(left_out):
    events = told([TEXT, CALL], "tool_use", piece=30)
    with pytest.raises(Broken):
        ask(sse(events[: len(events) - left_out]), stream=True)


@pytest.mark.parametrize(
    "wrong",
    ['event: message_start\ndata: {"type": "mess', 'event: message_start\ndata: []\n\n', "<html>", "",
     'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {}}\n\n',
     'event: message_start\ndata: {"type": "message_start"}\n\n', 'event: message_start\ndata: null\n\n'],
)  # fmt: skip
def test_a_malformed_stream_is_broken(wrong):
    with pytest.raises(Broken):
        ask(wrong, stream=True)


@pytest.mark.parametrize(
    "wrong", ["", "<html>", '{"type": "mess', "[]", "null", "{}", '{"content": 3}', '"text"']
)
def test_a_malformed_message_is_broken(wrong):
    with pytest.raises(Broken):
        ask(wrong)


@pytest.mark.parametrize("stream", [False, True])
def test_another_content_type_is_broken(stream):
    page = httpx2.Response(200, html="<h1>Sign in</h1>")
    with pytest.raises(Broken, match="text/html"):
        ask(page, stream=stream)


def test_an_error_in_the_midst_of_a_stream_is_the_providers():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(Exception, match="Overloaded") as caught:
        ask(sse([*told([TEXT])[:3], error]), stream=True)
    assert fault_of(caught.value) == Transient("529 Overloaded", overload=True)


def test_an_error_instead_of_a_message_is_the_providers():
    error = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"},
    }
    with pytest.raises(Exception, match="too long") as caught:
        ask(json.dumps(error))
    assert fault_of(caught.value) == Refused("context_length_exceeded", "prompt is too long: 9 > 8")


def test_a_dropped_stream_is_transient():
    async def chunks():
        yield sse(told([TEXT])[:3]).encode()
        raise httpx2.ReadError("connection reset")

    answer = httpx2.Response(200, content=chunks(), headers={"content-type": "text/event-stream"})
    with pytest.raises(httpx2.ReadError) as caught:
        ask(answer, stream=True)
    assert isinstance(fault_of(caught.value), Transient)


def test_a_stream_that_stays_open_after_its_end_is_not_waited_for():
    async def chunks():
        yield sse(told([TEXT])).encode()
        await asyncio.sleep(600)
        yield b""

    answer = httpx2.Response(200, content=chunks(), headers={"content-type": "text/event-stream"})
    assert ask(answer, stream=True).text == "Here."


def test_large_outputs_may_be_asked_for_without_streaming():
    seen = []
    reply = ask(
        json.dumps(body([TEXT])), Request([Message(Role.USER, "Hi")], max_output_tokens=120_000), seen=seen
    )
    assert reply.text == "Here." and seen[0]["max_tokens"] == 120_000


def test_half_a_character_does_no_harm():
    seen = []
    ask(json.dumps(body([TEXT])), Request([Message(Role.USER, "cut \ud83d")]), seen=seen)
    assert seen[0]["messages"][0]["content"][0]["text"] == "cut ?"


def test_the_key_is_sent_and_the_wire_is_the_providers():
    heads = []

    def respond(http):
        heads.append((http.url.path, dict(http.headers)))
        return httpx2.Response(200, json=body([TEXT]))

    async def scenario():
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
        settings = ProviderSettings(base_url="http://127.0.0.1:1")
        await MessagesDialect(open_client(settings, "sk-ant-test-key", http), MODEL, False).ask(ASKED)

    asyncio.run(scenario())
    path, head = heads[0]
    assert path == "/v1/messages" and "anthropic-version" in head
    assert any("sk-ant-test-key" in value for value in head.values())


# What is checked


def check(responses):
    left = iter(responses)

    async def scenario():
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: next(left)))
        await MessagesDialect(open_client(ProviderSettings(), "key", http), MODEL, True).check()

    asyncio.run(scenario())
    assert not list(left)


def test_a_model_that_is_offered_is_well():
    check([httpx2.Response(200, json={"type": "model", "id": MODEL})])


def test_a_model_that_is_not_offered_is_named_with_some_that_are():
    unknown = {"type": "error", "error": {"type": "not_found_error", "message": "model: nope"}}
    offered = {"data": [{"id": "claude-sonnet-5-5"}, {"id": "other"}], "has_more": False}
    with pytest.raises(
        UserError, match="does not offer 'claude-sonnet-5'; it offers: claude-sonnet-5-5 and 1 more"
    ):
        check([httpx2.Response(404, json=unknown), httpx2.Response(200, json=offered)])


def test_a_page_instead_of_a_record_is_broken():
    with pytest.raises(Broken):
        check([httpx2.Response(200, html="<h1>Hotel</h1>")])
