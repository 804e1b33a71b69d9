"""Answers in Anthropic's messages protocol, whole or as a sequence of events.

A reply's reasoning becomes a thinking block where the request asked for thinking. Its signature is a placeholder: the
gateway keeps the real one, and puts the vendor's own turn back whenever the agent repeats this one.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from dgm.gateway.translation.parsing import JsonObject
from dgm.gateway.translation.wire import WireAnswer
from dgm.messages import CONTEXT_LENGTH, Stop, ToolCall

SIGNATURE = "kept-by-the-gateway"
UNREADABLE = "INVALID_JSON"
"""The single key for a call's input whose text is no JSON object, as the vendor's documentation proposes."""
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
NO_THREADS = "thread_unsupported_request"
"""The one code that the vendor's client looks for: the provider cannot keep this conversation."""
UNKNOWN = "1970-01-01T00:00:00Z"
"""The protocol's date for a model with an unknown release date."""
TOO_LONG = "prompt is too long"
"""The words by which programs recognise this outcome: the protocol has no code for it."""


def render(answer: WireAnswer) -> bytes:
    """Return the body of a whole answer."""
    reason = REASONS[answer.reply.stop]
    return json.dumps(
        _render_message(answer, _render_blocks(answer), reason, answer.reply.usage.output_tokens)
    ).encode()


def render_stream(answer: WireAnswer, _: bool) -> Iterator[bytes]:
    """Return the answer as server-sent events: each block is opened, filled and closed; the stop reason comes last."""
    yield _render_event("message_start", message=_render_message(answer, [], None, 0))
    for index, block in enumerate(_render_blocks(answer)):
        yield _render_event(
            "content_block_start", index=index, content_block={**block, **EMPTY[block["type"]]}
        )
        for delta in _split_block(block):
            yield _render_event("content_block_delta", index=index, delta=delta)
        yield _render_event("content_block_stop", index=index)
    delta = {"stop_reason": REASONS[answer.reply.stop], "stop_sequence": None}
    yield _render_event(
        "message_delta", delta=delta, usage=_render_usage(answer, answer.reply.usage.output_tokens)
    )
    yield _render_event("message_stop")


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


EMPTY: dict[str, JsonObject] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}
"""Initial fields of an empty block, by type."""


def _split_block(block: JsonObject) -> Iterator[JsonObject]:
    match block["type"]:
        case "thinking":
            if block["thinking"]:
                yield {"type": "thinking_delta", "thinking": block["thinking"]}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        case _:
            yield {"type": "text_delta", "text": block["text"]}


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
        given = json.loads(call.arguments, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        given = None
    return given if isinstance(given, dict) else {UNREADABLE: call.arguments}


def _refuse_constant(written: str) -> None:
    raise ValueError(f"{written} is not JSON")


def _render_message(
    answer: WireAnswer, blocks: Sequence[JsonObject], reason: str | None, output: int
) -> JsonObject:
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": _render_usage(answer, output),
    }


def _render_usage(answer: WireAnswer, output: int) -> JsonObject:
    used = answer.reply.usage
    usage: dict[str, Any] = {
        "input_tokens": max(0, used.input_tokens - used.cached_tokens - used.written_tokens),
        "cache_creation_input_tokens": used.written_tokens,
        "cache_read_input_tokens": used.cached_tokens,
        "output_tokens": output,
    }
    if output and used.reasoning_tokens:
        usage["output_tokens_details"] = {"thinking_tokens": used.reasoning_tokens}
    return usage


def _render_event(kind: str, **body: Any) -> bytes:  # noqa: ANN401
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **body})}\n\n".encode()
