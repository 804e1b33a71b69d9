"""Items, content and tools in requests for responses."""

from typing import Any

from dgm.gateway.allowed import rules
from dgm.gateway.allowed.chat_tools import CHOICES
from dgm.gateway.allowed.walk import (
    PROVIDER_SIDE,
    STORED,
    UNPRICED,
    KeyRules,
    Rule,
    TypeRules,
    check_schema,
    split_words,
)
from dgm.gateway.translation import parsing
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject

ROLES = ("system", "developer", "user", "assistant")
SUMMED_UP = "what summing up costs is not told; the conversation is the agent's to shorten"
SEARCHED = "tools are offered from the start; searching among them is not offered"
PROGRAMS = "programs that call tools run at the provider"


def type_of(given: JsonObject) -> object:
    """Return the type of a tool."""
    return given.get("type")


REASONING = KeyRules(
    {
        **dict.fromkeys(split_words("summary generate_summary context max_tokens enabled exclude")),
        "effort": rules.check_effort,
        "mode": rules.exact_value_rule("standard", why=UNPRICED),
    }
)


def _check_format(value: Any, place: str) -> None:  # noqa: ANN401
    given = parsing.read_record(value, place)
    parsing.read_one_of(given.get("type"), f"{place}.type", ("text", "json_schema", "json_object"))
    if given.get("schema") is not None:
        check_schema(given["schema"], f"{place}.schema")


check_thinking = rules.record_rule(REASONING)
check_text_form = rules.record_rule(KeyRules({"format": _check_format, "verbosity": None}))


def _check_message(item: JsonObject, place: str) -> None:
    parsing.read_one_of(item.get("role"), f"{place}.role", ROLES)
    PARTS.content(item.get("content"), f"{place}.content")


def _check_image(part: JsonObject, place: str) -> None:
    _check_no_file_id(part, place)
    parsing.read_name(part.get("image_url"), f"{place}.image_url")


def _check_file(part: JsonObject, place: str) -> None:
    _check_no_file_id(part, place)
    if part.get("file_url") is not None:
        raise BadRequest(
            f"{place}.file_url is an address; send the data inline, in file_data", "unsupported_content"
        )
    parsing.read_name(part.get("file_data"), f"{place}.file_data")


def _check_no_file_id(part: JsonObject, place: str) -> None:
    if part.get("file_id") is not None:
        raise BadRequest(f"{place}.file_id is not offered here: {STORED}", "unsupported_content")


PARTS = TypeRules(
    "content",
    "unsupported_content",
    {
        **dict.fromkeys(
            ("input_text", "output_text", "text", "summary_text", "reasoning_text"), rules.text_rule("text")
        ),
        "refusal": rules.text_rule("refusal"),
        "input_image": _check_image,
        "computer_screenshot": _check_image,
        "input_file": _check_file,
        "input_audio": rules.check_sound,
    },
)


def _call_rule(*texts: str) -> Rule:
    """Return the rule of a call: an id and the named text fields."""

    def rule(item: JsonObject, place: str) -> None:
        parsing.read_name(item.get("call_id"), f"{place}.call_id")
        for key in texts:
            parsing.read_text(item.get(key), f"{place}.{key}")

    return rule


def _check_function_call(item: JsonObject, place: str) -> None:
    parsing.read_name(item.get("name"), f"{place}.name")
    _call_rule()(item, place)
    parsing.read_arguments(item.get("arguments"), f"{place}.arguments")


def _check_output(item: JsonObject, place: str) -> None:
    _call_rule()(item, place)
    PARTS.content(item.get("output"), f"{place}.output")


def _check_screenshot(item: JsonObject, place: str) -> None:
    _call_rule()(item, place)
    PARTS.each([item.get("output")], f"{place}.output")


def _check_reasoning(item: JsonObject, place: str) -> None:
    for key in ("summary", "content"):
        if item.get(key) is not None:
            PARTS.each(item[key], f"{place}.{key}")


def _check_update(item: JsonObject, place: str) -> None:
    if item.get("reasoning") is not None:
        check_thinking(item["reasoning"], f"{place}.reasoning")
    if item.get("text") is not None:
        check_text_form(item["text"], f"{place}.text")


def _check_additional_tools(item: JsonObject, place: str) -> None:
    rules.check_tools(item.get("tools"), TOOLS, type_of, f"{place}.tools")


ITEMS = TypeRules(
    "items",
    "unsupported_content",
    {
        "message": _check_message,
        "function_call": _check_function_call,
        "function_call_output": _check_output,
        "custom_tool_call": _call_rule("name", "input"),
        "custom_tool_call_output": _check_output,
        "computer_call": _call_rule(),
        "computer_call_output": _check_screenshot,
        # Items that name their call in `id`, in `call_id`, or in both.
        "local_shell_call": None,
        "local_shell_call_output": None,
        "shell_call": _call_rule(),
        "shell_call_output": _call_rule(),
        "apply_patch_call": _call_rule(),
        "apply_patch_call_output": _call_rule(),
        "reasoning": _check_reasoning,
        "compaction": rules.name_rule("encrypted_content"),
        "configuration_update": _check_update,
        "additional_tools": _check_additional_tools,
    },
    {
        "item_reference": "single items are not kept here; send the item itself, or previous_response_id",
        **dict.fromkeys(
            split_words(
                "file_search_call web_search_call code_interpreter_call image_generation_call mcp_list_tools"
                " mcp_approval_request mcp_approval_response mcp_call x_search_call"
            ),
            PROVIDER_SIDE,
        ),
        **dict.fromkeys(("program", "program_output"), PROGRAMS),
        **dict.fromkeys(("tool_search_call", "tool_search_output"), SEARCHED),
        "compaction_trigger": SUMMED_UP,
    },
)


def _check_namespace(tool: JsonObject, place: str) -> None:
    parsing.read_name(tool.get("name"), f"{place}.name")
    rules.check_tools(tool.get("tools"), OWN, type_of, f"{place}.tools")


OWN = TypeRules(
    "tools", "unsupported_tool", {"function": rules.check_function, "custom": rules.name_rule("name")}
)
TOOLS = TypeRules(
    "tools",
    "unsupported_tool",
    {
        **OWN.passed,
        "namespace": _check_namespace,
        **dict.fromkeys(("local_shell", "shell", "apply_patch", "computer", "computer_use_preview")),
    },
    {
        **dict.fromkeys(
            split_words(
                "web_search web_search_ web_search_preview web_search_preview_ file_search mcp code_interpreter"
                " image_generation x_search live_search collections_search"
            ),
            PROVIDER_SIDE,
        ),
        "programmatic_tool_calling": PROGRAMS,
        "tool_search": SEARCHED,
    },
)


def check_choice(value: Any) -> None:  # noqa: ANN401
    """Check a tool choice in any form."""
    if value is None:
        return
    if isinstance(value, str):
        parsing.read_one_of(value, "tool_choice", CHOICES)
        return
    given = parsing.read_record(value, "tool_choice")
    WISHES.check(given.get("type"), given, "tool_choice")


def _check_allowed_tools(given: JsonObject, place: str) -> None:
    parsing.read_one_of(given.get("mode"), f"{place}.mode", ("auto", "required"))
    NAMED.each(given.get("tools"), f"{place}.tools")


NAMED = TypeRules(
    "tools",
    "unsupported_parameter",
    {
        "function": rules.name_rule("name"),
        "custom": rules.name_rule("name"),
        **dict.fromkeys(
            (
                "namespace",
                "local_shell",
                "shell",
                "apply_patch",
                "computer",
                "computer_use",
                "computer_use_preview",
            )
        ),
    },
    TOOLS.refused,
)
WISHES = TypeRules(
    "tools", "unsupported_parameter", {**NAMED.passed, "allowed_tools": _check_allowed_tools}, TOOLS.refused
)
