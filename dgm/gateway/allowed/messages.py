"""Allow-list for requests that pass unchanged to a provider of Anthropic's Messages protocol."""

from collections.abc import Sequence
from typing import Any

from dgm.gateway.allowed import rules, servers
from dgm.gateway.allowed.addresses import check_inline
from dgm.gateway.allowed.messages_blocks import BLOCKS, SYSTEM, TOOLS, USER, type_of
from dgm.gateway.allowed.walk import (
    PROVIDER_SIDE,
    STORED,
    UNPRICED,
    KeyRules,
    TypeRules,
    check_bounded,
    check_schema,
    tool_names,
)
from dgm.gateway.translation import parsing
from dgm.gateway.translation.anthropic_messages import CHOICES, MAX_STOPS, MIN_BUDGET
from dgm.gateway.translation.messages_answer import NO_THREADS
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject

TURN = frozenset(("role", "content"))
SYSTEM_TURN = KeyRules(dict.fromkeys(("role", "content", "clear_at", "output_config")))


def check(body: JsonObject) -> None:
    """Raise ``BadRequest`` unless the request may pass unchanged.

    Raises:
        BadRequest: it is no request for a message, or it asks for something that is not offered.
    """
    _check(body, KEYS)
    if body.get("max_tokens") is None:
        raise BadRequest("max_tokens is missing")
    if body.get("thinking") is not None:
        _check_budget(body["thinking"], body)


def check_count(body: JsonObject) -> None:
    """Raise ``BadRequest`` unless a request to count tokens may pass unchanged; it has no ``max_tokens``.

    Raises:
        BadRequest: it is no such request, or it holds something that is not offered.
    """
    _check(body, COUNT_KEYS)


def prepared(body: JsonObject) -> JsonObject:
    """Return the request in the form to send: keys that ask for nothing are left out. The provider stores nothing."""
    return servers.drop_empty_keys(body, KEYS)


def _check(body: JsonObject, keys: KeyRules) -> None:
    check_bounded(body)
    if body.get("thread") is not None:
        # The vendor's tool runner sends this unasked; when refused with this code, it goes on without it.
        raise BadRequest("thread is not offered here: send the whole conversation", NO_THREADS)
    keys.check(body)
    if body.get("messages") is None:
        raise BadRequest("messages must be a list")
    if body.get("diagnostics") is not None:
        previous = parsing.read_record(body["diagnostics"], "diagnostics").get("previous_message_id")
        if previous is not None:
            rules.refuse_stored_answer(previous, "diagnostics.previous_message_id")
    tools = [] if body.get("tools") is None else _check_tools(body["tools"])
    rules.check_unique_names([tool.get("name") for tool in tools], "tools")
    if body.get("tool_choice") is not None:
        toolsets = any("toolset" in str(tool.get("type")) for tool in tools)
        _check_tool_choice(body["tool_choice"], None if toolsets else tool_names(tools))


def _check_tools(value: Any) -> Sequence[JsonObject]:  # noqa: ANN401  (what a stranger's JSON holds)
    """Check the tools; those that the provider's search would load are offered from the start without it."""
    offered = value if isinstance(value, list) else []
    searched = any("tool_search_tool" in str(tool.get("type")) for tool in offered if isinstance(tool, dict))
    return rules.check_tools(value, TOOLS, type_of, deferred=not searched)


def _check_messages(value: Any, place: str) -> None:  # noqa: ANN401
    rules.check_turns(value, place, _check_turn)


def _check_turn(turn: JsonObject, place: str) -> None:
    role = parsing.read_one_of(turn.get("role"), f"{place}.role", ("user", "assistant", "system"))
    if not turn.keys() <= TURN:
        (SYSTEM_TURN if role == "system" else KeyRules(dict.fromkeys(TURN))).check(turn, place)
    content = turn.get("content")
    if isinstance(content, str) or (content is None and role == "system" and turn.get("output_config")):
        return
    here = f"{place}.content"
    match role:
        case "assistant":
            BLOCKS.each(content, here)
        case "system":
            SYSTEM.each(content, here)
        case _:
            USER.each(content, here)
            _check_results_first(content, here)
    check_inline(content, here)


def _check_results_first(blocks: Any, place: str) -> None:  # noqa: ANN401
    others = False
    for at, block in enumerate(blocks):
        if block["type"] != "tool_result":
            others = True
        elif others:
            raise BadRequest(f"{place}[{at}]: results of tools must come before text")


def _check_system(value: Any, place: str) -> None:  # noqa: ANN401
    SYSTEM.content(value, place)
    check_inline(value, place)


def _check_thinking(value: Any, place: str) -> None:  # noqa: ANN401
    given = parsing.read_record(value, place)
    kind = parsing.read_one_of(
        given.get("type"), f"{place}.type", ("adaptive", "enabled", "disabled", "between_tools")
    )
    if kind != "enabled" and given.get("budget_tokens") is not None:
        raise BadRequest(f"{place}.budget_tokens is only for thinking of the type 'enabled'")
    if given.get("display") is not None:
        parsing.read_one_of(given["display"], f"{place}.display", ("summarized", "omitted"))


def _check_budget(thinking: JsonObject, body: JsonObject) -> None:
    """Check the thinking budget; between tool calls it may exceed one answer's limit."""
    if thinking.get("type") != "enabled":
        return
    budget = parsing.read_whole(thinking.get("budget_tokens"), "thinking.budget_tokens")
    if budget is None or budget < MIN_BUDGET or (budget >= body["max_tokens"] and not body.get("tools")):
        raise BadRequest(f"thinking.budget_tokens must be from {MIN_BUDGET} to below max_tokens")


def _check_tool_choice(value: Any, offered: set[str] | None) -> None:  # noqa: ANN401
    given = parsing.read_record(value, "tool_choice")
    CHOICE.check(given, "tool_choice")
    kind = parsing.read_one_of(given.get("type"), "tool_choice.type", CHOICES)
    if kind == "tool":
        name = parsing.read_name(given.get("name"), "tool_choice.name")
        if offered is not None:
            rules.check_offered(name, offered, "tool_choice.name")
    elif kind == "any" and offered is not None and not offered:
        raise BadRequest("tool_choice demands a call, but there are no tools")


def _check_format(value: Any, place: str) -> None:  # noqa: ANN401
    given = parsing.read_record(value, place)
    parsing.read_one_of(given.get("type"), f"{place}.type", ("json_schema",))
    if given.get("schema") is not None:
        check_schema(given["schema"], f"{place}.schema")


EDITS = TypeRules(
    "edits",
    "unsupported_parameter",
    dict.fromkeys(("clear_tool_uses_", "clear_thinking_")),
    {"compact_": "what summing up costs is not told; the conversation is the agent's to shorten"},
)
CHOICE = KeyRules(
    {
        "type": None,
        "name": parsing.read_text,
        "disable_parallel_tool_use": parsing.read_flag,
    }
)
OUTPUT = KeyRules({"effort": rules.check_effort, "format": _check_format, "task_budget": parsing.read_record})
REFUSED = {
    "mcp_servers": PROVIDER_SIDE,
    "container": PROVIDER_SIDE,
    "inference_geo": "where a model runs is not the agent's choice",
    "fallbacks": servers.LENT,
    "fallback_credit_token": servers.LENT,
    "compaction": EDITS.refused["compact_"],
    "billing_policy": servers.ACCOUNT,
    "user_profile_id": servers.ACCOUNT,
    "workspace_id": servers.ACCOUNT,
    "betas": "they are sent as the header anthropic-beta",
    "anthropic_beta": "they are sent as the header anthropic-beta",
    "anthropic_version": "it is sent as the header of that name",
    "thread": STORED,
    "background": "an answer is waited for",
    "kv_transfer_params": servers.SERVER,
}
COUNTED = {
    "messages": _check_messages,
    "model": parsing.read_text,
    "system": _check_system,
    "tools": None,
    "tool_choice": None,
    "thinking": _check_thinking,
    "output_config": rules.record_rule(OUTPUT),
    "context_management": rules.record_rule(KeyRules({"edits": EDITS.each})),
    "cache_control": None,
    "speed": rules.exact_value_rule("standard", why=UNPRICED),
}
COUNT_KEYS = KeyRules(COUNTED, REFUSED)
KEYS = KeyRules(
    {
        **COUNTED,
        "max_tokens": parsing.read_whole,
        "stream": parsing.read_flag,
        "temperature": rules.number_rule(1),
        "top_p": rules.number_rule(1),
        "top_k": None,
        "stop_sequences": rules.stops_rule(MAX_STOPS),
        "output_format": _check_format,
        "service_tier": rules.check_tier,
        "metadata": parsing.read_record,
        "diagnostics": None,
        "chat_template_kwargs": rules.check_template,
    },
    REFUSED,
)
