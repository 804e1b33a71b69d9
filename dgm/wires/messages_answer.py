"""A whole message of Anthropic's: its validation, its corrections, its usage, and its form as a stream."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.domain import Usage
from dgm.messages import JsonObject, Stop
from dgm.wires.events import ErrorInAnswer, Event, UnusableReply, status_of
from dgm.wires.values import (
    Ids,
    arguments_of,
    characters,
    count_of,
    count_request_chars,
    estimate,
    mend_halves,
    records,
)

CALL = "tool_use"
_STOPS: Mapping[str, Stop] = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "pause_turn": Stop.END,
    "tool_use": Stop.TOOL_CALLS,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "refusal": Stop.REFUSAL,
}
_PIECES = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
    "tool_use": ("input", "input_json_delta", "partial_json"),
    "server_tool_use": ("input", "input_json_delta", "partial_json"),
}
"""Type of a block → its field, the type of its deltas, and their field."""


def call_ids(request: JsonObject) -> Ids:
    """Return the ids of a conversation's calls."""
    blocks = [block for turn in records(request.get("messages")) for block in records(turn.get("content"))]
    return Ids(block.get("id") for block in blocks if block.get("type") == CALL)


def raise_error(event: JsonObject, kind: str) -> None:
    """Raise the error in an event or a whole answer, if there is one.

    Raises:
        ErrorInAnswer: it holds an error.
    """
    error = event.get("error")
    if kind == "error" or error:
        body = event if error else {"type": "error", "error": {**event, "type": "api_error"}}
        raise ErrorInAnswer(body, status_of(error))
    state = event.get("base_resp")
    if isinstance(state, Mapping) and state.get("status_code"):
        told = {"message": state.get("status_msg"), "code": state["status_code"], "type": "api_error"}
        raise ErrorInAnswer({"type": "error", "error": told})


def check(whole: JsonObject) -> None:
    """Raise an error for an invalid whole answer; see ``Wire.check``.

    Raises:
        ErrorInAnswer: it is an error.
        Unreadable: it is no message, it is empty, or a call that is promised is missing.
    """
    raise_error(whole, str(whole.get("type")))
    content, reason = whole.get("content"), whole.get("stop_reason")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        if any(isinstance(whole.get(name), str) and whole[name] for name in ("message", "detail", "msg")):
            raise ErrorInAnswer(whole, status_of(whole))
        raise UnusableReply("the answer holds no content")
    calls = [block for block in records(content) if block.get("type") == CALL]
    if not all(isinstance(call.get("name"), str) and call["name"] for call in calls):
        raise UnusableReply("a tool call of the answer names no tool")
    if reason == "tool_use" and not calls:
        raise UnusableReply("the answer ends in a call of a tool, but holds none", whole)
    if not content and _STOPS.get(str(reason)) not in (Stop.LENGTH, Stop.REFUSAL):
        raise UnusableReply("the answer is empty", whole)


def mend_answer(whole: JsonObject, request: JsonObject) -> JsonObject:
    """Return the answer in a form that the vendor's client can read; see ``Wire.mended``."""
    whole = mend_halves(whole)
    content = whole.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return whole
    ids = call_ids(request)
    ids.reserve(block["id"] for block in records(content) if isinstance(block.get("id"), str))
    read = [mend_block(block, ids) if isinstance(block, dict) else block for block in content]
    fixed: dict[str, Any] = {}
    if content is not whole["content"] or any(new is not old for new, old in zip(read, content, strict=True)):
        fixed["content"] = read
    if not whole.get("stop_reason"):
        fixed["stop_reason"] = end_of(read)
    fixed |= {
        name: value for name, value in (("type", "message"), ("role", "assistant")) if not whole.get(name)
    }
    counts = mend_counts(whole, request)
    if counts is not whole.get("usage"):
        fixed["usage"] = counts
    return {**whole, **fixed} if fixed else whole


def mend_block(block: JsonObject, ids: Ids) -> JsonObject:
    """Return a block with the fields that the vendor's client requires; the same one if it has them."""
    fixed: dict[str, Any] = {}
    kind = block.get("type")
    if not isinstance(kind, str) or not kind:
        kind = fixed["type"] = CALL if "input" in block else "thinking" if "thinking" in block else "text"
    if kind == "text" and not isinstance(block.get("text"), str):
        fixed["text"] = ""
    elif kind == "thinking":
        missing = [name for name in ("thinking", "signature") if not isinstance(block.get(name), str)]
        fixed |= dict.fromkeys(missing, "")
    elif kind in (CALL, "server_tool_use"):
        if kind == CALL and (named := ids.take(block.get("id"))) != block.get("id"):
            fixed["id"] = named
        if not isinstance(block.get("input"), dict):
            fixed["input"] = arguments_of(block.get("input"))
    return {**block, **fixed} if fixed else block


def mend_counts(whole: JsonObject, request: JsonObject) -> JsonObject:
    """Return a message's token counts, estimated where the client requires missing ones."""
    counts = whole.get("usage")
    given: JsonObject = counts if isinstance(counts, dict) else {}
    missing = [name for name in ("input_tokens", "output_tokens") if type(given.get(name)) is not int]
    if not missing:
        return given
    used = usage(whole, request)
    into = max(0, used.input_tokens - used.cached_tokens - used.written_tokens)
    said = {"input_tokens": into, "output_tokens": used.output_tokens}
    return {**given, **{name: said[name] for name in missing}}


def split(whole: JsonObject) -> Sequence[Event]:
    """Return the answer as the events of a stream."""
    counts = whole.get("usage")
    usage_given: JsonObject = counts if isinstance(counts, dict) else {}
    begun = {**whole, "content": [], "stop_reason": None, "stop_sequence": None}
    if usage_given:
        begun["usage"] = {**usage_given, "output_tokens": min(1, count_of(usage_given, "output_tokens"))}
    events: list[JsonObject] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(records(whole.get("content"))):
        field, kind, piece = _PIECES.get(str(block.get("type")), ("", "", ""))
        first, value = dict(block), block.get(field)
        deltas: list[JsonObject] = []
        if value or field == "input":
            first[field] = {} if field == "input" else ""
            text = json.dumps(value, ensure_ascii=False) if field == "input" else value
            deltas.append({"type": kind, piece: text})
        if field == "thinking" and block.get("signature"):
            first["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        events.append({"type": "content_block_start", "index": index, "content_block": first})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ended = {name: whole.get(name) for name in ("stop_reason", "stop_sequence")}
    ended |= {name: whole[name] for name in ("stop_details", "container") if whole.get(name)}
    events.append({"type": "message_delta", "delta": ended, "usage": dict(usage_given)})
    return [Event(event, event["type"]) for event in [*events, {"type": "message_stop"}]]


def usage(whole: JsonObject, request: JsonObject) -> Usage:
    """Return the usage of the call; see ``Wire.usage``. The cache's read and written tokens are added to the input."""
    counts = whole.get("usage")
    given: Mapping[str, Any] = counts if isinstance(counts, Mapping) else {}
    cached = count_of(given, "cache_read_input_tokens")
    kept = given.get("cache_creation")
    kept = kept if isinstance(kept, Mapping) else {}
    written = count_of(given, "cache_creation_input_tokens") or sum(
        count_of(kept, str(name)) for name in kept
    )
    into = count_of(given, "input_tokens") + cached + written
    out = count_of(given, "output_tokens") or estimate(count_content_chars(whole.get("content")))
    thought = count_of(given.get("output_tokens_details"), "thinking_tokens", "reasoning_tokens")
    return Usage(
        calls=1,
        input_tokens=into or estimate(count_request_chars(request)),
        output_tokens=out,
        cached_tokens=cached,
        written_tokens=written,
        reasoning_tokens=min(thought, out),
    )


def count_content_chars(content: object) -> int:
    """Return the number of characters in a content."""
    if isinstance(content, str):
        return len(content)
    said = [
        block.get(name)
        for block in records(content)
        for name in ("text", "thinking", "name", "input", "data")
    ]
    return sum(map(characters, said))


def end_of(content: Sequence[object]) -> str:
    """Return the stop reason that follows from a content."""
    return (
        "tool_use"
        if any(isinstance(one, dict) and one.get("type") == CALL for one in content)
        else "end_turn"
    )


def stop(whole: JsonObject) -> Stop:
    """Return why the message stopped; an unknown reason is replaced by the one that follows from the content."""
    stopped = _STOPS.get(str(whole.get("stop_reason")), Stop.END)
    called = any(block.get("type") == CALL for block in records(whole.get("content")))
    return Stop.TOOL_CALLS if called and stopped is Stop.END else stopped
