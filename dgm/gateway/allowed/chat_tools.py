"""Tools, tool calls and tool choices in requests for chat completions."""

from collections.abc import Sequence
from typing import Any

from dgm.gateway.allowed import rules
from dgm.gateway.allowed.addresses import inline
from dgm.gateway.allowed.walk import PROVIDER_SIDE, Kinds, words
from dgm.gateway.translation import parsing
from dgm.gateway.translation.parsing import JsonObject
from dgm.gateway.translation.wire import BadRequest

CHOICES = ("auto", "none", "required", "any")


def check_called(value: Any, place: str) -> None:  # noqa: ANN401
    """Check a function call: its name, and its arguments as a text."""
    given = parsing.record(value, place)
    parsing.name(given.get("name"), f"{place}.name")
    parsing.text(given.get("arguments"), f"{place}.arguments")


def _function_called(call: JsonObject, place: str) -> None:
    parsing.name(call.get("id"), f"{place}.id")
    check_called(call.get("function"), f"{place}.function")


def _custom_called(call: JsonObject, place: str) -> None:
    parsing.name(call.get("id"), f"{place}.id")
    given = parsing.record(call.get("custom"), f"{place}.custom")
    parsing.name(given.get("name"), f"{place}.custom.name")
    parsing.text(given.get("input"), f"{place}.custom.input")


CALLS = Kinds("calls", "unsupported_tool", {"function": _function_called, "custom": _custom_called})


def _function_tool(tool: JsonObject, place: str) -> None:
    rules.function(parsing.record(tool.get("function"), f"{place}.function"), f"{place}.function")


def _custom_tool(tool: JsonObject, place: str) -> None:
    parsing.name(parsing.record(tool.get("custom"), f"{place}.custom").get("name"), f"{place}.custom.name")


TOOLS = Kinds(
    "tools",
    "unsupported_tool",
    {"function": _function_tool, "custom": _custom_tool},
    dict.fromkeys(
        words(
            "web_search web_search_preview x_search live_search browser_search collections_search code_interpreter"
            " code_execution mcp file_search image_generation retrieval builtin_function google_search url_context"
            " web_extractor connector local_shell shell apply_patch computer computer_use_preview"
        ),
        PROVIDER_SIDE,
    ),
)


def check_functions(value: Any) -> Sequence[JsonObject]:  # noqa: ANN401  (what a stranger's JSON holds)
    """Check the deprecated ``functions`` list that preceded tools, and return it."""
    given = parsing.entries(value, "functions", parsing.MAX_TOOLS)
    for at, one in enumerate(given):
        rules.function(parsing.record(one, f"functions[{at}]"), f"functions[{at}]")
        inline(one, f"functions[{at}]")
    return given


def check_choice(value: Any, offered: set[str]) -> None:  # noqa: ANN401
    """Check a tool choice in any form against the names of the offered tools."""
    if value is None:
        return
    if isinstance(value, str):
        if parsing.one_of(value, "tool_choice", CHOICES) in ("required", "any") and not offered:
            raise BadRequest("tool_choice demands a call, but there are no tools")
        return
    given = parsing.record(value, "tool_choice")
    WISHES.check(given.get("type"), given, "tool_choice")
    if given["type"] == "allowed_tools":
        for at, one in enumerate(given["allowed_tools"]["tools"]):
            rules.named(one[one["type"]]["name"], offered, f"tool_choice.allowed_tools.tools[{at}]")
    else:
        rules.named(given[given["type"]]["name"], offered, "tool_choice")


def _wish(given: JsonObject, place: str) -> None:
    kind = str(given["type"])
    parsing.name(parsing.record(given.get(kind), f"{place}.{kind}").get("name"), f"{place}.{kind}.name")


def _wishes(given: JsonObject, place: str) -> None:
    held = parsing.record(given.get("allowed_tools"), f"{place}.allowed_tools")
    parsing.one_of(held.get("mode"), f"{place}.allowed_tools.mode", ("auto", "required"))
    NAMED.each(held.get("tools"), f"{place}.allowed_tools.tools")


NAMED = Kinds("tools", "unsupported_parameter", {"function": _wish, "custom": _wish}, TOOLS.refused)
WISHES = Kinds("tools", "unsupported_parameter", {**NAMED.passed, "allowed_tools": _wishes}, TOOLS.refused)


def check_function_call(value: Any, offered: set[str]) -> None:  # noqa: ANN401
    """Check the deprecated ``function_call`` choice that preceded tools."""
    if value is None:
        return
    if isinstance(value, str):
        parsing.one_of(value, "function_call", ("auto", "none"))
        return
    name = parsing.name(parsing.record(value, "function_call").get("name"), "function_call.name")
    if name not in offered:
        raise BadRequest(f"function_call names {name[:80]!r}, which is not among the functions")
