"""Raw requests and replies of providers as JSON bytes and back. A request is stored as a difference to another.

A request names the trace of an earlier request, how many of its turns it repeats, and which of its other keys are
unchanged. So the space is linear in the length of the conversation and not quadratic.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from dgm.domain import Digest, Usage
from dgm.messages import JsonObject, Stop, WireProtocol, WireReply, WireRequest

_dump = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
TURNS = {WireProtocol.CHAT: "messages", WireProtocol.RESPONSES: "input", WireProtocol.MESSAGES: "messages"}
"""Protocol → the key of the turns of a conversation."""


@dataclass(frozen=True, slots=True)
class WireBase:
    """An earlier request of the same conversation, and its trace."""

    digest: Digest
    request: WireRequest
    links: int = 0
    """Number of earlier traces that must be read to read this one."""


def is_wire(body: Mapping[str, Any]) -> bool:
    """Return whether the JSON of a trace is a raw request or reply."""
    return "wire" in body


def encode_wire_request(request: WireRequest, base: WireBase | None = None) -> bytes:
    """Return the canonical JSON of a request: equal requests over equal bases give equal bytes."""
    if base and base.request.protocol is not request.protocol:
        base = None
    body = dict(request.body)
    record: dict[str, Any] = {"wire": request.protocol.value, "body": body}
    if request.headers:
        record["headers"] = dict(request.headers)
    if base:
        before = base.request.body
        turns = TURNS[request.protocol]
        kept = _count_common(body.get(turns), before.get(turns))
        same = sorted(
            key
            for key, value in body.items()
            if key != turns and key in before and _is_same_json(before[key], value)
        )
        for key in same:
            del body[key]
        if kept:
            body[turns] = list(body[turns])[kept:]
        record |= {"base": base.digest, "kept": kept, "same": same}
    return _dump(record).encode()


def decode_wire_request(record: Mapping[str, Any], base: WireRequest | None = None) -> WireRequest:
    """Return the request in a trace's JSON, given the request that it builds on.

    Raises:
        ValueError, KeyError, TypeError: the JSON is not a request.
    """
    protocol = WireProtocol(record["wire"])
    body = dict(record["body"])
    if base is not None:
        body |= {key: base.body[key] for key in record["same"]}
        if record["kept"]:
            turns = TURNS[protocol]
            body[turns] = [*base.body[turns][: record["kept"]], *body[turns]]
    return WireRequest(protocol, body, record.get("headers", {}))


def encode_wire_reply(reply: WireReply) -> bytes:
    """Return the canonical JSON of a reply; the bytes of its content are kept unchanged."""
    record: dict[str, Any] = {
        "wire": reply.protocol.value,
        "content": reply.content.decode("utf-8", "surrogateescape"),
        "stream": reply.stream,
        "usage": astuple(reply.usage),
        "stop": reply.stop.value,
    }
    if reply.error:
        record |= {"error": reply.error, "status": reply.status, "own": reply.own}
    return _dump(record).encode()


def decode_wire_reply(record: Mapping[str, Any]) -> WireReply:
    """Return the reply that ``encode_wire_reply`` encoded; raises like ``decode_wire_request``."""
    return WireReply(
        WireProtocol(record["wire"]),
        record["content"].encode("utf-8", "surrogateescape"),
        record["stream"],
        Usage(*record["usage"]),
        Stop(record["stop"]),
        record.get("error", ""),
        record.get("status", 200),
        record.get("own", True),
    )


def _count_common(new: object, old: object) -> int:
    """Return the number of turns that two conversations share at their beginning."""
    if not isinstance(new, list) or not isinstance(old, list):
        return 0
    return _count_equal_turns(new, old)


def _count_equal_turns(new: Sequence[JsonObject], old: Sequence[JsonObject]) -> int:
    shared = 0
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
