"""Allow-list for requests that pass unchanged to a provider of Anthropic's Messages protocol."""

from typing import Any

from dgm.gateway.allowed import rules, servers
from dgm.gateway.allowed.addresses import inline
from dgm.gateway.allowed.messages_blocks import BLOCKS, SYSTEM, TOOLS, USER, type_of
from dgm.gateway.allowed.walk import (
    PROVIDER_SIDE,
    STORED,
    UNPRICED,
    Keys,
    Kinds,
    Known,
    bounded,
    names_of,
    nobody,
    schema,
)
from dgm.gateway.translation import parsing
from dgm.gateway.translation.anthropic_messages import CHOICES, MAX_STOPS, MIN_BUDGET
from dgm.gateway.translation.messages_answer import NO_THREADS
from dgm.gateway.translation.parsing import JsonObject
from dgm.gateway.translation.wire import BadRequest

TURN = frozenset(("role", "content"))
SYSTEM_TURN = Keys(dict.fromkeys(("role", "content", "clear_at", "output_config")))


def check(body: JsonObject, known: Known = nobody) -> None:
    """Raise ``BadRequest`` unless the request may pass unchanged.

    Args:
        body: the request.
        known: returns whether an id belongs to an answer of this job; diagnostics may name no other id.

    Raises:
        BadRequest: it is no request for a message, or it asks for something that is not offered.
    """
    _check(body, KEYS, known)
    if body.get("max_tokens") is None:
        raise BadRequest("max_tokens is missing")
    if body.get("thinking") is not None:
        _budget(body["thinking"], body)


def check_count(body: JsonObject) -> None:
    """Raise ``BadRequest`` unless a request to count tokens may pass unchanged; it has no ``max_tokens``.

    Raises:
        BadRequest: it is no such request, or it holds something that is not offered.
    """
    _check(body, COUNT_KEYS, nobody)


def prepared(body: JsonObject) -> JsonObject:
    """Return the request in the form to send: keys that ask for nothing are left out. The provider stores nothing."""
    return servers.asked(body, KEYS)


def _check(body: JsonObject, keys: Keys, known: Known) -> None:
    bounded(body)
    if body.get("thread") is not None:
        # The vendor's tool runner sends this unasked; when refused with this code, it goes on without it.
        raise BadRequest("thread is not offered here: send the whole conversation", NO_THREADS)
    keys.check(body)
    if body.get("messages") is None:
        raise BadRequest("messages must be a list")
    if body.get("diagnostics") is not None:
        previous = parsing.record(body["diagnostics"], "diagnostics").get("previous_message_id")
        if previous is not None:
            rules.stored(known)(previous, "diagnostics.previous_message_id")
    tools = [] if body.get("tools") is None else rules.tools(body["tools"], TOOLS, type_of)
    rules.unique([tool.get("name") for tool in tools], "tools")
    if body.get("tool_choice") is not None:
        toolsets = any("toolset" in str(tool.get("type")) for tool in tools)
        _tool_choice(body["tool_choice"], None if toolsets else names_of(tools))


def _messages(value: Any, place: str) -> None:  # noqa: ANN401  (what a stranger's JSON holds)
    rules.turns(value, place, _turn)


def _turn(turn: JsonObject, place: str) -> None:
    role = parsing.one_of(turn.get("role"), f"{place}.role", ("user", "assistant", "system"))
    if not turn.keys() <= TURN:
        (SYSTEM_TURN if role == "system" else Keys(dict.fromkeys(TURN))).check(turn, place)
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
            _results_first(content, here)
    inline(content, here)


def _results_first(blocks: Any, place: str) -> None:  # noqa: ANN401
    others = False
    for at, block in enumerate(blocks):
        if block["type"] != "tool_result":
            others = True
        elif others:
            raise BadRequest(f"{place}[{at}]: results of tools must come before text")


def _system(value: Any, place: str) -> None:  # noqa: ANN401
    SYSTEM.content(value, place)
    inline(value, place)


def _thinking(value: Any, place: str) -> None:  # noqa: ANN401
    given = parsing.record(value, place)
    kind = parsing.one_of(
        given.get("type"), f"{place}.type", ("adaptive", "enabled", "disabled", "between_tools")
    )
    if kind != "enabled" and given.get("budget_tokens") is not None:
        raise BadRequest(f"{place}.budget_tokens is only for thinking of the type 'enabled'")
    if given.get("display") is not None:
        parsing.one_of(given["display"], f"{place}.display", ("summarized", "omitted"))


def _budget(thinking: JsonObject, body: JsonObject) -> None:
    """Check the thinking budget; between tool calls it may exceed one answer's limit."""
    if thinking.get("type") != "enabled":
        return
    budget = parsing.whole(thinking.get("budget_tokens"), "thinking.budget_tokens")
    if budget is None or budget < MIN_BUDGET or (budget >= body["max_tokens"] and not body.get("tools")):
        raise BadRequest(f"thinking.budget_tokens must be from {MIN_BUDGET} to below max_tokens")


def _tool_choice(value: Any, offered: set[str] | None) -> None:  # noqa: ANN401
    given = parsing.record(value, "tool_choice")
    CHOICE.check(given, "tool_choice")
    kind = parsing.one_of(given.get("type"), "tool_choice.type", CHOICES)
    if kind == "tool":
        name = parsing.name(given.get("name"), "tool_choice.name")
        if offered is not None:
            rules.named(name, offered, "tool_choice.name")
    elif kind == "any" and offered is not None and not offered:
        raise BadRequest("tool_choice demands a call, but there are no tools")


def _format(value: Any, place: str) -> None:  # noqa: ANN401
    given = parsing.record(value, place)
    parsing.one_of(given.get("type"), f"{place}.type", ("json_schema",))
    if given.get("schema") is not None:
        schema(given["schema"], f"{place}.schema")


def _edits(value: Any, place: str) -> None:  # noqa: ANN401
    EDITED.check(parsing.record(value, place), place)


EDITS = Kinds(
    "edits",
    "unsupported_parameter",
    dict.fromkeys(("clear_tool_uses_", "clear_thinking_")),
    {"compact_": "what summing up costs is not told; the conversation is the agent's to shorten"},
)
EDITED = Keys({"edits": EDITS.each})
CHOICE = Keys(
    {
        "type": None,
        "name": parsing.text,
        "disable_parallel_tool_use": parsing.flag,
    }
)
OUTPUT = Keys({"effort": rules.effort, "format": _format, "task_budget": parsing.record})
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
    "messages": _messages,
    "model": parsing.text,
    "system": _system,
    "tools": None,
    "tool_choice": None,
    "thinking": _thinking,
    "output_config": rules.record_of(OUTPUT),
    "context_management": _edits,
    "cache_control": None,
    "speed": rules.only("standard", why=UNPRICED),
}
COUNT_KEYS = Keys(COUNTED, REFUSED)
KEYS = Keys(
    {
        **COUNTED,
        "max_tokens": parsing.whole,
        "stream": parsing.flag,
        "temperature": rules.number(1),
        "top_p": rules.number(1),
        "top_k": None,
        "stop_sequences": rules.stops(MAX_STOPS),
        "output_format": _format,
        "service_tier": rules.tier,
        "metadata": parsing.record,
        "diagnostics": None,
        "chat_template_kwargs": rules.template,
    },
    REFUSED,
)
