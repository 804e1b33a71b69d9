"""Requests that are refused, by name and code; and what a request becomes on its way to a provider."""

import copy
import json

import pytest

from dgm.gateway import allowed
from dgm.gateway.allowed import BadRequest
from dgm.gateway.translation import parse_document
from dgm.messages import WireProtocol
from dgm.wires.messages import NO_THREADS
from tests.support.gateway.requests import load_requests

CHAT, RESPONSES, MESSAGES = WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.MESSAGES
USER = {"role": "user", "content": "go"}
ASKED = {
    CHAT: {"messages": [USER]},
    RESPONSES: {"input": "go"},
    MESSAGES: {"max_tokens": 9000, "messages": [USER]},
}
ENCRYPTED = "reasoning.encrypted_content"
REFUSED = load_requests("refused")
DEEP = {"metadata": json.loads('{"a":' * 70 + "1" + "}" * 70)}


def refuse(protocol, content, **options):
    """Return the refusal of a request: bytes as they are, or keys beside a small one."""
    if not isinstance(content, bytes):
        content = json.dumps({**ASKED[protocol], **content}).encode()
    with pytest.raises(BadRequest) as caught:
        allowed.check(protocol, parse_document(content), **options)
    assert str(caught.value).isprintable()
    return caught.value


@pytest.mark.parametrize("row", REFUSED, ids=[f"{row['protocol']}: {row['name']}" for row in REFUSED])
def test_request_is_refused_with_its_reason(row):
    content = row["raw"].encode() if "raw" in row else row["body"]
    refusal = refuse(WireProtocol(row["protocol"]), content)
    assert row["words"] in str(refusal)
    assert refusal.status == 400


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"messages": "\xff"}', "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "not JSON"),
        (DEEP, "nested deeper than 64"),
    ],
    ids=["not utf-8", "deep nesting", "deep nesting, closed", "deep body"],
)
def test_body_that_is_hard_to_read_is_refused(content, words):
    for protocol in ASKED:
        assert words in str(refuse(protocol, content))


@pytest.mark.parametrize(
    ("protocol", "body", "code"),
    [
        (CHAT, {"web_search_options": {}}, "unsupported_parameter"),
        (CHAT, {"tools": [{"type": "web_search"}]}, "unsupported_tool"),
        (
            CHAT,
            {"messages": [{**USER, "content": [{"type": "image_url", "image_url": {"url": "http://a.b"}}]}]},
            "unsupported_content",
        ),
        (RESPONSES, {"previous_response_id": "resp_7_1"}, "previous_response_not_found"),
        (MESSAGES, {"thread": {"type": "create"}}, NO_THREADS),
    ],
)
def test_refusal_has_the_code_of_its_kind(protocol, body, code):
    assert refuse(protocol, body).code == code


@pytest.mark.parametrize(
    ("protocol", "more", "sent"),
    [
        (CHAT, {"store": True, "whatever": None, "models": [], "seed": None}, {"store": False, "seed": None}),
        (CHAT, {}, {}),
        (
            RESPONSES,
            {"store": True, "conversation": None, "background": False},
            {"store": False, "include": [ENCRYPTED]},
        ),
        (
            RESPONSES,
            {"include": ["message.output_text.logprobs", ENCRYPTED]},
            {"store": False, "include": ["message.output_text.logprobs", ENCRYPTED]},
        ),
        (
            RESPONSES,
            {"tools": [{"type": "shell", "environment": {}}]},
            {
                "store": False,
                "include": [ENCRYPTED],
                "tools": [{"type": "shell", "environment": {"type": "local"}}],
            },
        ),
        (MESSAGES, {"betas": [], "mcp_servers": [], "whatever": None}, {}),
    ],
)
def test_nothing_is_stored_and_what_asks_for_nothing_is_left_out(protocol, more, sent):
    body = copy.deepcopy({**ASKED[protocol], **more})
    allowed.check(protocol, body)
    assert allowed.prepare(protocol, body) == {**ASKED[protocol], **sent}


COUNTED = {
    "model": "default",
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "bash", "input_schema": {"type": "object"}}, {"type": "bash_20250124", "name": "b"}],
    "tool_choice": {"type": "auto"},
    "thinking": {"type": "enabled", "budget_tokens": 16_000},
}


def test_tokens_are_counted_of_what_may_be_asked_alone():
    allowed.check(MESSAGES, {"messages": [USER], **copy.deepcopy(COUNTED)}, counting=True)
    for body in (
        {"tools": [{"type": "web_search_20250305", "name": "w"}]},
        {"mcp_servers": [{"type": "url", "url": "https://a.example"}]},
        {"messages": []},
        {"thread": {"type": "create"}},
    ):
        assert refuse(MESSAGES, {**COUNTED, **body}, counting=True)
