"""OpenAI's Chat Completions as the provider speaks it: what it accepts, and how it answers."""

import re
from typing import Any

from dgm.messages import Message, Reply, Request, Role, Stop, Tool, ToolCall
from tests.support.wire_server.protocol import (
    CREATED,
    OPENAI,
    REFUSING,
    Asked,
    Events,
    JsonObject,
    Refused,
    Style,
    Wire,
    check_answer_format,
    check_answered,
    counts,
    listed,
    need,
    number,
    only,
    pieces,
    record,
    strict_objects,
    text,
    whole,
)

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
_PARAMETERS = """
messages model stream stream_options tools tool_choice parallel_tool_calls temperature top_p stop n
max_tokens max_completion_tokens reasoning_effort seed user store metadata response_format logprobs
top_logprobs frequency_penalty presence_penalty logit_bias service_tier prompt_cache_key
safety_identifier verbosity modalities prediction prompt_cache_options prompt_cache_retention
"""
KNOWN = frozenset(_PARAMETERS.split())
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FINISH = {
    Stop.END: "stop",
    Stop.TOOL_CALLS: "tool_calls",
    Stop.LENGTH: "length",
    Stop.REFUSAL: "content_filter",
}


def parse(data: JsonObject, digest: str) -> Asked:
    """Read a request.

    Raises:
        Refused: as the provider would.
    """
    only(data, KNOWN)
    need(data.get("n") in (None, 1), "Invalid 'n': this server gives one choice.")
    messages = listed(data.get("messages"), "messages")
    need(messages, "Invalid 'messages': empty array.")
    turns = tuple(_message(record(m, f"messages[{at}]"), f"messages[{at}]") for at, m in enumerate(messages))
    check_answered(turns, at_once=True)
    check_answer_format(data.get("response_format"))
    stream, options = data.get("stream") is True, data.get("stream_options")
    need(options is None or stream, "The 'stream_options' parameter needs 'stream'.")
    offered = _tools(data)
    tools = tuple(tool for tool, _ in offered)
    limits = [key for key in ("max_tokens", "max_completion_tokens") if data.get(key) is not None]
    need(len(limits) < 2, "Setting 'max_tokens' and 'max_completion_tokens' is not supported.")
    stop = data.get("stop") or []
    request = Request(
        messages=turns,
        tools=tools,
        model=text(data.get("model"), "model"),
        temperature=number(data, "temperature", 2),
        max_output_tokens=whole(data[limits[0]], limits[0]) if limits else None,
        top_p=number(data, "top_p", 1),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        tool_choice=choice(data.get("tool_choice"), tools),
        parallel=data.get("parallel_tool_calls") is not False,
        effort=data.get("reasoning_effort") or "",
    )
    need(len(request.stop) <= 4, "Invalid 'stop': expected at most 4.")
    usage = options is not None and options.get("include_usage") is True
    kinds = {tool.name: kind for tool, kind in offered if kind == "custom"}
    return Asked(request, request.model, digest, stream, usage, kinds=kinds)


def choice(value: Any, tools: tuple[Tool, ...]) -> str:
    """Return the neutral word for a ``tool_choice`` of either OpenAI endpoint."""
    if value is None:
        return "auto"
    need(tools, "'tool_choice' is only allowed when 'tools' are specified.")
    if isinstance(value, dict):
        name = (value.get("function") or value.get("custom") or value).get("name", value.get("type"))
        need(name in {tool.name for tool in tools}, f"Tool choice '{name}' not found in 'tools'.")
        return f"tool:{name}"
    need(value in ("auto", "none", "required"), f"Invalid tool_choice: '{value}'.")
    return str(value)


def function(data: JsonObject, place: str) -> Tool:
    """Read a function that is offered."""
    name = text(data.get("name"), f"{place}.name")
    need(NAME.fullmatch(name), f"Invalid '{place}.name': expected '^[a-zA-Z0-9_-]+$'.")
    parameters = data.get("parameters") or {}
    need(not parameters or parameters.get("type") == "object", f"Invalid schema for function '{name}'.")
    if data.get("strict") is True:
        strict_objects(parameters, all_required=True)
    return Tool(name, data.get("description") or "", parameters)


def render(asked: Asked, reply: Reply, style: Style) -> dict[str, Any]:
    """Return the answer in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_shown(asked, call, call.arguments) for call in reply.calls]
    return _body(asked, reply, message, FINISH[reply.stop])


def events(asked: Asked, reply: Reply, style: Style) -> Events:
    """Yield chunks: role, reasoning, text, calls, the end, the usage."""
    yield _chunk(asked, {"role": "assistant", "content": "", "refusal": None})
    for piece in pieces(reply.reasoning, style.piece):
        yield _chunk(asked, {"reasoning_content": piece})
    for piece in pieces(reply.text, style.piece):
        yield _chunk(asked, {"content": piece})
    for index, call in enumerate(reply.calls):
        yield _chunk(asked, {"tool_calls": [{"index": index, **_shown(asked, call, "")}]})
        for piece in pieces(call.arguments, style.piece):
            custom = asked.kinds.get(call.name) == "custom"
            more = {"custom": {"input": piece}} if custom else {"function": {"arguments": piece}}
            yield _chunk(asked, {"tool_calls": [{"index": index, **more}]})
    yield from _end(asked, reply, FINISH[reply.stop])


def refusal(asked: Asked, style: Style) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "refusal": REFUSING}
    return _body(asked, Reply(REFUSING), message, "stop")


def refusal_events(asked: Asked, style: Style) -> Events:
    yield _chunk(asked, {"role": "assistant", "content": None, "refusal": ""})
    for piece in pieces(REFUSING, style.piece):
        yield _chunk(asked, {"refusal": piece})
    yield from _end(asked, Reply(REFUSING), "stop")


def empty(asked: Asked) -> dict[str, Any]:
    return {**_head(asked, "chat.completion"), "choices": [], "usage": _usage(asked, Reply(""))}


def empty_events(asked: Asked, style: Style) -> Events:
    yield "", {**_head(asked, "chat.completion.chunk"), "choices": []}
    yield "", "[DONE]"


def error_event(error: Refused) -> tuple[str, JsonObject]:
    return "", error.record(OPENAI, "")


WIRE = Wire(OPENAI, parse, render, events, refusal, refusal_events, empty, empty_events, error_event)


def _body(asked: Asked, reply: Reply, message: JsonObject, finish: str) -> dict[str, Any]:
    first = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {**_head(asked, "chat.completion"), "choices": [first], "usage": _usage(asked, reply)}


def _head(asked: Asked, kind: str) -> dict[str, Any]:
    name = f"chatcmpl-{asked.digest[:24]}"
    return {"id": name, "object": kind, "created": CREATED, "model": asked.model, "service_tier": "default"}


def _usage(asked: Asked, reply: Reply) -> JsonObject:
    used = counts(asked, reply)
    return {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning, "audio_tokens": 0},
    }


def _chunk(asked: Asked, delta: JsonObject, finish: str | None = None) -> tuple[str, JsonObject]:
    first = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    usage = {"usage": None} if asked.stream_usage else {}
    return "", {**_head(asked, "chat.completion.chunk"), "choices": [first], **usage}


def _end(asked: Asked, reply: Reply, finish: str) -> Events:
    yield _chunk(asked, {}, finish)
    if asked.stream_usage:
        yield "", {**_head(asked, "chat.completion.chunk"), "choices": [], "usage": _usage(asked, reply)}
    yield "", "[DONE]"


def _shown(asked: Asked, call: ToolCall, arguments: str) -> dict[str, Any]:
    if asked.kinds.get(call.name) == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _message(item: JsonObject, place: str) -> Message:
    role = ROLES.get(str(item.get("role")))
    need(role, f"Invalid value: '{item.get('role')}'.")
    assert role
    given = item.get("tool_calls") if role is Role.ASSISTANT else None
    need(given is None or listed(given, f"{place}.tool_calls"), f"Invalid '{place}.tool_calls': empty array.")
    calls = tuple(_call(record(call, place), f"{place}.tool_calls") for call in given or ())
    content = item.get("content")
    silent = role is Role.ASSISTANT and (calls or item.get("refusal"))
    need(content is not None or silent, "Invalid value for 'content': expected a string, got null.")
    call_id = text(item.get("tool_call_id"), f"{place}.tool_call_id") if role is Role.TOOL else ""
    if isinstance(content, list):
        kinds = [record(part, place).get("type") for part in content]
        need(set(kinds) <= {"text", "refusal"}, f"Invalid parts of '{place}': {kinds}.")
        content = "".join(text(part.get(part["type"]), place) for part in content)
    return Message(role, text(content or "", place), calls, call_id)


def _call(call: JsonObject, place: str) -> ToolCall:
    kind, key = ("custom", "input") if call.get("type") == "custom" else ("function", "arguments")
    need(call.get("type") == kind, f"Missing required parameter: '{place}.type'.")
    inner = record(call.get(kind), f"{place}.{kind}")
    name, arguments = text(inner.get("name"), f"{place}.name"), text(inner.get(key), f"{place}.{key}")
    return ToolCall(text(call.get("id"), f"{place}.id"), name, arguments)


def _tools(data: JsonObject) -> list[tuple[Tool, str]]:
    """Return each tool and its type."""
    given = data.get("tools")
    if given is None:
        need(data.get("parallel_tool_calls") is None, "'parallel_tool_calls' needs 'tools'.")
        return []
    need(listed(given, "tools"), "Invalid 'tools': empty array.")
    tools = []
    for tool in given:
        kind = record(tool, "tools").get("type")
        need(kind in ("custom", "function"), f"Invalid tool: '{kind}'.")
        inner = record(tool.get(kind), f"tools.{kind}")
        tools.append((custom(inner) if kind == "custom" else function(inner, "tools"), kind))
    return tools


def custom(data: JsonObject) -> Tool:
    """Read a free-text tool of either OpenAI endpoint."""
    form = (data.get("format") or {"type": "text"}).get("type")
    need(form in ("text", "grammar"), f"Invalid format of a tool: '{form}'.")
    return Tool(text(data.get("name"), "tools.name"), data.get("description") or "")
