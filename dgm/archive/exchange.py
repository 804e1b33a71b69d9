"""Model requests and replies as JSON and back. A request is stored as the difference to an earlier one.

A conversation grows by a few turns per call but is sent whole each time. Storing it whole would take space quadratic in
its length. So a request names an earlier one, how many of its turns it repeats, and which other keys are unchanged.
Exchanges with a provider are kept as the JSON that was sent and received (``wire`` names its protocol). Exchanges of
models without a wire protocol (the offline model, plug-ins) are kept in dgm's own form.
"""

import json
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

from dgm.bounded_reading import parse_json
from dgm.domain import Usage
from dgm.messages import (
    Message,
    Native,
    Reply,
    Request,
    Role,
    Stop,
    Tool,
    ToolCall,
    WireProtocol,
    WireReply,
    WireRequest,
)

AnyRequest = Request | WireRequest
AnyReply = Reply | WireReply
Record = dict[str, Any]
"""The JSON of a request or a reply."""
TURNS = {WireProtocol.CHAT: "messages", WireProtocol.RESPONSES: "input", WireProtocol.MESSAGES: "messages"}
"""Protocol → the key of the turns of a conversation."""
_OPTIONS = {"top_p": None, "stop": (), "tool_choice": "auto", "parallel": True, "effort": ""}
"""Options of a request in dgm's own form that are left out at their defaults."""
dump = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def request_record(request: AnyRequest) -> Record:
    """Return the whole JSON of a request."""
    if isinstance(request, WireRequest):
        headers = {"headers": dict(request.headers)} if request.headers else {}
        return {"wire": request.protocol.value, "body": dict(request.body), **headers}
    options = {name: getattr(request, name) for name in _OPTIONS}
    body = {
        "model": request.model,
        "temperature": request.temperature,
        "max_output_tokens": request.max_output_tokens,
        "messages": [_message_body(message) for message in request.messages],
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ],
        **{name: value for name, value in options.items() if value != _OPTIONS[name]},
    }
    return {"body": body}


def read_request(record: Record) -> AnyRequest:
    """Return the request in its whole JSON.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the JSON is not a request.
    """
    body = record["body"]
    if "wire" in record:
        return WireRequest(WireProtocol(record["wire"]), dict(body), record.get("headers", {}))
    options = {name: body.get(name, default) for name, default in _OPTIONS.items()}
    return Request(
        tuple(map(_read_message, body["messages"])),
        tuple(Tool(tool["name"], tool["description"], tool["parameters"]) for tool in body["tools"]),
        body["model"],
        body["temperature"],
        body["max_output_tokens"],
        **{**options, "stop": tuple(options["stop"])},
    )


def shorten(record: Record, base: Record, name: int) -> Record:
    """Return a request without what it shares with an earlier one of the same protocol, ``name``."""
    if record.get("wire") != base.get("wire"):
        return record
    body, before, turns = record["body"], base["body"], _turns_of(record)
    kept = _count_common(body.get(turns), before.get(turns))
    same = sorted(
        key for key in body if key != turns and key in before and _is_same_json(before[key], body[key])
    )
    rest = {key: value for key, value in body.items() if key not in same}
    if kept:
        rest[turns] = rest[turns][kept:]
    return {**record, "body": rest, "base": name, "kept": kept, "same": same}


def complete(record: Record, base: Record) -> Record:
    """Return a whole request, given the one that it builds on; raises like ``read_request``."""
    body, before, turns = dict(record["body"]), base["body"], _turns_of(record)
    body |= {key: before[key] for key in record["same"]}
    if record["kept"]:
        body[turns] = [*before[turns][: record["kept"]], *body[turns]]
    return {**record, "body": body}


def encode_reply(reply: AnyReply) -> bytes:
    """Return the JSON of a reply; the bytes of a provider's are kept unchanged."""
    record: Record = {"usage": astuple(reply.usage), "stop": reply.stop.value}
    if isinstance(reply, WireReply):
        record["wire"] = reply.protocol.value
        record["content"] = reply.content.decode("utf-8", "surrogateescape")
        record["stream"] = reply.stream
        if reply.error:
            record |= {"error": reply.error, "status": reply.status, "own": reply.own}
        return dump(record).encode()
    record |= {"text": reply.text, "calls": list(map(astuple, reply.calls))}
    native = astuple(reply.native) if reply.native else None
    more = {"reasoning": reply.reasoning, "native": native, "error": reply.error}
    return dump(record | {key: value for key, value in more.items() if value}).encode()


def decode_reply(data: bytes) -> AnyReply:
    """Return the reply that ``encode_reply`` encoded; raises like ``read_request``."""
    record = parse_json(data)
    usage, stop, error = Usage(*record["usage"]), Stop(record["stop"]), record.get("error", "")
    if "wire" in record:
        content = record["content"].encode("utf-8", "surrogateescape")
        end = (error, record.get("status", 200), record.get("own", True))
        return WireReply(WireProtocol(record["wire"]), content, record["stream"], usage, stop, *end)
    calls, native = _read_calls(record["calls"]), _read_native(record)
    return Reply(record["text"], calls, stop, usage, record.get("reasoning", ""), native, error)


def _turns_of(record: Record) -> str:
    return TURNS[WireProtocol(record["wire"])] if "wire" in record else "messages"


def _message_body(message: Message) -> Record:
    body: Record = {"role": message.role.value, "text": message.text}
    if message.calls:
        body["calls"] = [[call.id, call.name, call.arguments] for call in message.calls]
    if message.call_id:
        body["call_id"] = message.call_id
    if message.failed:
        body["failed"] = True
    if message.native:
        body["native"] = astuple(message.native)
    return body


def _read_message(body: Record) -> Message:
    return Message(
        Role(body["role"]),
        body["text"],
        _read_calls(body.get("calls", ())),
        body.get("call_id", ""),
        body.get("failed", False),
        _read_native(body),
    )


def _read_calls(bodies: list[list[str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(*body) for body in bodies)


def _read_native(body: Mapping[str, Any]) -> Native | None:
    return Native(*body["native"]) if body.get("native") else None


def _count_common(new: object, old: object) -> int:
    """Return the number of turns that two conversations share at their beginning."""
    shared = 0
    if isinstance(new, list) and isinstance(old, list):
        for one, other in zip(new, old, strict=False):
            if not _is_same_json(one, other):
                break
            shared += 1
    return shared


def _is_same_json(one: object, other: object) -> bool:
    """Return whether two JSON values have the same JSON text; Python treats 1, 1.0 and true as equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _is_same_json(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_json, one, other))
    return type(one) is type(other) and one == other
