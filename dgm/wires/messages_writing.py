"""Writing of a neutral request for Anthropic's Messages: alternating turns, results first, and cache marks."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dgm.messages import JsonObject, Message, Request, RequestRefused, Role, Tool, ToolCall
from dgm.wires.messages_turns import REASONING, VENDOR
from dgm.wires.values import arguments_of

_OPENING = "(The conversation begins here.)"
_SILENT_FAILURE = "The tool failed and said nothing."
_EFFORTS: Mapping[str, str] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_OUTPUT_TOKENS = 8_192
"""Output limit for a request without one; the protocol requires it."""
_MARK: Mapping[str, str] = {"type": "ephemeral"}

Block = dict[str, Any]
Turn = dict[str, Any]


def write_request(request: Request, model: str) -> JsonObject:
    """Return the body for a neutral request.

    Raises:
        RequestRefused: there is nothing to answer, or the protocol has no word for the effort.
    """
    turns = _turns(request.messages)
    system = "\n\n".join(m.text for m in request.messages if m.role is Role.SYSTEM and m.text.strip())
    arguments: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_output_tokens or _OUTPUT_TOKENS,
        "messages": turns,
    }
    tools = [_tool(tool) for tool in request.tools]
    if system:
        arguments["system"] = [{"type": "text", "text": system, "cache_control": _MARK}]
    elif tools:
        # A mark covers everything before it, and tools precede the system's text.
        tools[-1]["cache_control"] = _MARK
    _mark_users(turns)
    if tools:
        arguments["tools"] = tools
        if choice := _choice(request):
            arguments["tool_choice"] = choice
    wishes = {
        "stop_sequences": list(request.stop) or None,
        "temperature": request.temperature,
        "top_p": request.top_p,
    }
    arguments.update({name: value for name, value in wishes.items() if value is not None})
    output: dict[str, Any] = {}
    if request.effort == "none":
        arguments["thinking"] = {"type": "disabled"}
    elif request.effort:
        output["effort"] = _map_effort(request.effort)
    if request.form:
        output["format"] = {"type": "json_schema", "schema": request.form.schema}
    return {**arguments, "output_config": output} if output else arguments


def text_of(content: Iterable[Mapping[str, Any]]) -> str:
    """Return the visible text of blocks."""
    return "".join(block["text"] for block in content if block["type"] == "text")


def _map_effort(wanted: str) -> str:
    if wanted not in _EFFORTS:
        known = ", ".join(("none", *_EFFORTS))
        raise RequestRefused("invalid_request", f"effort '{wanted}' is none of {known}")
    return _EFFORTS[wanted]


def _choice(request: Request) -> dict[str, Any] | None:
    kind, _, name = request.tool_choice.partition(":")
    choice: dict[str, Any]
    match kind:
        case "none":
            return {"type": "none"}
        case "required":
            choice = {"type": "any"}
        case "tool":
            choice = {"type": "tool", "name": name}
        case _ if request.parallel:
            return None
        case _:
            choice = {"type": "auto"}
    if not request.parallel:
        choice["disable_parallel_tool_use"] = True
    return choice


def _tool(tool: Tool) -> Block:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": {"type": "object", **tool.parameters}}


def _turns(messages: Iterable[Message]) -> list[Turn]:
    turns: list[Turn] = []
    for message in messages:
        if message.role is Role.SYSTEM or not (blocks := _blocks(message)):
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if not turns:
        raise RequestRefused("invalid_request", "the conversation holds no text to answer")
    if turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": [_text(_OPENING)]})
    for turn in turns:
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    last = turns[-1]
    if last["role"] == "assistant" and last["content"][-1]["type"] == "text":
        # A turn that the model is to continue must not end in a blank.
        last["content"][-1] = _text(last["content"][-1]["text"].rstrip())
    return turns


def _blocks(message: Message) -> list[Block]:
    match message.role:
        case Role.ASSISTANT:
            return _assistant(message)
        case Role.TOOL:
            return [_result(message)]
        case _:
            return _texts(message.text)


def _result(message: Message) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": _id(message.call_id)}
    if message.text.strip():
        block["content"] = message.text
    elif message.failed:
        block["content"] = _SILENT_FAILURE
    if message.failed:
        block["is_error"] = True
    return block


def _assistant(message: Message) -> list[Block]:
    own = [*_texts(message.text), *map(_call, message.calls)]
    native = _native(message)
    if native and _is_unchanged(message, native):
        blocks = [block for block in native if block["type"] != "text" or block["text"].strip()]
    else:
        blocks = [*(block for block in native if block["type"] in REASONING), *own]
    # Reasoning that was cut off has no signature yet, and a turn may not end in reasoning.
    while blocks and blocks[-1]["type"] in REASONING:
        blocks.pop()
    return blocks


def _native(message: Message) -> Sequence[Block]:
    if message.native is None or message.native.vendor != VENDOR:
        return ()
    content: list[Block] = json.loads(message.native.data)
    return content


def _is_unchanged(message: Message, native: Sequence[Block]) -> bool:
    calls = [(block["id"], block["name"], block["input"]) for block in native if block["type"] == "tool_use"]
    ours = [(call.id, call.name, arguments_of(call.arguments)) for call in message.calls]
    return message.text == text_of(native) and ours == calls


def _call(call: ToolCall) -> Block:
    return {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": arguments_of(call.arguments)}


def _id(given: str) -> str:
    """Return an id that this protocol accepts; ids of other vendors' calls may have more characters."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", given)


def _texts(text: str) -> list[Block]:
    return [_text(text)] if text.strip() else []


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _mark_users(turns: Sequence[Turn]) -> None:
    """Mark the ends of the conversation's common prefix with the next call, and with the last one."""
    users = [turn for turn in turns if turn["role"] == "user"]
    for turn in users[-2:]:
        block = turn["content"][-1]
        if block["type"] == "text" or "content" in block:
            block["cache_control"] = _MARK
