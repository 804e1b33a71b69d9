"""Allow-list for requests that pass unchanged to a provider of OpenAI's Responses protocol."""

from collections.abc import Mapping, Sequence
from typing import Any

from dgm.gateway.allowed import rules, servers
from dgm.gateway.allowed.addresses import check_inline
from dgm.gateway.allowed.responses_items import (
    ITEMS,
    SUMMED_UP,
    TOOLS,
    check_choice,
    check_text_form,
    check_thinking,
    type_of,
)
from dgm.gateway.allowed.walk import (
    PROVIDER_SIDE,
    KeyRules,
    check_bounded,
    split_words,
)
from dgm.gateway.translation import parsing
from dgm.gateway.translation.openai_chat import MAX_STOPS
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject

KEPT_HERE = "send the items, or previous_response_id"
ENCRYPTED = "reasoning.encrypted_content"
INCLUDED = (
    ENCRYPTED,
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
)
NOT_INCLUDED = (
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    "code_interpreter_call.outputs",
)
"""Values of ``include`` for tools that run at the provider."""


def check(body: JsonObject) -> None:
    """Raise ``BadRequest`` unless the request may pass unchanged.

    Raises:
        BadRequest: it is no request for a response, or it asks for something that is not offered.
    """
    check_bounded(body)
    KEYS.check(body)
    if body.get("input") is None:
        raise BadRequest("input must be a list")
    if body.get("previous_response_id") is not None:
        rules.refuse_stored_answer(body["previous_response_id"], "previous_response_id")
    tools: Sequence[JsonObject] = []
    if body.get("tools") is not None:
        items = body["input"] if isinstance(body["input"], list) else []
        others = any(isinstance(item, dict) and item.get("type") == "additional_tools" for item in items)
        tools = rules.check_tools(body["tools"], TOOLS, type_of, others=others)
    rules.check_unique_names([tool.get("name") for tool in tools], "tools")
    check_choice(body.get("tool_choice"))


def prepared(body: JsonObject) -> JsonObject:
    """Return the request in the form to send: nothing is stored, and a shell is always the agent's own.

    Reasoning that is not stored must travel with the agent, encrypted, so it is included. A model that cannot do so
    answers ``encrypted content is not supported``; the agent must then leave ``include`` out.
    """
    sent = servers.drop_empty_keys(body, KEYS)
    sent["store"] = False
    include = sent.get("include") or []
    sent["include"] = include if ENCRYPTED in include else [*include, ENCRYPTED]
    if sent.get("tools"):
        sent["tools"] = [_set_local_shell(tool) for tool in sent["tools"]]
    return sent


def _set_local_shell(tool: JsonObject) -> JsonObject:
    if tool.get("type") == "shell" and tool.get("environment") is None:
        return {**tool, "environment": {"type": "local"}}
    return tool


def _check_input(value: Any, place: str) -> None:  # noqa: ANN401  (what a stranger's JSON holds)
    if isinstance(value, str):
        return
    items = parsing.read_entries(value, place, parsing.MAX_MESSAGES)
    if not items:
        raise BadRequest(f"{place} must not be empty")
    for at, item in enumerate(items):
        here = f"{place}[{at}]"
        kind = parsing.read_record(item, here).get("type")
        if kind is None:
            kind = "item_reference" if "id" in item and "role" not in item else "message"
        ITEMS.check(kind, item, here)
        check_inline(item, here)


def _check_include(value: Any, place: str) -> None:  # noqa: ANN401
    for at, word in enumerate(parsing.read_entries(value, place, parsing.MAX_TOOLS)):
        if word in NOT_INCLUDED:
            raise BadRequest(f"{place}[{at}] is not offered here: {PROVIDER_SIDE}", "unsupported_parameter")
        parsing.read_one_of(word, f"{place}[{at}]", INCLUDED)


IMAGE = KeyRules({"context_compression": None})


REFUSED: Mapping[str, str] = {
    **servers.REFUSED,
    "conversation": KEPT_HERE,
    "prompt": "prompts that a provider stores are not reachable",
    "context_management": SUMMED_UP,
    "thread": KEPT_HERE,
}
KEYS = KeyRules(
    {
        **servers.PASSED,
        "input": _check_input,
        "instructions": parsing.read_text,
        "model": parsing.read_text,
        "stream": parsing.read_flag,
        "stream_options": parsing.read_record,
        "max_output_tokens": parsing.read_whole,
        "temperature": rules.number_rule(2),
        "top_p": rules.number_rule(1),
        "stop": rules.stops_rule(MAX_STOPS),
        "include": _check_include,
        "reasoning": check_thinking,
        "text": check_text_form,
        "truncation": rules.exact_value_rule("auto", "disabled", why="there is no other way"),
        "service_tier": rules.check_tier,
        "prompt_cache_options": rules.record_rule(rules.CACHE),
        "image": rules.record_rule(IMAGE),
        **dict.fromkeys(
            split_words(
                "previous_response_id tools tool_choice parallel_tool_calls max_tool_calls store user metadata"
                " safety_identifier prompt_cache_key prompt_cache_retention client_metadata"
            )
        ),
    },
    REFUSED,
)
