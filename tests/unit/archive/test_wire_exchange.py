"""Raw requests and replies come back from their JSON as they were, whatever they hold."""

import json

import pytest

from dgm.archive.exchange import base_of
from dgm.archive.wire_exchange import (
    WireBase,
    decode_wire_reply,
    decode_wire_request,
    encode_wire_reply,
    encode_wire_request,
    is_wire,
)
from dgm.domain import Digest, Usage
from dgm.messages import Stop, WireProtocol, WireReply, WireRequest

CHAT, RESPONSES, MESSAGES = WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.MESSAGES
SAID = [{"role": "user", "content": "mend it"}, {"role": "assistant", "content": None}]
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


def chat(*more, **keys):
    return WireRequest(CHAT, {"model": "m", "messages": [*SAID, *more], **keys})


def over(request, before, digest="d" * 64):
    """What is stored of a request over an earlier one, and what is read from that."""
    data = encode_wire_request(request, WireBase(Digest(digest), before))
    record = json.loads(data)
    assert json.dumps(decode_wire_request(record, before).body, sort_keys=True) == json.dumps(
        request.body, sort_keys=True
    )
    return record


def test_request_without_a_base_is_stored_whole():
    request = WireRequest(
        MESSAGES, {"messages": SAID, "system": "é\udcff\x00"}, {"anthropic-version": "2023-06-01"}
    )
    record = json.loads(encode_wire_request(request))
    assert is_wire(record)
    assert decode_wire_request(record) == request
    assert base_of(encode_wire_request(request)) is None


def test_only_what_is_new_is_stored_over_a_base():
    before = chat(tools=TOOLS, temperature=0.5)
    record = over(chat({"role": "user", "content": "go on"}, tools=TOOLS, temperature=0.7), before)
    assert record["body"] == {"messages": [{"role": "user", "content": "go on"}], "temperature": 0.7}
    assert (record["kept"], record["same"]) == (2, ["model", "tools"])


def test_name_of_the_base_is_the_first_thing_in_the_json():
    data = encode_wire_request(chat(), WireBase(Digest("d" * 64), chat()))
    assert data.startswith(b'{"base":"' + b"d" * 64 + b'"')
    assert base_of(data) == "d" * 64


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
    ],
)
def test_request_comes_back_to_the_letter_over_whatever_base(now, before):
    over(now, before)


def test_request_of_another_protocol_is_no_base():
    record = json.loads(
        encode_wire_request(WireRequest(MESSAGES, {"messages": SAID}), WireBase(Digest("d" * 64), chat()))
    )
    assert "base" not in record


def test_headers_are_those_of_each_request():
    before = WireRequest(MESSAGES, {"messages": SAID}, {"anthropic-beta": "a"})
    now = WireRequest(MESSAGES, {"messages": SAID}, {})
    data = encode_wire_request(now, WireBase(Digest("d" * 64), before))
    assert decode_wire_request(json.loads(data), before) == now


def test_equal_requests_give_equal_bytes():
    one = WireRequest(CHAT, {"model": "m", "messages": SAID})
    other = WireRequest(CHAT, {"messages": SAID, "model": "m"})
    assert encode_wire_request(one) == encode_wire_request(other)


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
    assert decode_wire_reply(json.loads(encode_wire_reply(reply))) == reply


def test_kept_refusal_comes_back_with_its_status():
    refusal = WireReply(
        MESSAGES, b'{"error": "no"}', False, Usage(calls=1), error="content_filter", status=403, own=False
    )
    assert decode_wire_reply(json.loads(encode_wire_reply(refusal))) == refusal
