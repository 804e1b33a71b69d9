"""Rules for single values that several protocols share."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from dgm.gateway.allowed.addresses import check_inline, check_not_address
from dgm.gateway.allowed.walk import (
    MAX_CHOICES,
    PROVIDER_SIDE,
    STORED,
    UNPRICED,
    KeyRules,
    Rule,
    TypeRules,
    check_schema,
)
from dgm.gateway.leaving_out import leave_out
from dgm.gateway.translation import parsing
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject

EFFORTS = (*parsing.EFFORTS, "default", "auto")
TIERS = ("auto", "default", "standard_only", "standard", "on_demand", "flex")
"""Service tiers that cost the table's price or less."""
REMOTE = ("mcp", "mcp_toolset", "connector")
"""Types of tools by which a provider calls addresses; a request with one is refused, whatever its other tools are."""


def number_rule(most: float) -> Rule:
    """Return the rule of a number from 0 to ``most``."""
    return lambda value, place: parsing.read_number(value, place, most)


def stops_rule(most: int) -> Rule:
    """Return the rule of stop sequences: one text, or at most ``most`` texts."""
    return lambda value, place: parsing.read_stops(value, place, most)


def text_rule(key: str) -> Rule:
    """Return the rule of an object with a text in ``key``."""
    return lambda given, place: parsing.read_text(given.get(key), f"{place}.{key}")


def name_rule(key: str) -> Rule:
    """Return the rule of an object with a text in ``key`` that is not empty."""
    return lambda given, place: parsing.read_name(given.get(key), f"{place}.{key}")


def exact_value_rule(*accepted: object, why: str) -> Rule:
    """Return the rule of a value that must be one of these."""

    def rule(value: Any, place: str) -> None:  # noqa: ANN401  (what a stranger's JSON holds)
        if not any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in accepted):
            words = " or ".join(json.dumps(one) for one in accepted)
            raise BadRequest(f"{place} must be {words} or left out: {why}", "unsupported_parameter")

    return rule


def check_effort(value: Any, place: str) -> None:  # noqa: ANN401
    """Check the reasoning effort."""
    parsing.read_one_of(value, place, EFFORTS)


def check_choices(value: Any, place: str) -> None:  # noqa: ANN401
    """Check the number of answers that are asked for."""
    if type(value) is not int or not 1 <= value <= MAX_CHOICES:
        raise BadRequest(f"{place} must be a whole number from 1 to {MAX_CHOICES}")


def check_tier(value: Any, place: str) -> None:  # noqa: ANN401
    """Check that the service tier costs no more than the price table says."""
    if value not in TIERS:
        words = ", ".join(TIERS)
        raise BadRequest(f"{place} must be one of {words}: {UNPRICED}", "unsupported_parameter")


def check_template(value: Any, place: str) -> None:  # noqa: ANN401
    """Check that the arguments of a chat template contain no template."""
    if "chat_template" in parsing.read_record(value, place):
        raise BadRequest(
            f"{place}.chat_template is not offered here: a template is a program for the server",
            "unsupported_parameter",
        )


def refuse_stored_answer(value: Any, place: str) -> None:  # noqa: ANN401
    """Raise ``BadRequest`` for the id of an earlier answer; the gateway has resolved all that it knows."""
    told = f"there is no earlier answer {parsing.read_name(value, place)[:80]!r} in this job"
    raise BadRequest(told, "previous_response_not_found")


def check_tools(
    value: Any,  # noqa: ANN401
    kinds: TypeRules,
    of: Callable[[JsonObject], object],
    place: str = "tools",
    *,
    deferred: bool = False,
    others: bool = False,
) -> Sequence[JsonObject]:
    """Check a list of tools, remove those that cannot be offered from it, and return it.

    Args:
        value: the list.
        kinds: the types of tools that pass.
        of: returns a tool's type.
        place: the place of the list.
        deferred: whether tools may be loaded later, by a search of the agent's own.
        others: whether the request offers tools elsewhere.

    Raises:
        BadRequest: a tool is malformed, makes the provider call an address, or no tool of the request is left.
    """
    given = parsing.read_entries(value, place, parsing.MAX_TOOLS)
    kept: list[JsonObject] = []
    unknown: list[str] = []
    refusal: BadRequest | None = None
    for at, tool in enumerate(given):
        try:
            check_tool(tool, f"{place}[{at}]", kinds, of, deferred=deferred)
            kept.append(tool)
        except BadRequest as error:
            kind = of(tool) if isinstance(tool, dict) else None
            if error.code != kinds.code or kind in REMOTE:
                raise
            refusal = refusal or error
            unknown.append(str(kind)[:60])
    if refusal is not None:
        if not kept and not others:
            raise refusal
        value[:] = kept
        for each in unknown:
            leave_out(f"tools of the type {each!r}")
    return kept


def check_tool(
    tool: Any,  # noqa: ANN401
    place: str,
    kinds: TypeRules,
    of: Callable[[JsonObject], object],
    *,
    deferred: bool = False,
) -> None:
    """Check one tool: its type, its permitted callers, and the time of its loading; arguments as in ``check_tools``."""
    given = parsing.read_record(tool, place)
    kinds.check(of(given), given, place)
    for held in (given, given.get("function"), given.get("custom")):
        if isinstance(held, dict):
            _check_callers(held, place, kinds.code, deferred)
    check_inline(given, place)


def _check_callers(tool: dict[str, Any], place: str, code: str, deferred: bool) -> None:
    if tool.get("allowed_callers") not in (None, [], ["direct"]):
        if "direct" not in tool["allowed_callers"]:
            raise BadRequest(f"{place}.allowed_callers must name 'direct': {PROVIDER_SIDE}", code)
        leave_out(f"{place}.allowed_callers")
        tool["allowed_callers"] = ["direct"]
    if not deferred and tool.get("defer_loading") not in (None, False):
        leave_out(f"{place}.defer_loading")
        del tool["defer_loading"]


def check_function(described: JsonObject, place: str) -> None:
    """Check a function that the agent executes: its name, description and parameters."""
    parsing.read_name(described.get("name"), f"{place}.name")
    if described.get("description") is not None:
        parsing.read_text(described["description"], f"{place}.description")
    if described.get("parameters") is not None:
        check_schema(described["parameters"], f"{place}.parameters")


def check_turns(value: Any, place: str, check: Rule) -> None:  # noqa: ANN401
    """Check every turn of a conversation; it must have at least one."""
    entries = parsing.read_entries(value, place, parsing.MAX_MESSAGES)
    if not entries:
        raise BadRequest(f"{place} must not be empty")
    for at, turn in enumerate(entries):
        check(parsing.read_record(turn, f"{place}[{at}]"), f"{place}[{at}]")


def check_unique_names(names: Sequence[object], place: str) -> None:
    """Check that no two tools have the same name."""
    seen: set[str] = set()
    for at, name in enumerate(names):
        if not isinstance(name, str):
            continue
        if name in seen:
            raise BadRequest(f"{place}[{at}]: there is another tool of the name {name[:80]!r}")
        seen.add(name)


def check_offered(name: Any, offered: set[str], place: str) -> None:  # noqa: ANN401
    """Check that a tool choice names an offered tool."""
    if parsing.read_name(name, place) not in offered:
        raise BadRequest(f"tool_choice names {name[:80]!r}, which is not among the tools")


def check_sound(part: JsonObject, place: str) -> None:
    """Check a part with a sound in ``input_audio``, which must be the data itself."""
    held = parsing.read_record(part.get("input_audio"), f"{place}.input_audio")
    place = f"{place}.input_audio.data"
    check_not_address(parsing.read_name(held.get("data"), place), place)


def record_rule(keys: KeyRules) -> Rule:
    """Return the rule of an object that follows a key table."""
    return lambda value, place: keys.check(parsing.read_record(value, place), place)


CACHE = KeyRules(
    dict.fromkeys(("mode", "ttl")),
    {"prewarm": "it gives no answer", "comparison_response_id": STORED},
)
"""Options for prompt caching."""
