"""Answers in OpenAI's responses protocol, whole or as a sequence of events."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

from dgm.gateway.translation.parsing import JsonObject
from dgm.gateway.translation.wire import WireAnswer
from dgm.messages import Stop

INCOMPLETE = {Stop.LENGTH: "max_output_tokens", Stop.REFUSAL: "content_filter"}


def render(answer: WireAnswer) -> bytes:
    """Return the body of a whole answer."""
    return json.dumps(_render_response(answer, _response_status(answer), _render_items(answer))).encode()


def render_stream(answer: WireAnswer, _: bool) -> Iterator[bytes]:
    """Return the answer as server-sent events: each item is opened, filled and closed; the whole answer comes last."""
    numbers = itertools.count()
    for kind, body in _iter_events(answer):
        told = {"type": kind, "sequence_number": next(numbers), **body}
        yield f"event: {kind}\ndata: {json.dumps(told)}\n\n".encode()


def _iter_events(answer: WireAnswer) -> Iterator[tuple[str, dict[str, Any]]]:
    opening = _render_response(answer, "in_progress", [])
    yield "response.created", {"response": opening}
    yield "response.in_progress", {"response": opening}
    items = _render_items(answer)
    for index, item in enumerate(items):
        empty = {**item, **EMPTY[item["type"]]}
        yield "response.output_item.added", {"output_index": index, "item": empty}
        for kind, body in _iter_item_events(item):
            yield kind, {"item_id": item["id"], "output_index": index, **body}
        yield "response.output_item.done", {"output_index": index, "item": item}
    status = _response_status(answer)
    yield f"response.{status}", {"response": _render_response(answer, status, items)}


EMPTY: dict[str, JsonObject] = {
    "message": {"status": "in_progress", "content": []},
    "function_call": {"status": "in_progress", "arguments": ""},
    "reasoning": {"summary": []},
}
"""Initial fields of an empty item, by type."""


def _iter_item_events(item: JsonObject) -> Iterator[tuple[str, dict[str, Any]]]:
    match item["type"]:
        case "message":
            part = item["content"][0]
            at = {"content_index": 0}
            yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
            if part["text"]:
                yield "response.output_text.delta", {**at, "delta": part["text"], "logprobs": []}
            yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
            yield "response.content_part.done", {**at, "part": part}
        case "function_call":
            if item["arguments"]:
                yield "response.function_call_arguments.delta", {"delta": item["arguments"]}
            told = {"name": item["name"], "arguments": item["arguments"]}
            yield "response.function_call_arguments.done", told
        case _:
            part = item["summary"][0]
            at = {"summary_index": 0}
            yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
            yield "response.reasoning_summary_text.delta", {**at, "delta": part["text"]}
            yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {**at, "part": part}


def _render_items(answer: WireAnswer) -> list[dict[str, Any]]:
    reply = answer.reply
    status = _response_status(answer)
    items: list[dict[str, Any]] = []
    mark = answer.id.removeprefix("resp_")
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        items.append({"id": f"rs_{mark}", "type": "reasoning", "summary": summary})
    if reply.text or not reply.calls:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        message = {"id": f"msg_{mark}", "type": "message", "status": status, "role": "assistant"}
        items.append({**message, "content": [part]})
    for index, call in enumerate(reply.calls):
        head = {"id": f"fc_{mark}_{index}", "type": "function_call", "status": "completed"}
        items.append({**head, "call_id": call.id, "name": call.name, "arguments": call.arguments})
    return items


def _response_status(answer: WireAnswer) -> str:
    return "incomplete" if answer.reply.stop in INCOMPLETE else "completed"


def _render_response(answer: WireAnswer, status: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    reason = INCOMPLETE.get(answer.reply.stop)
    ended = status != "in_progress"
    return {
        "id": answer.id,
        "object": "response",
        "created_at": answer.created,
        "completed_at": answer.created if status == "completed" else None,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if ended and reason else None,
        "model": answer.model,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **answer.echo,
        "text": {"format": {"type": "text"}},
        "truncation": "disabled",
        "store": True,
        "metadata": {},
        "usage": _render_usage(answer) if ended else None,
    }


def _render_usage(answer: WireAnswer) -> JsonObject:
    used = answer.reply.usage
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {
            "cached_tokens": used.cached_tokens,
            "cache_write_tokens": used.written_tokens,
        },
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        "total_tokens": used.tokens,
    }
