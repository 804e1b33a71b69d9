"""Tools, tool calls and tool choices in requests for chat completions."""

from collections.abc import Sequence
from typing import Any

from dgm.gateway.allowed import rules
from dgm.gateway.allowed.addresses import check_inline
from dgm.gateway.allowed.walk import PROVIDER_SIDE, TypeRules, split_words
from dgm.gateway.translation import parsing
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject

CHOICES = ("auto", "none", "required", "any")


def check_called(value: Any, place: str) -> None:  # noqa: ANN401
    """Check a function call: its name, and its arguments as a text."""
    given = parsing.read_record(value, place)
    parsing.read_name(given.get("name"), f"{place}.name")
    parsing.read_arguments(given.get("arguments"), f"{place}.arguments")


def _check_function_call(call: JsonObject, place: str) -> None:
    parsing.read_name(call.get("id"), f"{place}.id")
    check_called(call.get("function"), f"{place}.function")


def _check_custom_call(call: JsonObject, place: str) -> None:
    parsing.read_name(call.get("id"), f"{place}.id")
    given = parsing.read_record(call.get("custom"), f"{place}.custom")
    parsing.read_name(given.get("name"), f"{place}.custom.name")
    parsing.read_text(given.get("input"), f"{place}.custom.input")


CALLS = TypeRules(
    "calls", "unsupported_tool", {"function": _check_function_call, "custom": _check_custom_call}
)


def _check_function_tool(tool: JsonObject, place: str) -> None:
    rules.check_function(parsing.read_record(tool.get("function"), f"{place}.function"), f"{place}.function")


def _check_custom_tool(tool: JsonObject, place: str) -> None:
    parsing.read_name(
        parsing.read_record(tool.get("custom"), f"{place}.custom").get("name"), f"{place}.custom.name"
    )


TOOLS = TypeRules(
    "tools",
    "unsupported_tool",
    {"function": _check_function_tool, "custom": _check_custom_tool},
    dict.fromkeys(
        split_words(
            "web_search web_search_preview x_search live_search browser_search collections_search code_interpreter"
            " code_execution mcp file_search image_generation retrieval builtin_function google_search url_context"
            " web_extractor connector local_shell shell apply_patch computer computer_use_preview"
        ),
        PROVIDER_SIDE,
    ),
)


def check_functions(value: Any) -> Sequence[JsonObject]:  # noqa: ANN401  (what a stranger's JSON holds)
    """Check the deprecated ``functions`` list that preceded tools, and return it."""
    given = parsing.read_entries(value, "functions", parsing.MAX_TOOLS)
    for at, one in enumerate(given):
        rules.check_function(parsing.read_record(one, f"functions[{at}]"), f"functions[{at}]")
        check_inline(one, f"functions[{at}]")
    return given


def check_choice(value: Any, offered: set[str]) -> None:  # noqa: ANN401
    """Check a tool choice in any form against the names of the offered tools."""
    if value is None:
        return
    if isinstance(value, str):
        if parsing.read_one_of(value, "tool_choice", CHOICES) in ("required", "any") and not offered:
            raise BadRequest("tool_choice demands a call, but there are no tools")
        return
    given = parsing.read_record(value, "tool_choice")
    WISHES.check(given.get("type"), given, "tool_choice")
    if given["type"] == "allowed_tools":
        for at, one in enumerate(given["allowed_tools"]["tools"]):
            rules.check_offered(one[one["type"]]["name"], offered, f"tool_choice.allowed_tools.tools[{at}]")
    else:
        rules.check_offered(given[given["type"]]["name"], offered, "tool_choice")


def _check_named_choice(given: JsonObject, place: str) -> None:
    kind = str(given["type"])
    parsing.read_name(
        parsing.read_record(given.get(kind), f"{place}.{kind}").get("name"), f"{place}.{kind}.name"
    )


def _check_allowed_tools(given: JsonObject, place: str) -> None:
    held = parsing.read_record(given.get("allowed_tools"), f"{place}.allowed_tools")
    parsing.read_one_of(held.get("mode"), f"{place}.allowed_tools.mode", ("auto", "required"))
    NAMED.each(held.get("tools"), f"{place}.allowed_tools.tools")


NAMED = TypeRules(
    "tools",
    "unsupported_parameter",
    {"function": _check_named_choice, "custom": _check_named_choice},
    TOOLS.refused,
)
WISHES = TypeRules(
    "tools", "unsupported_parameter", {**NAMED.passed, "allowed_tools": _check_allowed_tools}, TOOLS.refused
)


def check_function_call(value: Any, offered: set[str]) -> None:  # noqa: ANN401
    """Check the deprecated ``function_call`` choice that preceded tools."""
    if value is None:
        return
    if isinstance(value, str):
        parsing.read_one_of(value, "function_call", ("auto", "none"))
        return
    name = parsing.read_name(parsing.read_record(value, "function_call").get("name"), "function_call.name")
    if name not in offered:
        raise BadRequest(f"function_call names {name[:80]!r}, which is not among the functions")
