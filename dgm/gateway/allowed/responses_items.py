"""Items, content and tools in requests for responses."""

from typing import Any

from dgm.gateway.allowed import rules
from dgm.gateway.allowed.addresses import encoded
from dgm.gateway.allowed.chat_tools import CHOICES
from dgm.gateway.allowed.walk import PROVIDER_SIDE, STORED, UNPRICED, Keys, Kinds, Rule, schema, words
from dgm.gateway.translation import parsing
from dgm.gateway.translation.parsing import JsonObject
from dgm.gateway.translation.wire import BadRequest

ROLES = ("system", "developer", "user", "assistant")
SUMMED_UP = "what summing up costs is not told; the conversation is the agent's to shorten"
SEARCHED = "tools are offered from the start; searching among them is not offered"
PROGRAMS = "programs that call tools run at the provider"


def type_of(given: JsonObject) -> object:
    """Return the type of a tool."""
    return given.get("type")


REASONING = Keys(
    {
        **dict.fromkeys(words("summary generate_summary context max_tokens enabled exclude")),
        "effort": rules.effort,
        "mode": rules.only("standard", why=UNPRICED),
    }
)


def check_thinking(value: Any, place: str) -> None:  # noqa: ANN401  (what a stranger's JSON holds)
    """Check the reasoning options."""
    REASONING.check(parsing.record(value, place), place)


def check_text_form(value: Any, place: str) -> None:  # noqa: ANN401
    """Check the text format of an answer."""
    TEXT.check(parsing.record(value, place), place)


def _format(value: Any, place: str) -> None:  # noqa: ANN401
    given = parsing.record(value, place)
    parsing.one_of(given.get("type"), f"{place}.type", ("text", "json_schema", "json_object"))
    if given.get("schema") is not None:
        schema(given["schema"], f"{place}.schema")


TEXT = Keys({"format": _format, "verbosity": None})


def _message(item: JsonObject, place: str) -> None:
    parsing.one_of(item.get("role"), f"{place}.role", ROLES)
    PARTS.content(item.get("content"), f"{place}.content")


def _text(part: JsonObject, place: str) -> None:
    parsing.text(part.get("text"), f"{place}.text")


def _refusal(part: JsonObject, place: str) -> None:
    parsing.text(part.get("refusal"), f"{place}.refusal")


def _image(part: JsonObject, place: str) -> None:
    _no_file(part, place)
    parsing.name(part.get("image_url"), f"{place}.image_url")


def _file(part: JsonObject, place: str) -> None:
    _no_file(part, place)
    if part.get("file_url") is not None:
        raise BadRequest(
            f"{place}.file_url is an address; send the data inline, in file_data", "unsupported_content"
        )
    parsing.name(part.get("file_data"), f"{place}.file_data")


def _no_file(part: JsonObject, place: str) -> None:
    if part.get("file_id") is not None:
        raise BadRequest(f"{place}.file_id is not offered here: {STORED}", "unsupported_content")


def _sound(part: JsonObject, place: str) -> None:
    held = parsing.record(part.get("input_audio"), f"{place}.input_audio")
    encoded(parsing.name(held.get("data"), f"{place}.input_audio.data"), f"{place}.input_audio.data")


PARTS = Kinds(
    "content",
    "unsupported_content",
    {
        **dict.fromkeys(("input_text", "output_text", "text", "summary_text", "reasoning_text"), _text),
        "refusal": _refusal,
        "input_image": _image,
        "computer_screenshot": _image,
        "input_file": _file,
        "input_audio": _sound,
    },
)


def _call(*texts: str) -> Rule:
    """Return the rule of a call: an id and the named text fields."""

    def rule(item: JsonObject, place: str) -> None:
        parsing.name(item.get("call_id"), f"{place}.call_id")
        for key in texts:
            parsing.text(item.get(key), f"{place}.{key}")

    return rule


def _function_call(item: JsonObject, place: str) -> None:
    parsing.name(item.get("name"), f"{place}.name")
    _call("arguments")(item, place)


def _output(item: JsonObject, place: str) -> None:
    _call()(item, place)
    PARTS.content(item.get("output"), f"{place}.output")


def _screenshot(item: JsonObject, place: str) -> None:
    _call()(item, place)
    PARTS.each([item.get("output")], f"{place}.output")


def _reasoning(item: JsonObject, place: str) -> None:
    for key in ("summary", "content"):
        if item.get(key) is not None:
            PARTS.each(item[key], f"{place}.{key}")


def _compaction(item: JsonObject, place: str) -> None:
    parsing.name(item.get("encrypted_content"), f"{place}.encrypted_content")


def _update(item: JsonObject, place: str) -> None:
    if item.get("reasoning") is not None:
        check_thinking(item["reasoning"], f"{place}.reasoning")
    if item.get("text") is not None:
        check_text_form(item["text"], f"{place}.text")


def _additional_tools(item: JsonObject, place: str) -> None:
    tools = parsing.entries(item.get("tools"), f"{place}.tools", parsing.MAX_TOOLS)
    for at, tool in enumerate(tools):
        rules.check_tool(tool, f"{place}.tools[{at}]", TOOLS, type_of)


ITEMS = Kinds(
    "items",
    "unsupported_content",
    {
        "message": _message,
        "function_call": _function_call,
        "function_call_output": _output,
        "custom_tool_call": _call("name", "input"),
        "custom_tool_call_output": _output,
        "computer_call": _call(),
        "computer_call_output": _screenshot,
        # Items that name their call in `id`, in `call_id`, or in both.
        "local_shell_call": None,
        "local_shell_call_output": None,
        "shell_call": _call(),
        "shell_call_output": _call(),
        "apply_patch_call": _call(),
        "apply_patch_call_output": _call(),
        "reasoning": _reasoning,
        "compaction": _compaction,
        "configuration_update": _update,
        "additional_tools": _additional_tools,
    },
    {
        "item_reference": "single items are not kept here; send the item itself, or previous_response_id",
        **dict.fromkeys(
            words(
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


def _custom_tool(tool: JsonObject, place: str) -> None:
    parsing.name(tool.get("name"), f"{place}.name")


def _namespace(tool: JsonObject, place: str) -> None:
    parsing.name(tool.get("name"), f"{place}.name")
    for at, one in enumerate(parsing.entries(tool.get("tools"), f"{place}.tools", parsing.MAX_TOOLS)):
        rules.check_tool(one, f"{place}.tools[{at}]", OWN, type_of)


OWN = Kinds("tools", "unsupported_tool", {"function": rules.function, "custom": _custom_tool})
TOOLS = Kinds(
    "tools",
    "unsupported_tool",
    {
        **OWN.passed,
        "namespace": _namespace,
        **dict.fromkeys(("local_shell", "shell", "apply_patch", "computer", "computer_use_preview")),
    },
    {
        **dict.fromkeys(
            words(
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
        parsing.one_of(value, "tool_choice", CHOICES)
        return
    given = parsing.record(value, "tool_choice")
    WISHES.check(given.get("type"), given, "tool_choice")


def _wishes(given: JsonObject, place: str) -> None:
    parsing.one_of(given.get("mode"), f"{place}.mode", ("auto", "required"))
    NAMED.each(given.get("tools"), f"{place}.tools")


NAMED = Kinds(
    "tools",
    "unsupported_parameter",
    {
        "function": _custom_tool,
        "custom": _custom_tool,
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
WISHES = Kinds("tools", "unsupported_parameter", {**NAMED.passed, "allowed_tools": _wishes}, TOOLS.refused)
