"""Blocks and tools in requests for Anthropic's messages."""

from dgm.gateway.allowed import rules
from dgm.gateway.allowed.addresses import check_source
from dgm.gateway.allowed.walk import PROVIDER_SIDE, STORED, TypeRules, check_schema, split_words
from dgm.gateway.translation import parsing
from dgm.messages import JsonObject

SEARCHED = "tools are offered from the start; searching among them is not offered"
OTHERS = "another model is asked for it"


def type_of(tool: JsonObject) -> object:
    """Return the type of a tool; a tool with an ``input_schema`` need not name its type."""
    return "custom" if tool.get("type") is None else tool["type"]


def _source(block: JsonObject, place: str) -> JsonObject:
    source = parsing.read_record(block.get("source"), f"{place}.source")
    check_source(source, f"{place}.source")
    return source


def _check_image(block: JsonObject, place: str) -> None:
    parsing.read_text(_source(block, place).get("data"), f"{place}.source.data")


def _check_document(block: JsonObject, place: str) -> None:
    source = _source(block, place)
    if source["type"] == "content":
        WITHIN.content(source.get("content"), f"{place}.source.content")
    else:
        parsing.read_text(source.get("data"), f"{place}.source.data")


def _check_search_result(block: JsonObject, place: str) -> None:
    parsing.read_text(block.get("source"), f"{place}.source")
    TEXTS.each(block.get("content"), f"{place}.content")


def _check_tool_result(block: JsonObject, place: str) -> None:
    parsing.read_name(block.get("tool_use_id"), f"{place}.tool_use_id")
    parsing.read_flag(block.get("is_error"), f"{place}.is_error")
    if block.get("content") is not None:
        RESULTS.content(block["content"], f"{place}.content")


def _check_tool_use(block: JsonObject, place: str) -> None:
    parsing.read_name(block.get("id"), f"{place}.id")
    parsing.read_name(block.get("name"), f"{place}.name")
    parsing.read_schema(block.get("input"), f"{place}.input")


def _check_compaction(block: JsonObject, place: str) -> None:
    if block.get("tool_changes") is not None:
        CHANGES.each(block["tool_changes"], f"{place}.tool_changes")


def _check_tool_change(block: JsonObject, place: str) -> None:
    changed = parsing.read_record(block.get("tool"), f"{place}.tool")
    CHANGED.check(changed.get("type"), changed, f"{place}.tool")


def _check_definition(changed: JsonObject, place: str) -> None:
    rules.check_tool(changed.get("definition"), f"{place}.definition", TOOLS, type_of, deferred=True)


REFUSED = {
    **dict.fromkeys(
        split_words(
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
CHANGED = TypeRules(
    "tools",
    "unsupported_tool",
    {"tool_reference": None, "tool_definition": _check_definition},
    dict.fromkeys(("mcp_tool_reference", "mcp_toolset_reference"), PROVIDER_SIDE),
)
CHANGES = TypeRules(
    "content", CODE, dict.fromkeys(("tool_addition", "tool_removal"), _check_tool_change), REFUSED
)
TEXTS = TypeRules("content", CODE, {"text": rules.text_rule("text")}, REFUSED)
SYSTEM = TypeRules("content", CODE, {**TEXTS.passed, **CHANGES.passed}, REFUSED)
WITHIN = TypeRules("content", CODE, {"text": rules.text_rule("text"), "image": _check_image}, REFUSED)
SHOWN = {**WITHIN.passed, "document": _check_document, "search_result": _check_search_result}
"""Types of blocks with something to read or to look at."""
RESULTS = TypeRules(
    "content",
    CODE,
    # A search among tools that is the agent's own names what it found.
    {**SHOWN, "browser_state": None, "tool_reference": rules.name_rule("tool_name")},
    REFUSED,
)
USER = TypeRules(
    "content",
    CODE,
    {
        **SHOWN,
        **CHANGES.passed,
        "tool_result": _check_tool_result,
        "compaction": _check_compaction,
    },
    REFUSED,
)
BLOCKS = TypeRules(
    "content",
    CODE,
    {
        **SHOWN,
        **CHANGES.passed,
        "thinking": None,
        "redacted_thinking": None,
        "tool_use": _check_tool_use,
        "compaction": _check_compaction,
    },
    REFUSED,
)
"""Types of content blocks in an assistant's turn."""


def _check_custom_tool(tool: JsonObject, place: str) -> None:
    parsing.read_name(tool.get("name"), f"{place}.name")
    if tool.get("description") is not None:
        parsing.read_text(tool["description"], f"{place}.description")
    check_schema(tool.get("input_schema"), f"{place}.input_schema")


def _check_client_tool(tool: JsonObject, place: str) -> None:
    if tool.get("name") is not None:
        parsing.read_name(tool["name"], f"{place}.name")


TOOLS = TypeRules(
    "tools",
    "unsupported_tool",
    {
        "custom": _check_custom_tool,
        # Tools that the client executes.
        **dict.fromkeys(
            split_words("bash_ text_editor_ memory_ computer_ computer_toolset_ browser_toolset_"),
            _check_client_tool,
        ),
    },
    {
        **dict.fromkeys(split_words("code_execution_ web_search_ web_fetch_ mcp_toolset"), PROVIDER_SIDE),
        **dict.fromkeys(
            split_words(
                "tool_search_tool_bm25 tool_search_tool_bm25_ tool_search_tool_regex tool_search_tool_regex_"
            ),
            SEARCHED,
        ),
        "advisor_": OTHERS,
    },
)
