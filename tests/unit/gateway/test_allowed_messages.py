"""Requests for messages that pass as they are, and those that are refused by name."""

import copy
import json

import pytest

from dgm.gateway import allowed
from dgm.gateway.allowed import BadRequest
from dgm.gateway.translation import parse_document
from dgm.messages import WireProtocol
from dgm.wires.messages import NO_THREADS
from tests.support.gateway.chat_passing import nested
from tests.support.gateway.messages_passing import (
    CACHED,
    PASSING,
    PNG,
    TOOL,
    USER,
    WEB_PNG,
    edits,
    result,
    said,
    text,
    tools,
    use,
)

PROTOCOL = WireProtocol.MESSAGES


def check(**body):
    allowed.check(
        PROTOCOL,
        parse_document(json.dumps({"max_tokens": 9000, "messages": [USER], **body}).encode()),
    )


TODAY = {
    "remote servers": (
        {"mcp_servers": [{"type": "url", "url": "http://example.org"}]},
        "mcp_servers is not offered",
    ),
    "container": ({"container": "c"}, "container is not offered"),
    "editing of the context": (edits({"type": "x"}), "context_management.edits[0]"),
    "betas": ({"betas": ["x"]}, "betas is not offered"),
    "web search": (tools({"type": "web_search_20250305", "name": "web_search"}), "'web_search_20250305'"),
    "code execution": (tools({"type": "code_execution_20250825", "name": "c"}), "no tools of a provider"),
    "image": (said(WEB_PNG), "source is of the type 'url'"),
    "call of a provider's tool": (said({"type": "server_tool_use"}, role="assistant"), "'server_tool_use'"),
    "thread": ({"thread": {"type": "create"}}, "thread is not offered"),
    "where a model runs": ({"inference_geo": "us"}, "inference_geo is not offered"),
}

NEW = {
    "web fetch": (tools({"type": "web_fetch_20260318", "name": "web_fetch"}), "'web_fetch_20260318'"),
    "a search of tomorrow": (tools({"type": "web_search_20990101", "name": "w"}), "no tools of a provider"),
    "search among tools": (tools({"type": "tool_search_tool_bm25_20251119", "name": "t"}), "is not offered"),
    "search among tools, undated": (tools({"type": "tool_search_tool_regex", "name": "t"}), "is not offered"),
    "remote tools": (tools({"type": "mcp_toolset", "mcp_server_name": "s"}), "'mcp_toolset' is not offered"),
    "another model's advice": (tools({"type": "advisor_20260301", "name": "advisor"}), "another model"),
    "tool of nobody": (
        tools({"type": "teleport_20250101", "name": "t"}),
        "'teleport_20250101' is not known",
    ),
    "shell without a date": (tools({"type": "bash", "name": "bash"}), "'bash' is not known"),
    "tool of another protocol": (tools({"type": "function", "function": {"name": "f"}}), "'function'"),
    "code calls a shell": (
        tools({"type": "bash_20250124", "name": "bash", "allowed_callers": ["code_execution_20260120"]}),
        "tools[0].allowed_callers",
    ),
    "call by code": (
        said(use(caller={"type": "code_execution_20250825", "tool_id": "t"}), role="assistant"),
        "only direct is offered",
    ),
    "stored image": (
        said({"type": "image", "source": {"type": "file", "file_id": "f"}}),
        "of the type 'file'",
    ),
    "stored document": (
        said({"type": "document", "source": {"type": "file", "file_id": "f"}}),
        "of the type 'file'",
    ),
    "document by url": (
        said({"type": "document", "source": {"type": "url", "url": "https://a.example"}}),
        "of the type 'url'",
    ),
    "image by url as a result": (said(result(WEB_PNG)), "content[0].content[0].source"),
    "image by url in a document": (
        said({"type": "document", "source": {"type": "content", "content": [WEB_PNG]}}),
        "source.content[0].source",
    ),
    "image by url in a document as a result": (
        said(result({"type": "document", "source": {"type": "content", "content": [WEB_PNG]}})),
        "content[0].content[0].source.content[0].source",
    ),
    "stored document as a result": (
        said(result({"type": "document", "source": {"type": "file", "file_id": "f"}})),
        "of the type 'file'",
    ),
    "stored id beside data": (
        said({**PNG, "source": {**PNG["source"], "file_id": "f"}}),
        "source.file_id is not offered",
    ),
    "image's data an address": (
        said({**PNG, "source": {**PNG["source"], "data": "https://a.example"}}),
        "source.data is an address",
    ),
    "upload into a container": (said({"type": "container_upload", "file_id": "f"}), "'container_upload'"),
    "address under an unknown key": (
        said(text("x", more={"deep": [{"document_url": "https://a.example"}]})),
        "more.deep[0].document_url",
    ),
    "address deep in a result": (
        said(result(text("x", more={"fileUri": "gs://a"}))),
        "content[0].content[0].more.fileUri",
    ),
    "address in the system": (
        {"system": [text("x", more={"url": "https://a.example"})]},
        "system[0].more.url",
    ),
    "result of a search": (
        said({"type": "web_search_tool_result"}, role="assistant"),
        "'web_search_tool_result'",
    ),
    "result of a fetch": (
        said({"type": "web_fetch_tool_result"}, role="assistant"),
        "'web_fetch_tool_result'",
    ),
    "result of code": (
        said({"type": "bash_code_execution_tool_result"}, role="assistant"),
        "'bash_code_execution_tool_result' is not offered",
    ),
    "remote call": (said({"type": "mcp_tool_use"}, role="assistant"), "'mcp_tool_use' is not offered"),
    "fallback": (said({"type": "fallback"}, role="assistant"), "'fallback' is not offered"),
    "block of nobody": (said({"type": "hologram"}), "'hologram' is not known"),
    "block a text": (said("x"), "content[0] must be an object"),
    "a provider's tool that is added": (
        {
            "messages": [
                USER,
                {
                    "role": "system",
                    "content": [
                        {
                            "type": "tool_addition",
                            "tool": {
                                "type": "tool_definition",
                                "definition": {"type": "web_search_20250305", "name": "w"},
                            },
                        }
                    ],
                },
            ]
        },
        "'web_search_20250305' is not offered",
    ),
    "a remote tool that is added": (
        {
            "messages": [
                USER,
                {
                    "role": "system",
                    "content": [{"type": "tool_addition", "tool": {"type": "mcp_toolset_reference"}}],
                },
            ]
        },
        "'mcp_toolset_reference' is not offered",
    ),
    "a provider's tool within a compaction": (
        said(
            {
                "type": "compaction",
                "content": "s",
                "tool_changes": [
                    {
                        "type": "tool_addition",
                        "tool": {
                            "type": "tool_definition",
                            "definition": {"type": "code_execution_20250825", "name": "c"},
                        },
                    }
                ],
            },
            role="assistant",
        ),
        "'code_execution_20250825' is not offered",
    ),
    "summing up by an edit": (edits({"type": "compact_20260112"}), "'compact_20260112' is not offered"),
    "summing up": ({"compaction": {"type": "summarize"}}, "compaction is not offered"),
    "fast": ({"speed": "fast"}, "speed must be"),
    "dear service": ({"service_tier": "priority"}, "service_tier must be one of"),
    "other models": ({"fallbacks": "default"}, "fallbacks is not offered"),
    "credit of other models": ({"fallback_credit_token": "t"}, "fallback_credit_token is not offered"),
    "another one's bill": ({"billing_policy": {"bill_to": "user_profile"}}, "billing_policy is not offered"),
    "another one's profile": ({"user_profile_id": "u"}, "user_profile_id is not offered"),
    "another workspace": ({"workspace_id": "w"}, "workspace_id is not offered"),
    "another one's message": (
        {"diagnostics": {"previous_message_id": "msg_1"}},
        "there is no earlier answer 'msg_1'",
    ),
    "betas of another platform": ({"anthropic_beta": ["x"]}, "anthropic_beta is not offered"),
    "container with skills": ({"container": {"skills": [{"skill_id": "s"}]}}, "container is not offered"),
    "messages a text": ({"messages": "x"}, "messages must be a list"),
    "messages empty": ({"messages": []}, "a list that is not empty"),
    "no messages": ({"messages": None}, "messages must be a list"),
    "limit zero": ({"max_tokens": 0}, "max_tokens must be a whole number"),
    "stream a text": ({"stream": "yes"}, "stream must be true or false"),
    "model a list": ({"model": []}, "model must be a text"),
    "deep body": ({"metadata": nested(70)}, "nested deeper than 64"),
}
REFUSED = {**TODAY, **NEW}


@pytest.mark.parametrize("name", PASSING)
def test_request_passes(name):
    check(**PASSING[name])


@pytest.mark.parametrize("name", REFUSED)
def test_request_is_refused_in_clear_words(name):
    body, words = REFUSED[name]
    with pytest.raises(BadRequest) as caught:
        check(**body)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_vendors_runner_learns_that_there_are_no_threads():
    with pytest.raises(BadRequest) as caught:
        check(thread={"type": "create"})
    assert caught.value.code == NO_THREADS


def test_what_asks_for_nothing_is_left_out():
    body = {"max_tokens": 9, "messages": [USER], "betas": [], "mcp_servers": [], "whatever": None}
    allowed.check(PROTOCOL, body)
    assert body == {"max_tokens": 9, "messages": [USER]}


COUNTED = {
    "model": "default",
    "messages": [USER],
    "system": [text("s", **CACHED)],
    "tools": [TOOL, {"type": "bash_20250124", "name": "bash2"}],
    "tool_choice": {"type": "auto"},
    "thinking": {"type": "enabled", "budget_tokens": 16_000},
}


def test_tokens_of_a_request_may_be_counted():
    allowed.check(PROTOCOL, copy.deepcopy(COUNTED), counting=True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, "no tools of a provider"),
        ({"mcp_servers": [{"type": "url", "url": "https://a.example"}]}, "mcp_servers is not offered"),
        ({"messages": [{"role": "user", "content": [WEB_PNG]}]}, "of the type 'url'"),
        ({"messages": []}, "a list that is not empty"),
        ({"thread": {"type": "create"}}, "thread is not offered"),
    ],
)
def test_tokens_of_what_is_not_offered_are_not_counted(body, words):
    with pytest.raises(BadRequest) as caught:
        allowed.check(PROTOCOL, copy.deepcopy({**COUNTED, **body}), counting=True)
    assert words in str(caught.value)
