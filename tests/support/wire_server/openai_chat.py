"""OpenAI's Chat Completions as the provider speaks it: what it accepts, and how it answers."""

import re
from collections.abc import Iterator
from typing import Any

from dgm.messages import Message, Reply, Request, Role, Stop, Tool, ToolCall
from tests.support.wire_server import checks, client_tools, structured
from tests.support.wire_server.errors import OPENAI, Refused
from tests.support.wire_server.protocol import CREATED, Asked, JsonObject, Style, Wire, counts, pieces

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
REFUSING = "I'm sorry, but I can't help with that."


def parse(data: JsonObject, digest: str) -> Asked:
    """Reads a request.

    Raises:
        Refused: as the provider would.
    """
    checks.only(data, KNOWN)
    model = checks.text(data.get("model"), "model")
    messages = checks.listed(data.get("messages"), "messages")
    if not messages:
        raise Refused(400, "Invalid 'messages': empty array.", "empty_array", "messages")
    turns = tuple(_message(checks.record(m, f"messages[{at}]"), at) for at, m in enumerate(messages))
    _matched(turns)
    if data.get("n") not in (None, 1):
        raise Refused(400, "Invalid 'n': this server gives one choice.", "invalid_value", "n")
    stream = data.get("stream") is True
    options = data.get("stream_options")
    if options is not None and not stream:
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise Refused(400, message, param="stream_options")
    tools = _tools(data)
    request = Request(
        messages=turns,
        tools=tools,
        model=model,
        temperature=checks.number(data.get("temperature"), "temperature", 2),
        max_output_tokens=_limit(data),
        top_p=checks.number(data.get("top_p"), "top_p", 1),
        stop=_stop(data.get("stop")),
        tool_choice=choice(data.get("tool_choice"), tools),
        parallel=data.get("parallel_tool_calls") is not False,
        effort=data.get("reasoning_effort") or "",
    )
    usage = options is not None and checks.record(options, "stream_options").get("include_usage") is True
    kinds = {tool.name: client_tools.CUSTOM for tool in tools if tool.name in _customs(data)}
    return Asked(request, model, digest, stream, usage, kinds=kinds, schema=structured.chat(data))


def choice(value: Any, tools: tuple[Tool, ...]) -> str:
    """The neutral word for a ``tool_choice`` of either OpenAI endpoint."""
    if value is None:
        return "auto"
    if not tools:
        raise Refused(400, "'tool_choice' is only allowed when 'tools' are specified.", param="tool_choice")
    if isinstance(value, dict):
        name = (value.get("function") or value.get("custom") or value).get("name", value.get("type"))
        if name not in {tool.name for tool in tools}:
            raise Refused(400, f"Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice")
        return f"tool:{name}"
    if value not in ("auto", "none", "required"):
        raise Refused(400, f"Invalid value: '{value}'.", "invalid_value", "tool_choice")
    return str(value)


def function(record: JsonObject, place: str) -> Tool:
    """A function that is offered."""
    name = checks.text(record.get("name"), f"{place}.name")
    if not NAME.fullmatch(name):
        message = f"Invalid '{place}.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'."
        raise Refused(400, message, "invalid_value", f"{place}.name")
    parameters = record.get("parameters") or {}
    if parameters and parameters.get("type") != "object":
        message = f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"'."
        raise Refused(400, message, "invalid_function_parameters", f"{place}.parameters")
    if record.get("strict") is True:
        structured.strict(parameters, f"function '{name}'", f"{place}.parameters")
    return Tool(name, record.get("description") or "", parameters)


def render(asked: Asked, reply: Reply, style: Style) -> dict[str, Any]:
    """The answer in one piece."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.text or None,
        "refusal": None,
        "annotations": [],
    }
    if reply.reasoning:
        message[style.reasoning_key] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [client_tools.chat_call(asked.kinds.get(c.name, ""), c) for c in reply.calls]
    return _body(asked, reply, message, FINISH[reply.stop])


def events(asked: Asked, reply: Reply, style: Style) -> Iterator[tuple[str, JsonObject | str]]:
    """The answer as chunks: role, reasoning, text, calls, the end, the usage."""
    yield _chunk(asked, {"role": "assistant", "content": "", "refusal": None})
    for piece in pieces(reply.reasoning, style.piece):
        yield _chunk(asked, {style.reasoning_key: piece})
    for piece in pieces(reply.text, style.piece):
        yield _chunk(asked, {"content": piece})
    for index, call in enumerate(reply.calls):
        kind = asked.kinds.get(call.name, "")
        first = client_tools.chat_call(kind, call, "")
        yield _chunk(asked, {"tool_calls": [{"index": index, **first}]})
        for piece in pieces(call.arguments, style.piece):
            more = client_tools.chat_piece(kind, piece)
            yield _chunk(asked, {"tool_calls": [{"index": index, **more}]})
    yield from _end(asked, reply, FINISH[reply.stop])


def refusal(asked: Asked, _style: Style) -> dict[str, Any]:
    """The model will not."""
    message: JsonObject = {"role": "assistant", "content": None, "refusal": REFUSING, "annotations": []}
    return _body(asked, Reply(REFUSING), message, "stop")


def refusal_events(asked: Asked, style: Style) -> Iterator[tuple[str, JsonObject | str]]:
    """The same in chunks."""
    yield _chunk(asked, {"role": "assistant", "content": None, "refusal": ""})
    for piece in pieces(REFUSING, style.piece):
        yield _chunk(asked, {"refusal": piece})
    yield from _end(asked, Reply(REFUSING), "stop")


def empty(asked: Asked, _style: Style) -> dict[str, Any]:
    """No choice."""
    return {**_head(asked, "chat.completion"), "choices": [], "usage": _usage(asked, Reply(""))}


def empty_events(asked: Asked, _style: Style) -> Iterator[tuple[str, JsonObject | str]]:
    """Chunks without a choice."""
    yield "", {**_head(asked, "chat.completion.chunk"), "choices": []}
    yield "", "[DONE]"


def error_event(error: Refused) -> tuple[str, JsonObject]:
    """An error in the midst of a stream."""
    return "", error.record(OPENAI, "")


WIRE = Wire(OPENAI, parse, render, events, refusal, refusal_events, empty, empty_events, error_event)


def _body(asked: Asked, reply: Reply, message: JsonObject, finish: str) -> dict[str, Any]:
    first = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {**_head(asked, "chat.completion"), "choices": [first], "usage": _usage(asked, reply)}


def _head(asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{asked.digest[:24]}",
        "object": kind,
        "created": CREATED,
        "model": asked.model,
        "service_tier": "default",
        "system_fingerprint": "fp_" + asked.digest[24:34],
    }


def _usage(asked: Asked, reply: Reply) -> JsonObject:
    used = counts(asked, reply)
    return {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": used.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _chunk(asked: Asked, delta: JsonObject, finish: str | None = None) -> tuple[str, JsonObject]:
    first = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    usage = {"usage": None} if asked.stream_usage else {}
    return "", {**_head(asked, "chat.completion.chunk"), "choices": [first], **usage}


def _end(asked: Asked, reply: Reply, finish: str) -> Iterator[tuple[str, JsonObject | str]]:
    yield _chunk(asked, {}, finish)
    if asked.stream_usage:
        yield "", {**_head(asked, "chat.completion.chunk"), "choices": [], "usage": _usage(asked, reply)}
    yield "", "[DONE]"


def _message(item: JsonObject, at: int) -> Message:
    place = f"messages[{at}]"
    name = item.get("role")
    role = ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        raise Refused(400, f"Invalid value: '{name}'.", "invalid_value", f"{place}.role")
    calls: tuple[ToolCall, ...] = ()
    if role is Role.ASSISTANT and item.get("tool_calls") is not None:
        given = checks.listed(item["tool_calls"], f"{place}.tool_calls")
        if not given:
            message = f"Invalid '{place}.tool_calls': empty array. Expected an array with minimum length 1."
            raise Refused(400, message, "empty_array", f"{place}.tool_calls")
        calls = tuple(_call(checks.record(c, place), f"{place}.tool_calls[{i}]") for i, c in enumerate(given))
    content = item.get("content")
    if content is None and not (role is Role.ASSISTANT and (calls or item.get("refusal"))):
        message = "Invalid value for 'content': expected a string, got null."
        raise Refused(400, message, param=f"messages.[{at}].content")
    call_id = checks.text(item.get("tool_call_id"), f"{place}.tool_call_id") if role is Role.TOOL else ""
    return Message(role, _content(content, f"{place}.content"), calls, call_id)


def _call(call: JsonObject, place: str) -> ToolCall:
    if call.get("type") == client_tools.CUSTOM:
        given = checks.record(call.get("custom"), f"{place}.custom")
        return ToolCall(
            checks.text(call.get("id"), f"{place}.id"),
            checks.text(given.get("name"), f"{place}.custom.name"),
            checks.text(given.get("input"), f"{place}.custom.input"),
        )
    if call.get("type") != "function":
        raise Refused(
            400, f"Missing required parameter: '{place}.type'.", "missing_required_parameter", place
        )
    inner = checks.record(call.get("function"), f"{place}.function")
    return ToolCall(
        checks.text(call.get("id"), f"{place}.id"),
        checks.text(inner.get("name"), f"{place}.function.name"),
        checks.text(inner.get("arguments"), f"{place}.function.arguments"),
    )


def _content(content: Any, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = [checks.record(part, place) for part in checks.listed(content, place)]
    for at, part in enumerate(parts):
        if part.get("type") not in ("text", "refusal"):
            raise Refused(
                400, f"Invalid value: '{part.get('type')}'.", "invalid_value", f"{place}[{at}].type"
            )
    return "".join(checks.text(part.get(part["type"]), place) for part in parts)


def _matched(turns: tuple[Message, ...]) -> None:
    """Each call is answered right after it, and nothing else is."""
    waiting: list[str] = []
    known: set[str] = set()
    for at, turn in enumerate(turns):
        if turn.role is Role.TOOL:
            if turn.call_id not in known:
                message = (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message "
                    "with 'tool_calls'."
                )
                raise Refused(400, message, param=f"messages.[{at}].role")
            waiting = [name for name in waiting if name != turn.call_id]
            continue
        _all_answered(waiting, at)
        waiting = [call.id for call in turn.calls]
        known = set(waiting)
    _all_answered(waiting, len(turns))


def _all_answered(waiting: list[str], at: int) -> None:
    if waiting:
        message = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
        )
        raise Refused(400, message, param=f"messages.[{at}].role")


def _tools(data: JsonObject) -> tuple[Tool, ...]:
    given = data.get("tools")
    if given is None:
        if data.get("parallel_tool_calls") is not None:
            message = "'parallel_tool_calls' is only allowed when 'tools' are specified."
            raise Refused(400, message, param="parallel_tool_calls")
        return ()
    found = []
    for at, tool in enumerate(checks.listed(given, "tools")):
        record = checks.record(tool, f"tools[{at}]")
        if record.get("type") == client_tools.CUSTOM:
            inner = checks.record(record.get("custom"), f"tools[{at}].custom")
            found.append(client_tools.custom(inner, f"tools[{at}].custom"))
            continue
        if record.get("type") != "function":
            raise Refused(
                400, f"Invalid value: '{record.get('type')}'.", "invalid_value", f"tools[{at}].type"
            )
        inner = checks.record(record.get("function"), f"tools[{at}].function")
        found.append(function(inner, f"tools[{at}].function"))
    if not found:
        raise Refused(400, "Invalid 'tools': empty array. Expected minimum length 1.", "empty_array", "tools")
    return tuple(found)


def _customs(data: JsonObject) -> set[str]:
    return {tool["custom"]["name"] for tool in data.get("tools") or () if tool["type"] == client_tools.CUSTOM}


def _limit(data: JsonObject) -> int | None:
    given = [key for key in ("max_tokens", "max_completion_tokens") if data.get(key) is not None]
    if len(given) == 2:
        message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        raise Refused(400, message, "invalid_parameter_combination")
    return checks.whole(data[given[0]], given[0]) if given else None


def _stop(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    stops = [value] if isinstance(value, str) else checks.listed(value, "stop")
    if len(stops) > 4:
        raise Refused(
            400, "Invalid 'stop': array too long. Expected at most 4.", "array_above_max_length", "stop"
        )
    return tuple(checks.text(stop, "stop") for stop in stops)
