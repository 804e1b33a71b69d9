"""Chat completions that pass as they are, and those that are refused by name."""

import json

import pytest

from dgm.gateway import allowed
from dgm.gateway.allowed import BadRequest
from dgm.gateway.translation import parse_document
from dgm.messages import WireProtocol
from tests.support.gateway.chat_passing import CALLED, PASSING, RESULT, TOOL, USER, nested, said, schema, turn

PROTOCOL = WireProtocol.CHAT


def check(**body):
    allowed.check(PROTOCOL, parse_document(json.dumps({"messages": [USER], **body}).encode()))


def raw(written):
    return written if isinstance(written, bytes) else json.dumps({"messages": [USER], **written}).encode()


def tools(*items):
    return {"tools": list(items)}


# Every request that the readers of today refuse and that is still to be refused.
TODAY = {
    "empty": (b"", "not JSON"),
    "not json": (b"{", "not JSON"),
    "not utf-8": (b'{"messages": "\xff"}', "not JSON"),
    "null": (b"null", "must be an object"),
    "a string": (b'"hello"', "must be an object"),
    "a number": (b"7", "must be an object"),
    "a list": (b"[]", "must be an object"),
    "not a number": (b'{"messages": [], "temperature": NaN}', "not JSON"),
    "infinite number": (b'{"messages": [], "temperature": 1e999}', "not JSON"),
    "deep nesting": (b"[" * 200_000, "not JSON"),
    "deep nesting, closed": (b'{"messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "not JSON"),
    "deep schema": (
        tools({"type": "function", "function": {"name": "f", "parameters": nested(60)}}),
        "nested deeper",
    ),
    "no messages": (b"{}", "messages must be a list"),
    "messages null": (b'{"messages": null}', "messages must be a list"),
    "messages empty": (b'{"messages": []}', "a list that is not empty"),
    "messages a text": (b'{"messages": "hi"}', "must be a list"),
    "message null": ({"messages": [None]}, "messages[0] must be an object"),
    "message a number": ({"messages": [1]}, "messages[0] must be an object"),
    "image by url": (
        said({"type": "image_url", "image_url": {"url": "http://example.org/a.png"}}),
        "image_url.url is an address",
    ),
    "tools an object": ({"tools": {}}, "tools must be a list"),
    "tools a number": ({"tools": 5}, "tools must be a list"),
    "provider's tool": (tools({"type": "web_search"}), "no tools of a provider"),
    "remote server as tool": (
        tools({"type": "mcp", "server_url": "http://example.org"}),
        "no tools of a provider",
    ),
    "web search": ({"web_search_options": {}}, "web_search_options is not offered"),
    "a hundred answers": ({"n": 100}, "n must be a whole number from 1 to 16"),
    "max_tokens zero": ({"max_tokens": 0}, "max_tokens must be a whole number"),
    "max_tokens negative": ({"max_tokens": -1}, "max_tokens must be a whole number"),
    "max_tokens a fraction": ({"max_tokens": 1.5}, "max_tokens must be a whole number"),
    "stream a text": ({"stream": "yes"}, "stream must be true or false"),
    "stream_options a list": ({"stream_options": []}, "stream_options must be an object"),
    "model a number": ({"model": 4}, "model must be a text"),
    "true is not one": ({"n": True}, "n must be"),
    "spoken answers": ({"audio": {"voice": "x"}}, "audio is not offered"),
}

NEW = {
    # What reaches a network, or a provider's own tools.
    "search of another provider": ({"search_parameters": {"mode": "on"}}, "search_parameters is not offered"),
    "search by a flag": ({"enable_search": True}, "enable_search is not offered"),
    "search by a plug-in": ({"plugins": [{"id": "web"}]}, "plugins is not offered"),
    "search by a tool without type": (tools({"google_search": {}}), "tools[0]"),
    "search by a built-in function": (
        tools({"type": "builtin_function", "function": {"name": "$web_search"}}),
        "'builtin_function' is not offered",
    ),
    "search by a server tool": (tools({"type": "openrouter:web_search"}), "'openrouter:web_search'"),
    "code at the provider": (tools({"type": "code_interpreter"}), "no tools of a provider"),
    "code by a flag": ({"enable_code_interpreter": True}, "enable_code_interpreter is not offered"),
    "a search index of the account": (
        {"data_sources": [{"type": "azure_search"}]},
        "data_sources is not offered",
    ),
    "grounding": (
        {"extra_body": {"google": {"tools": [{"google_search": {}}]}}},
        "extra_body is not offered",
    ),
    "a shell by chat": (tools({"type": "shell"}), "'shell' is not offered"),
    "moderation": ({"moderation": {"model": "m"}}, "moderation is not offered"),
    "file search in an allowed list": (
        {
            "tools": [TOOL],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "file_search"}]},
            },
        },
        "'file_search' is not offered",
    ),
    # Other models, routes, accounts and servers.
    "other models": ({"models": ["a", "b"]}, "models is not offered"),
    "a route": ({"route": "fallback"}, "route is not offered"),
    "fallbacks": ({"fallbacks": ["m"]}, "fallbacks is not offered"),
    "other provider": ({"provider": {"order": ["x"]}}, "provider is not offered"),
    "other server": ({"api_base": "http://169.254.169.254"}, "api_base is not offered"),
    "other key": ({"api_key": "sk-1"}, "api_key is not offered"),
    "other headers": ({"extra_headers": {"x": "y"}}, "extra_headers is not offered"),
    "a preset of the account": ({"preset": "p"}, "preset is not offered"),
    "memory of another server": (
        {"kv_transfer_params": {"remote_host": "10.0.0.1"}},
        "kv_transfer_params is not offered",
    ),
    "another one's slot": ({"id_slot": 0}, "id_slot is not offered"),
    "an adapter by its path": ({"lora_path": "/models/x"}, "lora_path is not offered"),
    "a model that stays loaded": ({"keep_alive": -1}, "keep_alive is not offered"),
    # Programs at the server.
    "a template": ({"chat_template": "{{ 7 }}"}, "chat_template is not offered"),
    "a template among its arguments": (
        {"chat_template_kwargs": {"chat_template": "{{ 7 }}"}},
        "chat_template_kwargs.chat_template",
    ),
    "a processor by its name": ({"logits_processors": ["os.system"]}, "logits_processors is not offered"),
    "a pickled processor": ({"custom_logit_processor": "gASV"}, "custom_logit_processor is not offered"),
    # Money.
    "dear service": ({"service_tier": "priority"}, "service_tier must be one of auto"),
    "fast service": ({"service_tier": "fast"}, "service_tier must be one of auto"),
    "service a list": ({"service_tier": ["auto"]}, "service_tier must be one of auto"),
    "limit by another name": ({"n_predict": 100_000}, "n_predict is not offered"),
    "limit among options": ({"options": {"num_predict": -1}}, "options.num_predict is not offered"),
    "answers that nobody sees": ({"best_of": 8}, "best_of is not offered"),
    "seventeen answers": ({"n": 17}, "n must be"),
    "a warmed cache": ({"prompt_cache_options": {"prewarm": True}}, "prewarm is not offered"),
    "batch": ({"deferred": True}, "deferred is not offered"),
    "background": ({"background": True}, "background is not offered"),
    "sound and text": ({"modalities": ["text", "audio"]}, "modalities must be"),
    # Stored data, and addresses wherever they hide.
    "stored file": (said({"type": "file", "file": {"file_id": "file-1"}}), "file_id is not offered"),
    "stored file beside data": (
        said({"type": "file", "file": {"file_id": "file-1", "file_data": "data:,x"}}),
        "file_id is not offered",
    ),
    "stored sound": (turn(audio={"id": "audio_1"}), "audio is not offered"),
    "document by url": (
        said({"type": "document_url", "document_url": "https://example.org"}),
        "'document_url'",
    ),
    "document's data an address": (
        said({"type": "file", "file": {"file_data": "https://example.org/a.pdf"}}),
        "file_data is an address",
    ),
    "sound's data an address, said to be a text": (
        said({"type": "input_audio", "input_audio": {"type": "text", "data": "https://a.example/a.wav"}}),
        "data is an address",
    ),
    "search beside a function": (tools({**TOOL, "googleSearch": {"mode": 1}}), "googleSearch is not offered"),
    "sound's data an address": (
        said({"type": "input_audio", "input_audio": {"data": " HTTPS://example.org/a.wav"}}),
        "data is an address",
    ),
    "image of the server's disk": (
        said({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}),
        "url is an address or a name",
    ),
    "image of a bucket": (
        said({"type": "image_url", "image_url": {"url": "gs://b/a.png"}}),
        "url is an address or a name",
    ),
    "image by url, the short form": (
        said({"type": "image_url", "image_url": "https://example.org"}),
        "image_url is an address",
    ),
    "film by url": (
        said({"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}),
        "url is an address",
    ),
    "image by url as a result": (
        {
            "messages": [
                CALLED,
                {**RESULT, "content": [{"type": "image_url", "image_url": {"url": "https://a.example"}}]},
            ]
        },
        "messages[1].content[0].image_url.url",
    ),
    "address under an unknown key": (
        said({"type": "text", "text": "x", "more": [{"deep": {"fileUri": "https://example.org"}}]}),
        "content[0].more[0].deep.fileUri",
    ),
    "address in an assistant's turn": (
        turn(images=[{"image_url": {"url": "https://a.example"}}]),
        "image_url.url",
    ),
    "address within a thought": (
        turn(thinking=[{"type": "text", "text": "x", "file_uri": "gs://a"}]),
        "thinking[0].file_uri is an address",
    ),
    "container under an unknown key": (
        turn(more={"container": {"id": "c"}}),
        "more.container is not offered",
    ),
    "part of nobody": (said({"type": "hologram"}), "'hologram' is not known"),
    "part a text": (said("x"), "content[0] must be an object"),
    "call of a provider's tool": (turn(tool_calls=[{"id": "1", "type": "web_search"}]), "'web_search'"),
    "tool without type": (tools({"function": {"name": "f"}}), "tools[0]"),
    "program calls a function": (
        tools({**TOOL, "allowed_callers": ["code_execution_20250825"]}),
        "allowed_callers must name 'direct'",
    ),
    "schema that refers to an address": (
        tools(
            {
                "type": "function",
                "function": {"name": "f", "parameters": {"$ref": "https://a.example/s.json"}},
            }
        ),
        "$ref must stay within the schema",
    ),
    "form of the answer that refers to an address": (
        {"response_format": schema(schema={"items": [{"$ref": "http://a.example"}]})},
        "$ref must stay within the schema",
    ),
    "guided by an address": (
        {"guided_json": {"$ref": "https://a.example"}},
        "$ref must stay within the schema",
    ),
    "deep body": ({"metadata": nested(70)}, "nested deeper than 64"),
    "thread": ({"thread": {"id": "t"}}, "thread is not offered"),
    "earlier answer": ({"previous_response_id": "resp_1"}, "previous_response_id is not offered"),
}
REFUSED = {**TODAY, **NEW}


@pytest.mark.parametrize("name", PASSING)
def test_request_passes(name):
    check(**PASSING[name])


@pytest.mark.parametrize("name", REFUSED)
def test_request_is_refused_in_clear_words(name):
    written, words = REFUSED[name]
    with pytest.raises(BadRequest) as caught:
        allowed.check(PROTOCOL, parse_document(raw(written)))
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
    assert caught.value.status == 400


def test_what_is_refused_has_the_code_of_its_kind():
    codes = {
        "web search": "unsupported_parameter",
        "provider's tool": "unsupported_tool",
        "image by url": "unsupported_content",
    }
    for name, code in codes.items():
        with pytest.raises(BadRequest) as caught:
            allowed.check(PROTOCOL, parse_document(raw(REFUSED[name][0])))
        assert caught.value.code == code


def test_nothing_is_stored():
    body = {"messages": [USER], "store": True, "whatever": None, "models": [], "seed": None}
    allowed.check(PROTOCOL, body)
    assert allowed.prepare(PROTOCOL, body) == {"messages": [USER], "store": False, "seed": None}
    assert body["store"] is True


def test_store_is_not_named_to_a_server_that_may_not_know_it():
    assert "store" not in allowed.prepare(PROTOCOL, {"messages": [USER]})
