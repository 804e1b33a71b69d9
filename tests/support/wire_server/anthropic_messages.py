"""Anthropic's Messages as the provider answers: whole and in events."""

import json
from collections.abc import Iterator
from typing import Any

from dgm.messages import Reply, Stop, ToolCall
from tests.support.wire_server import anthropic_requests
from tests.support.wire_server.brain import REDACTED
from tests.support.wire_server.errors import ANTHROPIC, BrainFault, Refused
from tests.support.wire_server.protocol import Asked, JsonObject, Style, Wire, counts, pieces, sign

STOP = {Stop.END: "end_turn", Stop.TOOL_CALLS: "tool_use", Stop.LENGTH: "max_tokens", Stop.REFUSAL: "refusal"}


def render(asked: Asked, reply: Reply, _style: Style) -> dict[str, Any]:
    """The answer in one piece."""
    return _body(asked, reply, _content(reply), STOP[reply.stop])


def events(asked: Asked, reply: Reply, style: Style) -> Iterator[tuple[str, JsonObject | str]]:
    """The answer as events, a ``ping`` among them."""
    return _told(asked, reply, STOP[reply.stop], style)


def refusal(asked: Asked, _style: Style) -> dict[str, Any]:
    """The model will not."""
    return {**_body(asked, Reply(""), [], "refusal"), "stop_details": _details()}


def refusal_events(asked: Asked, style: Style) -> Iterator[tuple[str, JsonObject | str]]:
    """The same in events."""
    return _told(asked, Reply(""), "refusal", style)


def empty(asked: Asked, _style: Style) -> dict[str, Any]:
    """No content, and a stop as if there was."""
    return _body(asked, Reply(""), [], "end_turn")


def empty_events(asked: Asked, style: Style) -> Iterator[tuple[str, JsonObject | str]]:
    """The same in events."""
    return _told(asked, Reply(""), "end_turn", style)


def error_event(error: Refused) -> tuple[str, JsonObject]:
    """An error in the midst of a stream."""
    return "error", error.record(ANTHROPIC, "req_in_stream")


WIRE = Wire(
    ANTHROPIC,
    anthropic_requests.parse,
    render,
    events,
    refusal,
    refusal_events,
    empty,
    empty_events,
    error_event,
)


def _content(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning and reply.native == REDACTED:
        hidden = reply.reasoning.encode().hex()
        blocks.append({"type": "redacted_thinking", "data": f"{hidden}.{sign('redacted', hidden)}"})
    elif reply.reasoning:
        signature = sign("thinking", reply.reasoning)
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": signature})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text, "citations": None})
    called = [{"type": "tool_use", "id": c.id, "name": c.name, "input": _input(c)} for c in reply.calls]
    return blocks + called


def _input(call: ToolCall) -> Any:
    try:
        found = json.loads(call.arguments)
    except ValueError as error:
        raise BrainFault(
            f"this wire carries objects as arguments only, not {call.arguments[:60]!r}"
        ) from error
    if not isinstance(found, dict):
        raise BrainFault(f"this wire carries objects as arguments only, not {call.arguments[:60]!r}")
    return found


def _body(asked: Asked, reply: Reply, content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    return {
        "id": f"msg_{asked.digest[:24]}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _usage(asked, reply),
    }


def _usage(asked: Asked, reply: Reply) -> dict[str, Any]:
    used = counts(asked, reply)
    return {
        "input_tokens": used.input - used.cached - used.written,
        "cache_creation_input_tokens": used.written,
        "cache_read_input_tokens": used.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": used.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": used.output,
        "output_tokens_details": {"thinking_tokens": used.reasoning},
        "service_tier": "standard",
    }


def _details() -> JsonObject:
    return {"type": "refusal", "category": "general_harms", "explanation": "The request was declined."}


def _told(asked: Asked, reply: Reply, stop: str, style: Style) -> Iterator[tuple[str, JsonObject | str]]:
    content = _content(reply)
    start = _body(asked, reply, [], None)
    usage = start["usage"]
    start["usage"] = {**usage, "output_tokens": 1, "output_tokens_details": None}
    yield "message_start", {"type": "message_start", "message": start}
    arguments = iter(reply.calls)
    for index, block in enumerate(content):
        text = next(arguments).arguments if block["type"] == "tool_use" else ""
        for name, data in _block(block, text, style):
            yield name, {"type": name, "index": index, **data}
        if index == 0:
            yield "ping", {"type": "ping"}
    delta: dict[str, Any] = {"stop_reason": stop, "stop_sequence": None}
    if stop == "refusal":
        delta["stop_details"] = _details()
    told = {key: value for key, value in usage.items() if key not in ("cache_creation", "service_tier")}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": told}
    yield "message_stop", {"type": "message_stop"}


def _block(block: dict[str, Any], arguments: str, style: Style) -> Iterator[tuple[str, JsonObject]]:
    deltas: list[JsonObject] = []
    first: dict[str, Any]
    match block["type"]:
        case "thinking":
            first = {"type": "thinking", "thinking": "", "signature": ""}
            deltas += [
                {"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"], style.piece)
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "text":
            first = {**block, "text": ""}
            deltas += [{"type": "text_delta", "text": p} for p in pieces(block["text"], style.piece)]
        case "tool_use":
            first = {**block, "input": {}}
            parts = ["", *pieces(arguments, style.piece)]
            deltas += [{"type": "input_json_delta", "partial_json": p} for p in parts]
        case _:
            first = block
    yield "content_block_start", {"content_block": first}
    for delta in deltas:
        yield "content_block_delta", {"delta": delta}
    yield "content_block_stop", {}
