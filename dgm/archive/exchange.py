"""Model requests and replies as JSON bytes and back. A request is stored as the difference to an earlier one.

A conversation grows by a few messages per call but is sent whole each time. Storing it whole would take space quadratic
in its length. So a request names the trace of an earlier request and how many of its messages it repeats.
"""

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from dgm.archive.traces import name_of
from dgm.bounded_reading import parse_json
from dgm.domain import Digest, Usage
from dgm.errors import ArchiveCorrupt
from dgm.messages import Message, Native, Reply, Request, Role, Stop, Tool, ToolCall

_dump = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class RequestBase:
    """An earlier request of the same conversation, and its trace."""

    digest: Digest
    request: Request
    links: int = 0
    """Number of earlier traces that must be read to read this one."""


def encode_request(request: Request, base: RequestBase | None = None) -> bytes:
    """Return the canonical JSON of a request: equal requests over equal bases give equal bytes."""
    kept = _count_common(request.messages, base.request.messages) if base else 0
    body: dict[str, Any] = {
        "model": request.model,
        "temperature": request.temperature,
        "max_output_tokens": request.max_output_tokens,
        "messages": [_message_body(message) for message in request.messages[kept:]],
    }
    body |= _set_options(request)
    if base:
        body |= {"base": base.digest, "kept": kept}
    if not base or tuple(base.request.tools) != tuple(request.tools):
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ]
    return _dump(body).encode()


def base_of(data: bytes) -> Digest | None:
    """Return the trace that must be read before this one can be decoded.

    Raises:
        ArchiveCorrupt: the bytes are not a request.
    """
    try:
        base = parse_json(data).get("base")
    except (ValueError, AttributeError) as error:
        raise ArchiveCorrupt(f"trace {name_of(data)} is not a request: {error!r}") from error
    return Digest(str(base)) if base else None


def decode_request(data: bytes, base: Request | None = None) -> Request:
    """Return the request that ``encode_request`` encoded, given the request that ``base_of`` names.

    Raises:
        ValueError, KeyError, TypeError: the bytes are not a request.
    """
    body = parse_json(data)
    kept = tuple(base.messages[: body["kept"]]) if base else ()
    if "tools" in body:
        tools = tuple(Tool(tool["name"], tool["description"], tool["parameters"]) for tool in body["tools"])
    else:
        tools = tuple(base.tools) if base else ()
    return Request(
        (*kept, *(_read_message(message) for message in body["messages"])),
        tools,
        body["model"],
        body["temperature"],
        body["max_output_tokens"],
        body.get("top_p"),
        tuple(body.get("stop", ())),
        body.get("tool_choice", "auto"),
        body.get("parallel", True),
        body.get("effort", ""),
    )


def encode_reply(reply: Reply) -> bytes:
    """Return the canonical JSON of a reply."""
    body: dict[str, Any] = {
        "text": reply.text,
        "calls": [_call_body(call) for call in reply.calls],
        "stop": reply.stop.value,
        "usage": astuple(reply.usage),
    }
    if reply.reasoning:
        body["reasoning"] = reply.reasoning
    if reply.native:
        body["native"] = astuple(reply.native)
    if reply.error:
        body["error"] = reply.error
    return _dump(body).encode()


def decode_reply(data: bytes) -> Reply:
    """Return the reply that ``encode_reply`` encoded; raises like ``decode_request``."""
    body = parse_json(data)
    return Reply(
        body["text"],
        _read_calls(body["calls"]),
        Stop(body["stop"]),
        Usage(*body["usage"]),
        body.get("reasoning", ""),
        _read_native(body),
        body.get("error", ""),
    )


def _set_options(request: Request) -> dict[str, Any]:
    """Return the rarely used options that the request sets."""
    options = {
        "top_p": (request.top_p, None),
        "stop": (request.stop, ()),
        "tool_choice": (request.tool_choice, "auto"),
        "parallel": (request.parallel, True),
        "effort": (request.effort, ""),
    }
    return {name: value for name, (value, default) in options.items() if value != default}


def _read_native(body: dict[str, Any]) -> Native | None:
    return Native(*body["native"]) if "native" in body else None


def _count_common(new: Sequence[Message], old: Sequence[Message]) -> int:
    for n, (one, other) in enumerate(zip(new, old, strict=False)):
        if one != other:
            return n
    return min(len(new), len(old))


def _call_body(call: ToolCall) -> list[str]:
    return [call.id, call.name, call.arguments]


def _read_calls(bodies: Sequence[Sequence[str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(*body) for body in bodies)


def _message_body(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role.value, "text": message.text}
    if message.calls:
        body["calls"] = [_call_body(call) for call in message.calls]
    if message.call_id:
        body["call_id"] = message.call_id
    if message.failed:
        body["failed"] = True
    if message.native:
        body["native"] = astuple(message.native)
    return body


def _read_message(body: dict[str, Any]) -> Message:
    return Message(
        Role(body["role"]),
        body["text"],
        _read_calls(body.get("calls", ())),
        body.get("call_id", ""),
        body.get("failed", False),
        _read_native(body),
    )
