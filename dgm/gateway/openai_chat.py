"""OpenAI's chat completions protocol in JSON, to and from ``dgm.messages``.

The requests come from programs that nobody trusts: whatever is not understood is refused, nothing is guessed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dgm.gateway.wire import Answer, BadRequest, Call, Wire
from dgm.messages import Message, Request, Role, Stop, Tool, ToolCall

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
FINISH = {
    Stop.END: "stop",
    Stop.TOOL_CALLS: "tool_calls",
    Stop.LENGTH: "length",
    Stop.REFUSAL: "content_filter",
}
MAX_MESSAGES = 10_000
MAX_TOOLS = 200
MAX_DEPTH = 40
"""Of a tool's schema: what is nested deeper cannot be written again by every JSON library."""
PROVIDER_SIDE = ("web_search_options", "audio")
"""Keys that make the provider reach out, or answer with what is not text."""

JsonObject = Mapping[str, Any]


def parse(body: bytes) -> Call:
    """Reads a request's body.

    Raises:
        BadRequest: it is no chat request, or asks for what is not offered.
    """
    try:
        data = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON", "invalid_json") from error
    record = _object(data, "the body")
    for key in PROVIDER_SIDE:
        if record.get(key) is not None:
            raise BadRequest(f"{key} is not offered here", "unsupported_parameter")
    if record.get("n") not in (None, 1):
        raise BadRequest("n must be 1", "unsupported_parameter")
    messages = _list(record.get("messages"), "messages", MAX_MESSAGES)
    if not messages:
        raise BadRequest("messages must not be empty")
    request = Request(
        messages=tuple(_message(_object(item, f"messages[{at}]"), at) for at, item in enumerate(messages)),
        tools=_tools(record),
        model=_text(record.get("model", "default"), "model"),
        temperature=_temperature(record.get("temperature")),
        max_output_tokens=_output_tokens(record),
    )
    options = record.get("stream_options")
    usage = options is not None and _object(options, "stream_options").get("include_usage") is True
    return Call(request, _flag(record.get("stream"), "stream"), usage)


def render(answer: Answer) -> bytes:
    """The body of an answer that is told at once."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.reply.text or None, "refusal": None}
    if answer.reply.calls:
        message["tool_calls"] = [_call(call) for call in answer.reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": FINISH[answer.reply.stop]}
    body = {**_head(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}
    return json.dumps(body).encode()


def render_stream(answer: Answer, with_usage: bool) -> Iterator[bytes]:
    """The same answer as server-sent events: role, text, one event per tool call, the end."""
    yield _event(answer, {"role": "assistant", "content": ""})
    if answer.reply.text:
        yield _event(answer, {"content": answer.reply.text})
    for index, call in enumerate(answer.reply.calls):
        yield _event(answer, {"tool_calls": [{"index": index, **_call(call)}]})
    yield _event(answer, {}, FINISH[answer.reply.stop])
    if with_usage:
        body = {**_head(answer, "chat.completion.chunk"), "choices": [], "usage": _usage(answer)}
        yield b"data: " + json.dumps(body).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def render_error(status: int, code: str, message: str) -> bytes:
    """The body of a refusal."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


WIRE = Wire("/chat/completions", parse, render, render_stream, render_error)


def _head(answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": answer.id, "object": kind, "created": answer.created, "model": answer.model}


def _usage(answer: Answer) -> JsonObject:
    used = answer.reply.usage
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.tokens,
    }


def _call(call: ToolCall) -> JsonObject:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _event(answer: Answer, delta: JsonObject, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    body = {**_head(answer, "chat.completion.chunk"), "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _message(item: JsonObject, at: int) -> Message:
    place = f"messages[{at}]"
    role = ROLES.get(_text(item.get("role"), f"{place}.role"))
    if role is None:
        raise BadRequest(f"{place}.role must be one of {', '.join(ROLES)}")
    calls: tuple[ToolCall, ...] = ()
    if item.get("tool_calls") is not None:
        if role is not Role.ASSISTANT:
            raise BadRequest(f"{place}.tool_calls: only an assistant calls tools")
        given = _list(item["tool_calls"], f"{place}.tool_calls", MAX_TOOLS)
        calls = tuple(_tool_call(call, f"{place}.tool_calls[{index}]") for index, call in enumerate(given))
    call_id = _text(item.get("tool_call_id"), f"{place}.tool_call_id") if role is Role.TOOL else ""
    content = item.get("content")
    if content is None and role is not Role.ASSISTANT:
        raise BadRequest(f"{place}.content is missing")
    return Message(role, _content(content, f"{place}.content"), calls, call_id)


def _content(content: Any, place: str) -> str:  # noqa: ANN401  (what a stranger's JSON holds)
    if content is None:
        return ""
    if isinstance(content, str):
        return _text(content, place)
    parts = _list(content, place, MAX_MESSAGES)
    return "".join(_part(_object(part, f"{place}[{at}]"), f"{place}[{at}]") for at, part in enumerate(parts))


def _part(part: JsonObject, place: str) -> str:
    kind = part.get("type")
    if kind not in ("text", "refusal"):
        raise BadRequest(f"{place}: only text is accepted, not {str(kind)[:40]!r}", "unsupported_content")
    return _text(part.get(kind), f"{place}.{kind}")


def _tool_call(call: Any, place: str) -> ToolCall:  # noqa: ANN401
    record = _object(call, place)
    function = _object(record.get("function"), f"{place}.function")
    return ToolCall(
        _text(record.get("id"), f"{place}.id"),
        _text(function.get("name"), f"{place}.function.name"),
        _text(function.get("arguments"), f"{place}.function.arguments"),
    )


def _tools(record: JsonObject) -> Sequence[Tool]:
    given = record.get("tools")
    if given is None:
        return ()
    return tuple(_tool(tool, f"tools[{at}]") for at, tool in enumerate(_list(given, "tools", MAX_TOOLS)))


def _tool(tool: Any, place: str) -> Tool:  # noqa: ANN401
    record = _object(tool, place)
    if record.get("type") != "function":
        raise BadRequest(
            f"{place}: only functions are offered here, no tools of a provider", "unsupported_tool"
        )
    function = _object(record.get("function"), f"{place}.function")
    description = function.get("description")
    parameters = function.get("parameters")
    return Tool(
        _text(function.get("name"), f"{place}.function.name"),
        "" if description is None else _text(description, f"{place}.function.description"),
        {} if parameters is None else _schema(parameters, f"{place}.function.parameters"),
    )


def _schema(value: Any, place: str) -> JsonObject:  # noqa: ANN401
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return _object(value, place)
    raise BadRequest(f"{place} is nested deeper than {MAX_DEPTH}")


def _children(value: Any) -> Sequence[Any]:  # noqa: ANN401
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _temperature(value: Any) -> float | None:  # noqa: ANN401
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
        raise BadRequest("temperature must be a number from 0 to 2")
    return float(value)


def _output_tokens(record: JsonObject) -> int | None:
    for key in ("max_completion_tokens", "max_tokens"):
        value = record.get(key)
        if value is not None:
            if type(value) is not int or value < 1:
                raise BadRequest(f"{key} must be a whole number above 0")
            return value
    return None


def _flag(value: Any, place: str) -> bool:  # noqa: ANN401
    if value is not None and not isinstance(value, bool):
        raise BadRequest(f"{place} must be true or false")
    return bool(value)


def _text(value: Any, place: str) -> str:  # noqa: ANN401
    if not isinstance(value, str):
        raise BadRequest(f"{place} must be a text")
    # JSON can spell half a surrogate pair, which no file and no socket takes.
    return value.encode("utf-8", "replace").decode()


def _object(value: Any, place: str) -> JsonObject:  # noqa: ANN401
    if not isinstance(value, dict):
        raise BadRequest(f"{place} must be an object")
    return value


def _list(value: Any, place: str, most: int) -> Sequence[Any]:  # noqa: ANN401
    if not isinstance(value, list):
        raise BadRequest(f"{place} must be a list")
    if len(value) > most:
        raise BadRequest(f"{place} has {len(value)} entries; at most {most} are accepted")
    return value
