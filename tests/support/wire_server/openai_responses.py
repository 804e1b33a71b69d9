"""OpenAI's Responses as the provider answers: whole and in numbered events."""

from collections.abc import Iterator
from typing import Any

from dgm.messages import Reply, Stop
from tests.support.wire_server import client_tools, responses_requests
from tests.support.wire_server.errors import OPENAI, Refused
from tests.support.wire_server.openai_chat import REFUSING
from tests.support.wire_server.protocol import CREATED, Asked, JsonObject, Style, Wire, counts, pieces, sign

Events = Iterator[tuple[str, JsonObject | str]]


def render(asked: Asked, reply: Reply, _style: Style) -> dict[str, Any]:
    """The answer in one piece."""
    return _body(asked, reply, _output(asked, reply))


def events(asked: Asked, reply: Reply, style: Style) -> Events:
    """The answer as events with sequence numbers."""
    return _told(asked, reply, _output(asked, reply), style)


def refusal(asked: Asked, _style: Style) -> dict[str, Any]:
    """The model will not."""
    return _body(asked, Reply(REFUSING), [_message(asked, _refusing())])


def refusal_events(asked: Asked, style: Style) -> Events:
    """The same in events."""
    return _told(asked, Reply(REFUSING), [_message(asked, _refusing())], style)


def empty(asked: Asked, _style: Style) -> dict[str, Any]:
    """No output item."""
    return _body(asked, Reply(""), [])


def empty_events(asked: Asked, style: Style) -> Events:
    """The same in events."""
    return _told(asked, Reply(""), [], style)


def error_event(error: Refused) -> tuple[str, JsonObject]:
    """An error in the midst of a stream."""
    code = error.code or error.kind(OPENAI)
    return "error", {
        "type": "error",
        "code": code,
        "message": error.message,
        "param": None,
        "sequence_number": 9,
    }


WIRE = Wire(
    OPENAI,
    responses_requests.parse,
    render,
    events,
    refusal,
    refusal_events,
    empty,
    empty_events,
    error_event,
)


def _output(asked: Asked, reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    status = "incomplete" if reply.stop is Stop.LENGTH else "completed"
    if reply.reasoning:
        name = f"rs_{asked.digest[:32]}"
        item = {
            "id": name,
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": reply.reasoning}],
        }
        if asked.encrypted:
            hidden = reply.reasoning.encode().hex()
            item["encrypted_content"] = f"{hidden}.{sign('reasoning', name, hidden)}"
        items.append(item)
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        items.append({**_message(asked, part), "status": status})
    for index, call in enumerate(reply.calls):
        kind = asked.kinds.get(call.name)
        if kind:
            space = asked.namespaces.get(call.name)
            item = client_tools.responses_item(kind, call, f"{asked.digest[:30]}{index:02d}")
            items.append({**item, "namespace": space} if space else item)
            continue
        items.append(
            {
                "id": f"fc_{asked.digest[:30]}{index:02d}",
                "type": "function_call",
                "status": "completed",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }
        )
    return items


def _message(asked: Asked, part: JsonObject) -> dict[str, Any]:
    name = f"msg_{asked.digest[:32]}"
    return {"id": name, "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def _refusing() -> JsonObject:
    return {"type": "refusal", "refusal": REFUSING}


def _body(asked: Asked, reply: Reply, output: list[dict[str, Any]], status: str = "") -> dict[str, Any]:
    cut = reply.stop is Stop.LENGTH
    done = not status
    used = counts(asked, reply)
    usage = {
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cached, "cache_write_tokens": used.written},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    }
    reason = "content_filter" if reply.stop is Stop.REFUSAL else "max_output_tokens"
    broken = cut or reply.stop is Stop.REFUSAL
    return {
        "id": f"resp_{asked.digest[:40]}",
        "object": "response",
        "created_at": CREATED,
        "status": status or ("incomplete" if broken else "completed"),
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if done and broken else None,
        "model": asked.model,
        "output": output,
        "previous_response_id": None,
        "service_tier": "default",
        "truncation": "disabled",
        "usage": usage if done else None,
        "metadata": {},
        **asked.echo,
    }


def _told(asked: Asked, reply: Reply, output: list[dict[str, Any]], style: Style) -> Events:
    for number, (name, data) in enumerate(_steps(asked, reply, output, style)):
        yield name, {"type": name, "sequence_number": number, **data}


def _steps(
    asked: Asked, reply: Reply, output: list[dict[str, Any]], style: Style
) -> Iterator[tuple[str, JsonObject]]:
    started = _body(asked, reply, [], "in_progress")
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    for index, item in enumerate(output):
        at = {"output_index": index}
        bare = {**item, "status": "in_progress"}
        inner = {"item_id": item["id"], **at}
        match item["type"]:
            case "reasoning":
                bare = {**item, "summary": []}
                steps = _summary(item, inner, style)
            case "message":
                bare["content"] = []
                steps = _part(item["content"][0], inner, style)
            case "custom_tool_call":
                bare["input"] = ""
                steps = client_tools.responses_steps(item, inner, style.piece)
            case kind if kind in client_tools.CALLS:
                steps = client_tools.responses_steps(item, inner, style.piece)
            case _:
                bare["arguments"] = ""
                steps = _arguments(item, inner, style)
        yield "response.output_item.added", {**at, "item": bare}
        yield from steps
        yield "response.output_item.done", {**at, "item": item}
    whole = _body(asked, reply, output)
    yield f"response.{whole['status']}", {"response": whole}


def _summary(item: JsonObject, inner: JsonObject, style: Style) -> Iterator[tuple[str, JsonObject]]:
    for index, part in enumerate(item["summary"]):
        at = {**inner, "summary_index": index}
        yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
        for piece in pieces(part["text"], style.piece):
            yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
        yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**at, "part": part}


def _part(part: JsonObject, inner: JsonObject, style: Style) -> Iterator[tuple[str, JsonObject]]:
    at = {**inner, "content_index": 0}
    key = "text" if part["type"] == "output_text" else "refusal"
    more: JsonObject = {"logprobs": []} if key == "text" else {}
    yield "response.content_part.added", {**at, "part": {**part, key: ""}}
    for piece in pieces(part[key], style.piece):
        yield f"response.{part['type']}.delta", {**at, "delta": piece, **more}
    yield f"response.{part['type']}.done", {**at, key: part[key], **more}
    yield "response.content_part.done", {**at, "part": part}


def _arguments(item: JsonObject, inner: JsonObject, style: Style) -> Iterator[tuple[str, JsonObject]]:
    for piece in pieces(item["arguments"], style.piece):
        yield "response.function_call_arguments.delta", {**inner, "delta": piece}
    told = {**inner, "name": item["name"], "arguments": item["arguments"]}
    yield "response.function_call_arguments.done", told
