"""Tools whose form the provider knows and whose work the client does: shells, editors, patches, free-text tools.

Inside, each is a ``Tool`` like any other, and a call's arguments are its JSON; a custom tool's are its bare text.
"""

import json
from collections.abc import Iterator
from typing import Any

from dgm.messages import Message, Role, Tool, ToolCall
from tests.support.wire_server import checks
from tests.support.wire_server.errors import BrainFault, Refused
from tests.support.wire_server.protocol import JsonObject, pieces

CUSTOM = "custom"
RESPONSES = {CUSTOM: "", "shell": "action", "apply_patch": "operation", "local_shell": "action"}
"""Types of Responses' tools, and the key that holds the arguments of their calls."""
PREFIXES = {CUSTOM: "ctc", "shell": "sh", "apply_patch": "apc", "local_shell": "lsh"}
"""Of the ids of their items."""
CALLS = {f"{kind}_tool_call" if kind == CUSTOM else f"{kind}_call": kind for kind in RESPONSES}
"""Types of Responses' items that call them, and the tool's type."""
MESSAGES = {
    "bash_20241022": "bash",
    "bash_20250124": "bash",
    "text_editor_20241022": "str_replace_editor",
    "text_editor_20250124": "str_replace_editor",
    "text_editor_20250429": "str_replace_based_edit_tool",
    "text_editor_20250728": "str_replace_based_edit_tool",
    "memory_20250818": "memory",
}
"""Types of Messages' tools, and the only name that each may have."""


def messages_tool(tool: JsonObject, at: int) -> Tool:
    """A tool of Messages that has a type of its own."""
    kind = str(tool.get("type"))
    if kind not in MESSAGES:
        raise Refused(400, f"tools.{at}: Input tag '{kind}' found is not offered by this server")
    if tool.get("name") != MESSAGES[kind]:
        raise Refused(400, f"tools.{at}.{kind}.name: Input should be '{MESSAGES[kind]}'")
    if "input_schema" in tool or "description" in tool:
        raise Refused(400, f"tools.{at}.{kind}.input_schema: Extra inputs are not permitted")
    return Tool(MESSAGES[kind], "")


def custom(record: JsonObject, place: str) -> Tool:
    """A free-text tool of either OpenAI endpoint."""
    name = checks.text(record.get("name"), f"{place}.name")
    form = record.get("format")
    if form is not None and checks.record(form, f"{place}.format").get("type") not in ("text", "grammar"):
        raise Refused(400, f"Invalid value: '{form.get('type')}'.", "invalid_value", f"{place}.format.type")
    return Tool(name, record.get("description") or "")


def responses_tool(record: JsonObject, place: str) -> Tool | None:
    """A tool of Responses that its client works; ``None`` where it is of another type."""
    kind = record.get("type")
    if kind == CUSTOM:
        return custom(record, place)
    if kind not in RESPONSES:
        return None
    where = (record.get("environment") or {"type": "local"}).get("type")
    if where != "local":
        message = f"Invalid value: '{where}'. This server has no containers."
        raise Refused(400, message, "invalid_value", f"{place}.environment.type")
    return Tool(str(kind), "")


def responses_call(item: JsonObject, place: str) -> ToolCall:
    """A call that comes back with the conversation."""
    kind = CALLS[item["type"]]
    name = item.get("id")
    if name is not None and not str(name).startswith(PREFIXES[kind]):
        message = f"Invalid '{place}.id': '{name}'. Expected an ID that begins with '{PREFIXES[kind]}'."
        raise Refused(400, message, "invalid_value", f"{place}.id")
    call_id = checks.text(item.get("call_id"), f"{place}.call_id")
    if kind == CUSTOM:
        text = checks.text(item.get("input"), f"{place}.input")
        return ToolCall(call_id, checks.text(item.get("name"), f"{place}.name"), text)
    key = RESPONSES[kind]
    return ToolCall(call_id, kind, json.dumps(checks.record(item.get(key), f"{place}.{key}")))


def responses_result(item: JsonObject, place: str) -> Message:
    """A tool's output, as each type of tool has it."""
    kind = CALLS[str(item["type"]).removesuffix("_output")]
    # A local shell's output names the call by `id`.
    call_id = item.get("call_id") or (item.get("id") if kind == "local_shell" else None)
    output = item.get("output")
    failed = False
    if kind == "shell":
        output = "".join(
            _streams(checks.record(one, place), place) for one in checks.listed(output, f"{place}.output")
        )
    elif kind == "apply_patch":
        if item.get("status") not in ("completed", "failed"):
            raise Refused(400, f"Missing required parameter: '{place}.status'.", param=f"{place}.status")
        failed = item["status"] == "failed"
        output = output or ""
    elif not isinstance(output, str):
        parts = checks.listed(output, f"{place}.output")
        output = "".join(checks.text(checks.record(part, place).get("text"), place) for part in parts)
    text = checks.text(output, f"{place}.output")
    return Message(Role.TOOL, text, call_id=checks.text(call_id, f"{place}.call_id"), failed=failed)


def _streams(part: JsonObject, place: str) -> str:
    if checks.record(part.get("outcome"), f"{place}.outcome").get("type") not in ("exit", "timeout"):
        raise Refused(400, f"Invalid value for '{place}.output.outcome.type'.", "invalid_value")
    return checks.text(part.get("stdout"), place) + checks.text(part.get("stderr"), place)


def responses_item(kind: str, call: ToolCall, ending: str) -> dict[str, Any]:
    """A call of a tool of that type, as Responses shows it; ``ending`` ends the item's id."""
    head = {"id": f"{PREFIXES[kind]}_{ending}", "status": "completed", "call_id": call.id}
    if kind == CUSTOM:
        return {**head, "type": "custom_tool_call", "name": call.name, "input": call.arguments}
    return {**head, "type": f"{kind}_call", RESPONSES[kind]: _arguments(call)}


def responses_steps(item: JsonObject, inner: JsonObject, piece: int) -> Iterator[tuple[str, JsonObject]]:
    """Events between an item's first and last one: only a custom tool's text comes in pieces."""
    if item["type"] != "custom_tool_call":
        return
    for part in pieces(item["input"], piece):
        yield "response.custom_tool_call_input.delta", {**inner, "delta": part}
    yield "response.custom_tool_call_input.done", {**inner, "input": item["input"]}


def chat_call(kind: str, call: ToolCall, text: str | None = None) -> dict[str, Any]:
    """A call as Chat shows it; ``text`` is told in place of its arguments."""
    given = call.arguments if text is None else text
    if kind == CUSTOM:
        return {"id": call.id, "type": CUSTOM, CUSTOM: {"name": call.name, "input": given}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": given}}


def chat_piece(kind: str, text: str) -> JsonObject:
    """Some of a call's arguments, in a chunk of Chat."""
    return {CUSTOM: {"input": text}} if kind == CUSTOM else {"function": {"arguments": text}}


def _arguments(call: ToolCall) -> Any:
    try:
        return json.loads(call.arguments)
    except ValueError as error:
        raise BrainFault(f"a call of {call.name} takes JSON, not {call.arguments[:60]!r}") from error
