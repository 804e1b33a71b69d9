"""Anthropic's Messages: calls that are translated, and their answers.

A reply's reasoning becomes a thinking block where the request asked for thinking. Its signature is a placeholder: the
gateway keeps the real one, and puts the vendor's own turn back whenever the agent repeats this one.
"""

import json
from collections.abc import Sequence
from typing import Any

from dgm.gateway.translation.reading import read_request, refuse_constant
from dgm.gateway.translation.wire import NO_THREADS, ParsedCall, Wire, WireAnswer
from dgm.messages import CONTEXT_LENGTH, JsonObject, Stop, ToolCall, WireProtocol
from dgm.wires.messages_turns import UNREADABLE

SIGNATURE = "kept-by-the-gateway"
REASONS = {
    # Not every provider says whether a stop sequence ended the text, so no answer here does.
    Stop.END: "end_turn",
    Stop.TOOL_CALLS: "tool_use",
    Stop.LENGTH: "max_tokens",
    Stop.REFUSAL: "refusal",
}
KINDS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
UNKNOWN = "1970-01-01T00:00:00Z"
"""The protocol's date for a model with an unknown release date."""
TOO_LONG = "prompt is too long"
"""The words by which programs recognise this outcome: the protocol has no code for it."""


def parse(body: JsonObject) -> ParsedCall:
    """Parse a request's body.

    Raises:
        BadRequest: it cannot be translated.
    """
    request = read_request(WireProtocol.MESSAGES, body, (None, "custom"))
    thinking = body.get("thinking")
    display = ""
    if isinstance(thinking, dict) and thinking.get("type") != "disabled":
        display = str(thinking.get("display") or "summarized")
    return ParsedCall(request, bool(body.get("stream")), stream_usage=True, echo={"thinking": display})


def write_answer(answer: WireAnswer) -> JsonObject:
    """Return the whole answer."""
    used = answer.reply.usage
    usage: dict[str, Any] = {
        "input_tokens": max(0, used.input_tokens - used.cached_tokens - used.written_tokens),
        "cache_creation_input_tokens": used.written_tokens,
        "cache_read_input_tokens": used.cached_tokens,
        "output_tokens": used.output_tokens,
    }
    if used.output_tokens and used.reasoning_tokens:
        usage["output_tokens_details"] = {"thinking_tokens": used.reasoning_tokens}
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": _render_blocks(answer),
        "stop_reason": REASONS[answer.reply.stop],
        "stop_sequence": None,
        "usage": usage,
    }


def render_error(status: int, code: str, message: str) -> bytes:
    """Return the body of a refusal."""
    kind = KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    if code == CONTEXT_LENGTH and TOO_LONG not in message:
        message = f"{TOO_LONG}: {message}"
    error: dict[str, Any] = {"type": kind, "message": message}
    if code == NO_THREADS:
        error["details"] = {"error_code": code, "unsupported": ["thread"]}
    return json.dumps({"type": "error", "error": error}).encode()


def models(names: Sequence[str]) -> bytes:
    """Return the body of a list of models."""
    data = [_describe_model(name) for name in names]
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return json.dumps({"data": data, "has_more": False, **ends}).encode()


def one_model(name: str) -> bytes:
    """Return the body that describes one model."""
    return json.dumps(_describe_model(name)).encode()


def _describe_model(name: str) -> JsonObject:
    return {"type": "model", "id": name, "display_name": name, "created_at": UNKNOWN, "lifecycle": "active"}


def _render_blocks(answer: WireAnswer) -> list[dict[str, Any]]:
    reply = answer.reply
    blocks: list[dict[str, Any]] = []
    display = answer.echo.get("thinking")
    if reply.reasoning and display:
        shown = "" if display == "omitted" else reply.reasoning
        blocks.append({"type": "thinking", "thinking": shown, "signature": SIGNATURE})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _parse_arguments(call)}
        for call in reply.calls
    ]
    return blocks


def _parse_arguments(call: ToolCall) -> JsonObject:
    if not call.arguments.strip():
        return {}
    try:
        given = json.loads(call.arguments, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        given = None
    return given if isinstance(given, dict) else {UNREADABLE: call.arguments}


WIRE = Wire(
    WireProtocol.MESSAGES,
    "/messages",
    parse,
    write_answer,
    render_error,
    models,
    one_model,
    "msg_",
)
