"""Answers in OpenAI's responses protocol."""

from typing import Any

from dgm.gateway.translation.wire import WireAnswer
from dgm.messages import JsonObject, Stop

INCOMPLETE = {Stop.LENGTH: "max_output_tokens", Stop.REFUSAL: "content_filter"}


def write_answer(answer: WireAnswer) -> JsonObject:
    """Return the whole answer."""
    used, reason = answer.reply.usage, INCOMPLETE.get(answer.reply.stop)
    return {
        "id": answer.id,
        "object": "response",
        "created_at": answer.created,
        "completed_at": None if reason else answer.created,
        "status": _response_status(answer),
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": answer.model,
        "output": _render_items(answer),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **answer.echo,
        "text": {"format": {"type": "text"}},
        "truncation": "disabled",
        "store": True,
        "metadata": {},
        "usage": {
            "input_tokens": used.input_tokens,
            "input_tokens_details": {
                "cached_tokens": used.cached_tokens,
                "cache_write_tokens": used.written_tokens,
            },
            "output_tokens": used.output_tokens,
            "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
            "total_tokens": used.tokens,
        },
    }


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
