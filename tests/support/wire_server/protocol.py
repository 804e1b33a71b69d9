"""Shared by the endpoints: requests as a provider understands them, tokens, refusals, and strict reading."""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dgm.messages import Message, Reply, Request, Role, Stop

OPENAI, ANTHROPIC = "openai", "anthropic"
TYPES = {
    OPENAI: {429: "requests", **dict.fromkeys((500, 502, 503, 529), "server_error")},
    ANTHROPIC: {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        409: "conflict_error",
        413: "request_too_large",
        429: "rate_limit_error",
        **dict.fromkeys((500, 502, 503), "api_error"),
        **dict.fromkeys((408, 504), "timeout_error"),
        529: "overloaded_error",
    },
}
"""Kinds of errors by status; ``invalid_request_error`` for others."""
SECRET = b"only this server signs with it"
CREATED = 1_760_000_000
"""Unix time of every answer: nothing here depends on a clock."""
EMPTY = Reply("")
"""An answer with nothing in it."""
REFUSED = Reply("I'm sorry, but I can't help with that.", stop=Stop.REFUSAL)
"""An answer in which the model refuses."""

JsonObject = Mapping[str, Any]
Events = Iterator[tuple[str, JsonObject | str]]
"""Name (empty: none) and data of server-sent events."""


class BrainFault(Exception):
    """A test's brain replied what a wire cannot carry: a mistake in the test."""


@dataclass(eq=False)
class Refused(Exception):
    """A request that gets an error for an answer."""

    status: int
    message: str
    code: str | None = None
    param: str | None = None
    type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    """Of Anthropic's errors."""
    raw: bytes = b""
    """The complete body, where it is another vendor's."""

    def kind(self, vendor: str) -> str:
        return self.type or TYPES[vendor].get(self.status, "invalid_request_error")

    def body(self, vendor: str, request_id: str) -> bytes:
        return self.raw or json.dumps(self.record(vendor, request_id)).encode()

    def record(self, vendor: str, request_id: str) -> JsonObject:
        """Return the error as this vendor writes it."""
        error = {"type": self.kind(vendor), "message": self.message}
        if vendor == ANTHROPIC:
            error |= {"details": self.details} if self.details else {}  # type: ignore[dict-item]
            return {"type": "error", "error": error, "request_id": request_id}
        return {"error": {**error, "param": self.param, "code": self.code}}


@dataclass(frozen=True, slots=True)
class Asked:
    """A well-formed call."""

    request: Request
    model: str
    digest: str
    stream: bool = False
    body: JsonObject = field(default_factory=dict)
    reasoned: bool = False
    """True unless the assistant's last turn called tools and came back without its reasoning."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Types of the tools by name."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens as a provider counts them: cached, written and reasoning ones are parts of input and output."""

    input: int
    output: int
    cached: int = 0
    written: int = 0
    reasoning: int = 0


# Strict reading


def need(holds: object, message: str, code: str | None = "invalid_value") -> None:
    """Refuse a request that breaks a rule."""
    if not holds:
        raise Refused(400, message, code)


def only(data: JsonObject, known: frozenset[str]) -> None:
    """Refuse a parameter that the endpoint does not have."""
    for key in data:
        need(key in known, f"Unknown parameter: '{key}'.", "unknown_parameter")


def strict_objects(schema: Any, *, all_required: bool) -> None:
    """Refuse a schema that strict modes do not take."""
    if isinstance(schema, list):
        for part in schema:
            strict_objects(part, all_required=all_required)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        need(closed, "Invalid schema: 'additionalProperties' must be false.", "invalid_json_schema")
        missing = set(schema.get("properties") or ()) - set(schema.get("required") or ())
        need(
            not (all_required and missing), f"Invalid schema: not required: {missing}", "invalid_json_schema"
        )
    strict_objects(list(schema.values()), all_required=all_required)


def check_answered(turns: tuple[Message, ...], *, at_once: bool) -> None:
    """Refuse results of unknown calls and calls without a result; ``at_once``: before the next turn."""
    waiting: list[str] = []
    known: set[str] = set()
    for turn in turns:
        if turn.role is Role.TOOL:
            need(turn.call_id in known, f"No tool call found for the result of {turn.call_id}.")
            waiting = [name for name in waiting if name != turn.call_id]
            continue
        need(not (at_once and waiting), f"Tool calls without response messages: {', '.join(waiting)}")
        known = {call.id for call in turn.calls} | (set() if at_once else known)
        waiting += [call.id for call in turn.calls]
    need(not waiting, f"No tool output found for function call {', '.join(waiting)}.")


# Answers


def digest_of(path: str, body: bytes) -> str:
    """Return a name of a request by its content."""
    return hashlib.sha256(path.encode() + b"\0" + body).hexdigest()


def sign(*parts: str) -> str:
    """Return a signature that no client can make."""
    return hmac.new(SECRET, json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def signed(signature: object, *parts: str) -> bool:
    """Return whether ``sign`` made a signature."""
    return isinstance(signature, str) and hmac.compare_digest(signature, sign(*parts))


def sse(name: str, data: JsonObject | str) -> bytes:
    """Return a server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def pieces(content: str, size: int) -> Iterator[str]:
    """Cut a text into parts of ``size`` characters."""
    return (content[at : at + size] for at in range(0, len(content), size))


def size(request: Request) -> int:
    """Return the characters of the messages and of the tools."""
    turns = request.messages
    calls = [call for turn in turns for call in turn.calls]
    total = sum(len(turn.text) for turn in turns) + sum(
        len(call.arguments) + len(call.name) for call in calls
    )
    return total + sum(len(tool.name) + len(tool.description) for tool in request.tools)


def counts(asked: Asked, reply: Reply) -> Counts:
    """Return the tokens of a call: the brain's count where it made one, else of the texts."""
    used = reply.usage
    sent = used.input_tokens or max(1, size(asked.request) // 4)
    written = len(reply.text) + len(reply.reasoning) + sum(len(call.arguments) for call in reply.calls)
    output = used.output_tokens or max(1, written // 4)
    reasoning = min(output, used.reasoning_tokens or len(reply.reasoning) // 4)
    return Counts(sent, output, used.cached_tokens, used.written_tokens, reasoning)
