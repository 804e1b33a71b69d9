"""Responses: calls that are translated, and their answers."""

from typing import Any

from dgm.gateway.translation.chat import models, one_model, render_error
from dgm.gateway.translation.reading import read_request
from dgm.gateway.translation.responses_tools import (
    describe_tools,
    name_tools,
    with_plain_functions,
    write_call,
)
from dgm.gateway.translation.wire import ParsedCall, Wire, WireAnswer
from dgm.messages import JsonObject, Request, Stop, WireProtocol

INCOMPLETE = {Stop.LENGTH: "max_output_tokens", Stop.REFUSAL: "content_filter"}
"""Reasons of an answer that is incomplete."""


def parse(body: JsonObject) -> ParsedCall:
    """Parse a request's body.

    Raises:
        BadRequest: it cannot be translated.
    """
    plain, tools = with_plain_functions(body)
    request = read_request(WireProtocol.RESPONSES, plain, ("function",))
    return ParsedCall(
        request,
        bool(body.get("stream")),
        stream_usage=True,
        previous=str(body.get("previous_response_id") or ""),
        preface=int(bool(body.get("instructions"))),
        echo={**_echoed_fields(body, request), "tools": describe_tools(tools, request.tools)},
    )


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


WIRE = Wire(
    WireProtocol.RESPONSES,
    "/responses",
    parse,
    write_answer,
    render_error,
    models,
    one_model,
    "resp_",
)


def _echoed_fields(given: JsonObject, request: Request) -> JsonObject:
    """Return the request fields that a response repeats; clients demand some of them."""
    word = request.tool_choice
    return {
        "instructions": given.get("instructions"),
        "max_output_tokens": request.max_output_tokens,
        "parallel_tool_calls": request.parallel,
        "previous_response_id": given.get("previous_response_id"),
        "reasoning": {"effort": request.effort or None, "summary": None},
        "temperature": request.temperature,
        "tool_choice": {"type": "function", "name": word[5:]} if word.startswith("tool:") else word,
        "top_p": request.top_p,
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
    names = name_tools(answer.echo.get("tools", ()))
    items += [write_call(call, names, f"{mark}_{index}") for index, call in enumerate(reply.calls)]
    return items


def _response_status(answer: WireAnswer) -> str:
    return "incomplete" if answer.reply.stop in INCOMPLETE else "completed"
