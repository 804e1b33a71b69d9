"""Blocks and tools in requests for Anthropic's messages."""

from typing import Any

from dgm.gateway.allowed import rules
from dgm.gateway.allowed.addresses import INLINE_SOURCES
from dgm.gateway.allowed.walk import PROVIDER_SIDE, STORED, Kinds, schema, words
from dgm.gateway.translation import parsing
from dgm.gateway.translation.parsing import JsonObject
from dgm.gateway.translation.wire import BadRequest

SEARCHED = "tools are offered from the start; searching among them is not offered"
OTHERS = "another model is asked for it"


def type_of(tool: JsonObject) -> object:
    """Return the type of a tool; a tool with an ``input_schema`` need not name its type."""
    return "custom" if tool.get("type") is None else tool["type"]


def _text(block: JsonObject, place: str) -> None:
    parsing.text(block.get("text"), f"{place}.text")


def _source(block: JsonObject, place: str) -> Any:  # noqa: ANN401  (what a stranger's JSON holds)
    source = parsing.record(block.get("source"), f"{place}.source")
    if source.get("type") not in INLINE_SOURCES:
        kind = repr(str(source.get("type"))[:40])
        raise BadRequest(
            f"{place}.source is of the type {kind}; only data that is sent inline is offered here",
            "unsupported_content",
        )
    return source


def _image(block: JsonObject, place: str) -> None:
    parsing.text(_source(block, place).get("data"), f"{place}.source.data")


def _document(block: JsonObject, place: str) -> None:
    source = _source(block, place)
    if source["type"] == "content":
        WITHIN.content(source.get("content"), f"{place}.source.content")
    else:
        parsing.text(source.get("data"), f"{place}.source.data")


def _found(block: JsonObject, place: str) -> None:
    parsing.text(block.get("source"), f"{place}.source")
    TEXTS.each(block.get("content"), f"{place}.content")


def _result(block: JsonObject, place: str) -> None:
    parsing.name(block.get("tool_use_id"), f"{place}.tool_use_id")
    parsing.flag(block.get("is_error"), f"{place}.is_error")
    if block.get("content") is not None:
        RESULTS.content(block["content"], f"{place}.content")


def _use(block: JsonObject, place: str) -> None:
    parsing.name(block.get("id"), f"{place}.id")
    parsing.name(block.get("name"), f"{place}.name")
    parsing.schema(block.get("input"), f"{place}.input")


def _compaction(block: JsonObject, place: str) -> None:
    if block.get("tool_changes") is not None:
        CHANGES.each(block["tool_changes"], f"{place}.tool_changes")


def _change(block: JsonObject, place: str) -> None:
    changed = parsing.record(block.get("tool"), f"{place}.tool")
    CHANGED.check(changed.get("type"), changed, f"{place}.tool")


def _definition(changed: JsonObject, place: str) -> None:
    rules.check_tool(changed.get("definition"), f"{place}.definition", TOOLS, type_of)


REFUSED = {
    **dict.fromkeys(
        words(
            "server_tool_use web_search_tool_result web_fetch_tool_result code_execution_tool_result"
            " bash_code_execution_tool_result text_editor_code_execution_tool_result mcp_tool_use mcp_tool_result"
            " mcp_tool_listing"
        ),
        PROVIDER_SIDE,
    ),
    **dict.fromkeys(("tool_search_tool_result", "tool_reference"), SEARCHED),
    **dict.fromkeys(("advisor_tool_result", "fallback"), OTHERS),
    "container_upload": STORED,
    "tool_use": "only the assistant calls tools",
    "tool_result": "only the user gives results of tools",
}
CODE = "unsupported_content"
CHANGED = Kinds(
    "tools",
    "unsupported_tool",
    {"tool_reference": None, "tool_definition": _definition},
    dict.fromkeys(("mcp_tool_reference", "mcp_toolset_reference"), PROVIDER_SIDE),
)
CHANGES = Kinds("content", CODE, dict.fromkeys(("tool_addition", "tool_removal"), _change), REFUSED)
TEXTS = Kinds("content", CODE, {"text": _text}, REFUSED)
SYSTEM = Kinds("content", CODE, {**TEXTS.passed, **CHANGES.passed}, REFUSED)
WITHIN = Kinds("content", CODE, {"text": _text, "image": _image}, REFUSED)
RESULTS = Kinds(
    "content",
    CODE,
    {**WITHIN.passed, "document": _document, "search_result": _found, "browser_state": None},
    REFUSED,
)
USER = Kinds(
    "content",
    CODE,
    {
        **WITHIN.passed,
        **CHANGES.passed,
        "document": _document,
        "search_result": _found,
        "tool_result": _result,
        "compaction": _compaction,
    },
    REFUSED,
)
BLOCKS = Kinds(
    "content",
    CODE,
    {
        **WITHIN.passed,
        **CHANGES.passed,
        "document": _document,
        "search_result": _found,
        "thinking": None,
        "redacted_thinking": None,
        "tool_use": _use,
        "compaction": _compaction,
    },
    REFUSED,
)
"""Types of content blocks in an assistant's turn."""


def _tool(tool: JsonObject, place: str) -> None:
    parsing.name(tool.get("name"), f"{place}.name")
    if tool.get("description") is not None:
        parsing.text(tool["description"], f"{place}.description")
    schema(tool.get("input_schema"), f"{place}.input_schema")


def _own_tool(tool: JsonObject, place: str) -> None:
    if tool.get("name") is not None:
        parsing.name(tool["name"], f"{place}.name")


TOOLS = Kinds(
    "tools",
    "unsupported_tool",
    {
        "custom": _tool,
        # Tools that the client executes.
        **dict.fromkeys(
            words("bash_ text_editor_ memory_ computer_ computer_toolset_ browser_toolset_"), _own_tool
        ),
    },
    {
        **dict.fromkeys(words("code_execution_ web_search_ web_fetch_ mcp_toolset"), PROVIDER_SIDE),
        **dict.fromkeys(
            words(
                "tool_search_tool_bm25 tool_search_tool_bm25_ tool_search_tool_regex tool_search_tool_regex_"
            ),
            SEARCHED,
        ),
        "advisor_": OTHERS,
    },
)
