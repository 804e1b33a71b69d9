"""Requests and replies come back from their JSON as they were, whatever they hold."""

import json

import pytest

from dgm.archive.journal import (
    complete,
    decode_reply,
    dump,
    encode_reply,
    read_request,
    request_record,
    shorten,
)
from dgm.bounded_reading import parse_json
from dgm.domain import Usage
from dgm.messages import Message, Request, Role, Stop, Tool, WireProtocol, WireReply, WireRequest

CHAT, RESPONSES, MESSAGES = WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.MESSAGES
SAID = [{"role": "user", "content": "mend it"}, {"role": "assistant", "content": None}]
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


def chat(*more, **keys):
    return WireRequest(CHAT, {"model": "m", "messages": [*SAID, *more], **keys})


def over(request, before):
    """What is stored of a request over an earlier one, from which it comes back."""
    whole, base = request_record(request), request_record(before)
    record = parse_json(dump(shorten(whole, base, 7)).encode())
    assert dump(complete(record, base) if "base" in record else record) == dump({**record, **whole})
    assert read_request(complete(record, base) if "base" in record else record) == request
    return record


def test_request_without_a_base_is_stored_whole():
    body = {"messages": SAID, "system": "é\udcff\x00"}
    request = WireRequest(MESSAGES, body, {"anthropic-version": "2023-06-01"})
    assert read_request(parse_json(dump(request_record(request)).encode())) == request


def test_only_what_is_new_is_stored_over_a_base():
    before = chat(tools=TOOLS, temperature=0.5)
    record = over(chat({"role": "user", "content": "go on"}, tools=TOOLS, temperature=0.7), before)
    assert record["body"] == {"messages": [{"role": "user", "content": "go on"}], "temperature": 0.7}
    assert (record["base"], record["kept"], record["same"]) == (7, 2, ["model", "tools"])


def own(*texts, **options):
    messages = tuple(Message(Role.USER, text) for text in texts)
    return Request(messages, (Tool("bash", "runs", {"type": "object"}),), "m", **options)


def test_request_in_own_form_repeats_the_equal_messages_of_an_earlier_one():
    record = over(own("a", "b", "d", "e", stop=("x",), parallel=False, effort="low"), own("a", "b", "c"))
    assert (record["kept"], [one["text"] for one in record["body"]["messages"]]) == (2, ["d", "e"])
    assert {"tools", "model"} <= set(record["same"])


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (chat(stop=None), chat()),
        (chat(), chat(stop=None)),
        (chat(temperature=0), chat(temperature=0.0)),
        (chat(stream=True), chat(stream=1)),
        (chat({"n": 1}), chat({"n": True})),
        (chat({"n": [1.0]}), chat({"n": [1]})),
        (WireRequest(CHAT, {"messages": SAID[:1]}), chat()),
        (WireRequest(CHAT, {"messages": []}), chat()),
        (WireRequest(CHAT, {"model": "m"}), chat()),
        (chat(), WireRequest(CHAT, {"model": "m"})),
        (WireRequest(RESPONSES, {"input": "hi"}), WireRequest(RESPONSES, {"input": "hi"})),
        (WireRequest(RESPONSES, {"input": SAID}), WireRequest(RESPONSES, {"input": "hi"})),
        (WireRequest(RESPONSES, {"input": [*SAID, {"type": "x"}]}), WireRequest(RESPONSES, {"input": SAID})),
        (WireRequest(MESSAGES, {"messages": SAID}, {"a": "b"}), WireRequest(MESSAGES, {"messages": SAID})),
        (own("a"), own()),
    ],
)
def test_request_comes_back_to_the_letter_over_whatever_base(now, before):
    over(now, before)


@pytest.mark.parametrize("before", [chat(), own("a")])
def test_request_of_another_protocol_is_no_base(before):
    assert "base" not in over(WireRequest(MESSAGES, {"messages": SAID}), before)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'data: {"a": 1}\r\n\r\ndata: [DONE]\n\n',
        bytes(range(256)),
        "\U0001f600é".encode() + b"\xed\xa0\x80\xed\xb2\x80\xf0\x9f",
        b"\x00\xff\xfe",
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_reply_keeps_its_bytes(content, stream):
    reply = WireReply(CHAT, content, stream, Usage(1, 2, 3, 0.25, 1, 1, 2), Stop.LENGTH)
    assert decode_reply(encode_reply(reply)) == reply


def test_kept_refusal_comes_back_with_its_status():
    refusal = WireReply(
        MESSAGES, b'{"error": "no"}', False, Usage(calls=1), error="content_filter", status=403, own=False
    )
    assert decode_reply(encode_reply(refusal)) == refusal
    assert json.loads(encode_reply(refusal))["wire"] == "messages"
