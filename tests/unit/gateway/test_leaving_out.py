"""What may not pass and is no part of the question is left out of a request, and named; the rest is as it was."""

import json

import pytest

from dgm.gateway import allowed
from dgm.gateway.allowed import BadRequest, collect_left_out
from dgm.gateway.answering import without_long_name
from dgm.gateway.translation import parse_call
from dgm.messages import WireProtocol
from dgm.wires import WIRES

CHAT, RESPONSES, MESSAGES = WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.MESSAGES
SCHEMA = {"type": "object", "properties": {}}
PNG = "data:image/png;base64,iVBORw0KGgo="
ASKED = {
    CHAT: {"messages": [{"role": "user", "content": "go"}]},
    RESPONSES: {"input": "go"},
    MESSAGES: {"max_tokens": 9, "messages": [{"role": "user", "content": "go"}]},
}
OWN = {
    CHAT: {"type": "function", "function": {"name": "bash", "parameters": SCHEMA}},
    RESPONSES: {"type": "function", "name": "bash", "parameters": SCHEMA},
    MESSAGES: {"name": "bash", "input_schema": SCHEMA},
}


def passed(rules, **more):
    """The request as it is sent, without the fixed part and what the gateway sets; and the names of what is not."""
    body = json.loads(json.dumps({**ASKED[rules], **more}))
    with collect_left_out() as names:
        allowed.check(rules, body)
        sent = allowed.prepare(rules, body)
    set_here = () if "include" in more else ("store", "include")
    left = {key: value for key, value in sent.items() if key not in set_here and key not in ASKED[rules]}
    return left, list(names)


def translated(rules, **more):
    with collect_left_out() as names:
        allowed.check(rules, body := json.loads(json.dumps({**ASKED[rules], **more})))
        return parse_call(WIRES[rules], body).request, list(names)


LEFT_OUT = {
    "unknown key": (CHAT, {"brilliance": 4}, {}, ["brilliance"]),
    "unknown key of Responses": (RESPONSES, {"messages": []}, {}, []),
    "unknown key of Messages": (MESSAGES, {"frequency_penalty": 0.5}, {}, ["frequency_penalty"]),
    "unprintable key": (CHAT, {"\u202e\n": 1}, {}, ["\\u202e\\n"]),
    "unknown key within": (
        RESPONSES,
        {"reasoning": {"effort": "low", "budget": 4}},
        {"reasoning": {"effort": "low"}},
        ["reasoning.budget"],
    ),
    "unknown key of the output": (
        MESSAGES,
        {"output_config": {"effort": "low", "tone": "dry"}},
        {"output_config": {"effort": "low"}},
        ["output_config.tone"],
    ),
    "loading later where nothing searches": (
        CHAT,
        {"tools": [{"type": "function", "function": {"name": "bash", "defer_loading": True}}]},
        {"tools": [{"type": "function", "function": {"name": "bash"}}]},
        ["tools.defer_loading"],
    ),
    "a search of the provider among tools": (
        MESSAGES,
        {
            "tools": [
                {"type": "tool_search_tool_bm25_20251119", "name": "search"},
                {**OWN[MESSAGES], "defer_loading": True},
            ]
        },
        {"tools": [OWN[MESSAGES]]},
        ["tools.defer_loading", "tools of the type 'tool_search_tool_bm25_20251119'"],
    ),
    "programs as further callers": (
        MESSAGES,
        {"tools": [{**OWN[MESSAGES], "allowed_callers": ["direct", "code_execution_20250825"]}]},
        {"tools": [{**OWN[MESSAGES], "allowed_callers": ["direct"]}]},
        ["tools.allowed_callers"],
    ),
    "a tool for programs alone": (
        RESPONSES,
        {"tools": [{**OWN[RESPONSES], "name": "p", "allowed_callers": ["programmatic"]}, OWN[RESPONSES]]},
        {"tools": [OWN[RESPONSES]]},
        ["tools of the type 'function'"],
    ),
    "a tool of the provider in a namespace": (
        RESPONSES,
        {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "web_search"}, OWN[RESPONSES]]}]},
        {"tools": [{"type": "namespace", "name": "n", "tools": [OWN[RESPONSES]]}]},
        ["tools of the type 'web_search'"],
    ),
    "a namespace of the provider": (
        RESPONSES,
        {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "web_search"}]}, OWN[RESPONSES]]},
        {"tools": [OWN[RESPONSES]]},
        ["tools of the type 'namespace'"],
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_no_part_of_the_question_is_left_out_and_named(name):
    rules, body, sent, names = LEFT_OUT[name]
    assert passed(rules, **body) == (sent, names)


OTHERS = [
    *((CHAT, kind) for kind in ("web_search", "code_interpreter", "hologram")),
    *((RESPONSES, kind) for kind in ("web_search", "web_search_2026_01_01", "file_search", "hologram")),
    *((MESSAGES, kind) for kind in ("web_search_20250305", "code_execution_20250825", "hologram_20310101")),
]


@pytest.mark.parametrize(("rules", "kind"), OTHERS)
def test_a_tool_that_is_not_the_agents_own_is_left_out_beside_others(rules, kind):
    other = {"type": kind, "name": "other"}
    sent, names = passed(rules, tools=[other, OWN[rules], other])
    assert (sent, names) == ({"tools": [OWN[rules]]}, [f"tools of the type {kind!r}"])
    request, _ = translated(rules, tools=[other, OWN[rules]])
    assert [tool.name for tool in request.tools] == ["bash"]


@pytest.mark.parametrize(("rules", "kind"), OTHERS)
def test_a_request_with_no_other_tools_is_refused_and_nothing_is_left_out(rules, kind):
    for read in (passed, translated):
        with collect_left_out() as names, pytest.raises(BadRequest, match=repr(kind)):
            read(rules, tools=[{"type": kind, "name": "other"}])
        assert list(names) == []


REMOTE = [(CHAT, "mcp"), (CHAT, "connector"), (RESPONSES, "mcp"), (MESSAGES, "mcp_toolset")]


@pytest.mark.parametrize(("rules", "kind"), REMOTE)
def test_a_tool_by_which_a_provider_calls_addresses_is_refused_whatever_is_beside_it(rules, kind):
    with pytest.raises(BadRequest, match=repr(kind)):
        passed(rules, tools=[OWN[rules], {"type": kind, "name": "far"}])


# Betas


def betas(*given, **price):
    with collect_left_out() as names:
        sent = allowed.select_headers({"anthropic-beta": ",".join(given)}, WireProtocol.MESSAGES, **price)
    return sent, list(names)


@pytest.mark.parametrize("beta", ["time-travel-2031-01-01", "afk-mode-2026-09-01", "context-1m-2025-08-07"])
def test_a_beta_without_which_the_question_is_the_same_is_left_out(beta):
    kept = "effort-2025-11-24"
    assert betas(kept, beta) == ({"anthropic-beta": kept}, [f"the beta {beta!r}"])
    assert betas(beta) == ({}, [f"the beta {beta!r}"])


def test_long_inputs_that_cost_more_are_refused():
    with pytest.raises(BadRequest, match="price"):
        betas("context-1m-2025-08-07", one_price=False)


# Pictures in results of tools

SEEN = {
    CHAT: {
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {
                "role": "tool",
                "tool_call_id": "c",
                "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": PNG}}],
            },
        ]
    },
    RESPONSES: {
        "input": [
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PNG}],
            },
        ]
    },
    MESSAGES: {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c",
                        "content": [
                            {"type": "text", "text": "a"},
                            {
                                "type": "image",
                                "source": {
                                    "type": "base64",
                                    "media_type": "image/png",
                                    "data": "iVBORw0KGgo=",
                                },
                            },
                        ],
                    }
                ],
            },
        ]
    },
}


@pytest.mark.parametrize("rules", SEEN)
def test_a_picture_in_a_result_becomes_a_text_where_only_texts_can_be_sent(rules):
    request, names = translated(rules, **SEEN[rules])
    assert request.messages[-1].text.replace("\n", "") == "a[picture not shown: image/png]"
    assert names == ["a picture in the result of a tool"]


# Translations


def test_hints_are_left_out_of_a_translation():
    request, names = translated(
        RESPONSES, client_metadata={"turn": "1"}, text={"verbosity": "low"}, reasoning={"effort": "low"}
    )
    assert (request.effort, names) == ("low", ["client_metadata", "text.verbosity"])
    assert translated(CHAT, verbosity="low", top_k=3)[1] == ["verbosity", "top_k"]
    edits = {"edits": [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]}
    assert translated(MESSAGES, context_management=edits, top_k=5)[1] == ["context_management", "top_k"]


@pytest.mark.parametrize("key", ["response_format", "guided_regex", "structured_outputs"])
def test_the_form_of_the_answer_is_part_of_the_question(key):
    with pytest.raises(BadRequest, match=key):
        translated(CHAT, **{key: {"type": "json_object"}})


def test_changes_of_tools_within_a_conversation_are_left_out_of_a_translation():
    change = {"type": "tool_addition", "tool": {"type": "tool_reference", "tool_name": "bash"}}
    turns = [*ASKED[MESSAGES]["messages"], {"role": "system", "content": [change]}]
    request, names = translated(MESSAGES, messages=turns, tools=[OWN[MESSAGES]])
    assert ([turn.text for turn in request.messages], len(names)) == (["go"], 1)


@pytest.mark.parametrize(("one_price", "name"), [(True, "default"), (False, "default[1m]")])
def test_the_wish_for_long_inputs_is_left_out_of_the_models_name_where_they_cost_no_more(one_price, name):
    with collect_left_out() as names:
        body = without_long_name({"model": "default[1m]", "input": "go"}, one_price=one_price)
    assert (body, len(names)) == ({"model": name, "input": "go"}, int(one_price))
