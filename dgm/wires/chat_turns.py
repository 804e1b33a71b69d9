"""Requests of Chat Completions: their correction, conversion to neutral form, and writing."""

import json
from collections.abc import Mapping
from typing import Any

from dgm.messages import AnswerForm, JsonObject, Message, Native, Reply, Request, Role, Stop, Tool, ToolCall
from dgm.wires import chat_answer
from dgm.wires.neutral import (
    FAILED,
    as_texts,
    floating,
    same_turn,
    schema_of,
    text_of_parts,
    tool_choice_of,
    tool_of,
    whole_number,
)
from dgm.wires.values import arguments_text, mend_arguments, mend_each, mend_halves, records, texts

VENDOR = "openai-chat"
LIMITS = ("max_completion_tokens", "max_tokens")
REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Keys under which compatible servers put reasoning: DeepSeek and vLLM, vLLM and OpenRouter, OpenRouter."""
_PLAIN_CALL = ("id", "type", "function", "index")
_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.ASSISTANT}


def output_limit(body: JsonObject) -> int | None:
    """Return the largest requested output limit."""
    asked = [number for name in LIMITS if (number := whole_number(body.get(name))) is not None]
    return max(asked, default=None)


def set_output_limit(body: JsonObject, tokens: int) -> JsonObject:
    """Return the body with an output limit; under ``max_tokens`` if it has none, because no server ignores that key."""
    names = [name for name in LIMITS if body.get(name) is not None] or ["max_tokens"]
    return {**body, **dict.fromkeys(names, tokens)}


def choices(body: JsonObject) -> int:
    """Return the requested number of answers."""
    return max(1, whole_number(body.get("n")) or 1)


def mend_request(body: JsonObject) -> JsonObject:
    """Return the body without broken JSON in earlier calls; see ``Wire.mended_request``."""
    return mend_each(mend_halves(body), "messages", _mend_turn)


def read_request(body: JsonObject) -> Request:
    """Return the request in neutral form; never raises."""
    return Request(
        messages=[_read_turn(turn) for turn in records(body.get("messages"))],
        tools=[_read_tool(tool) for tool in records(body.get("tools"))],
        model=str(body.get("model") or ""),
        temperature=floating(body.get("temperature")),
        max_output_tokens=output_limit(body),
        top_p=floating(body.get("top_p")),
        stop=as_texts(body.get("stop")),
        tool_choice=tool_choice_of(body.get("tool_choice")),
        parallel=body.get("parallel_tool_calls") is not False,
        effort=str(body.get("reasoning_effort") or ""),
    )


def read_reply(whole: JsonObject, request: JsonObject) -> Reply:
    """Return the answer's first choice in neutral form; never raises."""
    mended = chat_answer.mend_answer(whole, request)
    choice = next(iter(records(mended.get("choices"))), {})
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    calls = _read_calls(message)
    return Reply(
        _text(message),
        calls,
        chat_answer.stop(mended) if choice else Stop.END,
        chat_answer.usage(mended, request),
        _reasoning(message),
        _native(message),
    )


def write_request(request: Request, model: str) -> JsonObject:
    """Return the body for a neutral request."""
    body: dict[str, Any] = {"model": model, "messages": [_turn(message) for message in request.messages]}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if not request.parallel:
            # Omit the choice when it is the default: some reasoning models refuse the word itself.
            body["parallel_tool_calls"] = False
    if request.tool_choice.startswith("tool:"):
        name = request.tool_choice.removeprefix("tool:")
        body["tool_choice"] = {"type": "function", "function": {"name": name}}
    elif request.tool_choice == "required" or (request.tool_choice == "none" and request.tools):
        body["tool_choice"] = request.tool_choice
    wishes = {
        "max_tokens": request.max_output_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stop": list(request.stop) or None,
        "reasoning_effort": request.effort or None,
        "response_format": _format(request.form),
    }
    body.update({name: value for name, value in wishes.items() if value is not None})
    return body


def _format(form: AnswerForm | None) -> JsonObject | None:
    if form is None:
        return None
    named = {"name": form.name, "schema": form.schema, "strict": True}
    return {"type": "json_schema", "json_schema": named}


def _mend_turn(turn: Any) -> Any:  # noqa: ANN401  (any JSON)
    return mend_each(turn, "tool_calls", _mend_call) if isinstance(turn, dict) else turn


def _mend_call(call: Any) -> Any:  # noqa: ANN401  (any JSON)
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    arguments = mend_arguments(function.get("arguments"))
    if arguments is function.get("arguments"):
        return call
    return {**call, "function": {**function, "arguments": arguments}}


def _read_turn(turn: JsonObject) -> Message:
    role = turn.get("role")
    if role in ("tool", "function"):
        text = text_of_parts(turn.get("content"))
        failed = text.startswith(FAILED)
        return Message(
            Role.TOOL,
            text.removeprefix(FAILED),
            call_id=str(turn.get("tool_call_id") or turn.get("name") or ""),
            failed=failed,
        )
    calls = _read_calls(turn)
    native = _native(turn) if role == "assistant" else None
    return Message(_ROLES.get(str(role), Role.USER), _text(turn), calls, native=native)


def _read_calls(message: JsonObject) -> tuple[ToolCall, ...]:
    given = records(message.get("tool_calls"))
    if not given and isinstance(message.get("function_call"), dict):
        given = [{"id": "", "function": message["function_call"]}]
    return tuple(_read_call(call) for call in given)


def _read_call(call: JsonObject) -> ToolCall:
    inner = call.get("function") or call.get("custom")
    inner = inner if isinstance(inner, dict) else {}
    text = arguments_text(inner.get("arguments", inner.get("input")))
    return ToolCall(str(call.get("id") or ""), str(inner.get("name") or ""), text if text.strip() else "{}")


def _read_tool(tool: JsonObject) -> Tool:
    inner = tool.get("function") or tool.get("custom")
    inner = inner if isinstance(inner, dict) else tool
    return tool_of(inner, "parameters", instead=tool.get("type"))


def _text(message: JsonObject) -> str:
    refusal = message.get("refusal")
    return text_of_parts(message.get("content")) + (refusal if isinstance(refusal, str) else "")


def _reasoning(message: JsonObject) -> str:
    for name in REASONING[:2]:
        text = message.get(name)
        if isinstance(text, str) and text:
            return text
    return texts(message.get("reasoning_details"), "text", "summary")


def _native(message: JsonObject) -> Native | None:
    """Return the turn to send back, with only fields that servers accept; None if the neutral form loses nothing."""
    kept = {name: message[name] for name in REASONING if message.get(name)}
    calls = [
        {name: call[name] for name in call if name != "index"} for call in records(message.get("tool_calls"))
    ]
    if not kept and not any(set(call) - set(_PLAIN_CALL) for call in calls):
        return None
    turn: dict[str, Any] = {"role": "assistant", "content": message.get("content"), **kept}
    if message.get("refusal"):
        turn["refusal"] = message["refusal"]
    if calls:
        turn["tool_calls"] = calls
    return Native(VENDOR, json.dumps(turn))


def _turn(message: Message) -> JsonObject:
    match message.role:
        case Role.ASSISTANT:
            return _assistant(message)
        case Role.TOOL:
            text = FAILED + message.text if message.failed else message.text
            return {"role": "tool", "tool_call_id": message.call_id, "content": text}
        case role:
            return {"role": role.value, "content": message.text}


def _assistant(message: Message) -> JsonObject:
    ours: dict[str, Any] = {"role": "assistant", "content": message.text or (None if message.calls else "")}
    if message.calls:
        ours["tool_calls"] = [write_call(call) for call in message.calls]
    if message.native is None or message.native.vendor != VENDOR:
        return ours
    theirs: dict[str, Any] = json.loads(message.native.data)
    if same_turn(message, _text(theirs), _read_calls(theirs)):
        return theirs
    return {**ours, **{name: theirs[name] for name in REASONING if name in theirs}}


def write_call(call: ToolCall) -> JsonObject:
    """Return a call as an assistant's turn holds it."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool(tool: Tool) -> JsonObject:
    function = {"name": tool.name, "description": tool.description, "parameters": schema_of(tool)}
    return {"type": "function", "function": function}
