"""OpenAI's Responses as the provider speaks it: what it accepts, and how it answers."""

import json
from collections.abc import Sequence
from typing import Any

from dgm.messages import Message, Reply, Request, Role, Stop, Tool, ToolCall
from tests.support.wire_server.chat import ROLES, choice, custom, function
from tests.support.wire_server.protocol import (
    CREATED,
    OPENAI,
    REFUSING,
    Asked,
    Events,
    JsonObject,
    Refused,
    Style,
    Wire,
    check_answer_format,
    check_answered,
    counts,
    listed,
    need,
    number,
    only,
    pieces,
    record,
    sign,
    signed,
    text,
    whole,
)

_PARAMETERS = """
model input instructions stream stream_options tools tool_choice parallel_tool_calls temperature
top_p max_output_tokens max_tool_calls reasoning include store metadata text truncation
previous_response_id service_tier user prompt_cache_key prompt_cache_retention safety_identifier
background top_logprobs prompt_cache_options
"""
KNOWN = frozenset(_PARAMETERS.split())
CLIENT_TOOLS = {
    "shell": ("action", "sh"),
    "apply_patch": ("operation", "apc"),
    "local_shell": ("action", "lsh"),
}
"""Tools whose form the provider knows and whose work the client does: key of the arguments, beginning of ids."""
CALLS = ("function_call", "custom_tool_call", *(f"{kind}_call" for kind in CLIENT_TOOLS))
"""Types of items that call a tool."""
RESULTS = ("function_call_output", *(f"{kind}_output" for kind in CALLS[1:]))


def parse(data: JsonObject, digest: str) -> Asked:
    """Read a request.

    Raises:
        Refused: as the provider would.
    """
    only(data, KNOWN)
    need(
        data.get("previous_response_id") is None,
        "Previous response not found.",
        "previous_response_not_found",
    )
    items = data.get("input")
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}]
    need(listed(items, "input"), "Invalid 'input': empty array.")
    items = [record(item, "input") for item in items]
    offered = _tools(data.get("tools"))
    namespaces: dict[str, str] = {}
    for item in items:
        for space in item.get("tools") or () if item.get("type") == "additional_tools" else ():
            inner = _tools(space.get("tools"))
            offered += inner
            namespaces |= {tool.name: space["name"] for tool, _ in inner}
    check_answer_format((data.get("text") or {}).get("format"))
    tools = tuple(tool for tool, _ in offered)
    stated, limit = data.get("instructions"), data.get("max_output_tokens")
    head = (Message(Role.SYSTEM, text(stated, "instructions")),) if stated else ()
    request = Request(
        messages=(*head, *_turns(items, stored=data.get("store") is not False)),
        tools=tools,
        model=text(data.get("model"), "model"),
        temperature=number(data, "temperature", 2),
        max_output_tokens=None if limit is None else whole(limit, "max_output_tokens", 16),
        top_p=number(data, "top_p", 1),
        tool_choice=choice(data.get("tool_choice"), tools) if tools else "auto",
        parallel=data.get("parallel_tool_calls") is not False,
        effort=record(data.get("reasoning") or {}, "reasoning").get("effort") or "",
    )
    return Asked(
        request,
        request.model,
        digest,
        data.get("stream") is True,
        encrypted="reasoning.encrypted_content" in (data.get("include") or ()),
        reasoned=_is_reasoned(items),
        echo=_echo(data),
        kinds={tool.name: kind for tool, kind in offered if kind != "function"},
        namespaces=namespaces,
    )


def _echo(data: JsonObject) -> JsonObject:
    defaults: dict[str, Any] = {
        "instructions": None,
        "max_output_tokens": None,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "text": {"format": {"type": "text"}},
    }
    echo = {key: data[key] if data.get(key) is not None else value for key, value in defaults.items()}
    bare = {"strict": False, "description": None, "parameters": {}}
    echo["tools"] = [{**bare, **tool} if tool.get("type") == "function" else tool for tool in echo["tools"]]
    return echo


def _is_reasoned(items: Sequence[JsonObject]) -> bool:
    """Return whether the model's last items, up to results and users' messages, hold reasoning."""
    reasoned = before = False
    for item in items:
        model = item.get("role") == "assistant" or item.get("type") in ("reasoning", *CALLS)
        if model:
            reasoned = item.get("type") == "reasoning" or (before and reasoned)
        before = model
    return reasoned


def _turns(items: Sequence[JsonObject], *, stored: bool) -> list[Message]:
    """Return turns: calls belong to the assistant's text right before them; reasoning begins a turn."""
    turns: list[Message] = []
    open_turn: tuple[str, list[ToolCall]] | None = None
    for at, item in enumerate(items):
        place = f"input[{at}]"
        kind = str(item.get("type", "message" if "role" in item else None))
        if open_turn is not None and kind not in CALLS:
            turns.append(Message(Role.ASSISTANT, open_turn[0], tuple(open_turn[1])))
            open_turn = None
        if kind in CALLS:
            open_turn = open_turn or ("", [])
            open_turn[1].append(_call(item, kind, place))
        elif kind == "message":
            role = ROLES.get(str(item.get("role")))
            need(role and role is not Role.TOOL, f"Invalid value: '{item.get('role')}'.")
            if role is Role.ASSISTANT:
                open_turn = (_content(item, place), [])
            else:
                turns.append(Message(role or Role.USER, _content(item, place)))
        elif kind in RESULTS:
            turns.append(_result(item, kind, place))
        elif kind == "reasoning":
            _check_thought(item, items[at + 1] if at + 1 < len(items) else {}, stored=stored)
        else:
            need(kind == "additional_tools", f"Invalid value: '{kind}'.")
    if open_turn is not None:
        turns.append(Message(Role.ASSISTANT, open_turn[0], tuple(open_turn[1])))
    check_answered(tuple(turns), at_once=False)
    return turns


def _content(item: JsonObject, place: str) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    wanted = ("output_text", "refusal") if item.get("role") == "assistant" else ("input_text",)
    parts = [record(part, place) for part in listed(content, f"{place}.content")]
    need(all(part.get("type") in wanted for part in parts), f"Invalid parts of '{place}': expected {wanted}.")
    return "".join(
        text(part.get("refusal" if part["type"] == "refusal" else "text"), place) for part in parts
    )


def _call(item: JsonObject, kind: str, place: str) -> ToolCall:
    name, call_id = item.get("id"), text(item.get("call_id"), f"{place}.call_id")
    if kind in ("function_call", "custom_tool_call"):
        prefix, key = ("fc", "arguments") if kind == "function_call" else ("ctc", "input")
        call = ToolCall(
            call_id, text(item.get("name"), f"{place}.name"), text(item.get(key), f"{place}.{key}")
        )
    else:
        tool = kind.removesuffix("_call")
        key, prefix = CLIENT_TOOLS[tool]
        call = ToolCall(call_id, tool, json.dumps(record(item.get(key), f"{place}.{key}")))
    need(
        name is None or str(name).startswith(prefix),
        f"Invalid '{place}.id': expected to begin with '{prefix}'.",
    )
    return call


def _result(item: JsonObject, kind: str, place: str) -> Message:
    # A local shell's output names the call by `id`.
    call_id = item.get("call_id") or (item.get("id") if kind == "local_shell_call_output" else None)
    output = item.get("output") or ""
    if kind == "shell_call_output":
        output = "".join(part["stdout"] + part["stderr"] for part in listed(output, place))
    elif not isinstance(output, str):
        output = "".join(text(record(part, place).get("text"), place) for part in listed(output, place))
    failed = kind == "apply_patch_call_output" and item.get("status") == "failed"
    return Message(Role.TOOL, output, call_id=text(call_id, f"{place}.call_id"), failed=failed)


def _check_thought(item: JsonObject, following: JsonObject, *, stored: bool) -> None:
    name, content = text(item.get("id"), "input.id"), item.get("encrypted_content")
    listed(item.get("summary"), "input.summary")
    if content is None:
        need(stored, f"Item with id '{name}' not found: `store` is false.")
    else:
        hidden, _, signature = str(content).rpartition(".")
        need(signed(signature, "reasoning", name, hidden), "The encrypted content could not be verified.")
    follows = following.get("type") in ("reasoning", *CALLS) or following.get("role") == "assistant"
    need(follows, f"Item '{name}' of type 'reasoning' was provided without its required following item.")


def _tools(given: Any) -> list[tuple[Tool, str]]:
    """Return each tool and its type."""
    tools = []
    for tool in listed(given or [], "tools"):
        kind = str(record(tool, "tools").get("type"))
        if kind in CLIENT_TOOLS:
            local = (tool.get("environment") or {"type": "local"}).get("type") == "local"
            need(local, "This server has no containers.")
            tools.append((Tool(kind, ""), kind))
        else:
            need(kind in ("custom", "function"), f"Invalid tool: '{kind}'.")
            tools.append((custom(tool) if kind == "custom" else function(tool, "tools"), kind))
    return tools


# Answers


def render(asked: Asked, reply: Reply, style: Style) -> dict[str, Any]:
    """Return the answer in one piece."""
    return _body(asked, reply, _output(asked, reply))


def events(asked: Asked, reply: Reply, style: Style) -> Events:
    """Yield the answer as events with sequence numbers."""
    return _stream(asked, reply, _output(asked, reply), style)


def refusal(asked: Asked, style: Style) -> dict[str, Any]:
    return _body(asked, Reply(REFUSING), [_message(asked, {"type": "refusal", "refusal": REFUSING})])


def refusal_events(asked: Asked, style: Style) -> Events:
    return _stream(asked, Reply(REFUSING), [_message(asked, {"type": "refusal", "refusal": REFUSING})], style)


def empty(asked: Asked) -> dict[str, Any]:
    return _body(asked, Reply(""), [])


def empty_events(asked: Asked, style: Style) -> Events:
    return _stream(asked, Reply(""), [], style)


def error_event(error: Refused) -> tuple[str, JsonObject]:
    code = error.code or error.kind(OPENAI)
    data = {"type": "error", "code": code, "message": error.message, "param": None, "sequence_number": 9}
    return "error", data


WIRE = Wire(OPENAI, parse, render, events, refusal, refusal_events, empty, empty_events, error_event)


def _output(asked: Asked, reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.reasoning:
        name, summary = f"rs_{asked.digest[:32]}", [{"type": "summary_text", "text": reply.reasoning}]
        item = {"id": name, "type": "reasoning", "summary": summary}
        if asked.encrypted:
            hidden = reply.reasoning.encode().hex()
            item["encrypted_content"] = f"{hidden}.{sign('reasoning', name, hidden)}"
        items.append(item)
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        status = "incomplete" if reply.stop is Stop.LENGTH else "completed"
        items.append({**_message(asked, part), "status": status})
    return items + [_shown(asked, call, f"{asked.digest[:30]}{n:02d}") for n, call in enumerate(reply.calls)]


def _shown(asked: Asked, call: ToolCall, ending: str) -> dict[str, Any]:
    kind, head = asked.kinds.get(call.name, "function"), {"status": "completed", "call_id": call.id}
    if call.name in asked.namespaces:
        head["namespace"] = asked.namespaces[call.name]
    if kind in CLIENT_TOOLS:
        key, prefix = CLIENT_TOOLS[kind]
        return {"id": f"{prefix}_{ending}", "type": f"{kind}_call", **head, key: json.loads(call.arguments)}
    if kind == "custom":
        item = {"id": f"ctc_{ending}", "type": "custom_tool_call", **head}
        return {**item, "name": call.name, "input": call.arguments}
    return {
        "id": f"fc_{ending}",
        "type": "function_call",
        **head,
        "name": call.name,
        "arguments": call.arguments,
    }


def _message(asked: Asked, part: JsonObject) -> dict[str, Any]:
    name = f"msg_{asked.digest[:32]}"
    return {"id": name, "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def _body(asked: Asked, reply: Reply, output: list[dict[str, Any]], status: str = "") -> dict[str, Any]:
    broken = reply.stop in (Stop.LENGTH, Stop.REFUSAL)
    used = counts(asked, reply)
    usage = {
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cached, "cache_write_tokens": used.written},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    }
    reason = "content_filter" if reply.stop is Stop.REFUSAL else "max_output_tokens"
    return {
        "id": f"resp_{asked.digest[:40]}",
        "object": "response",
        "created_at": CREATED,
        "status": status or ("incomplete" if broken else "completed"),
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if broken and not status else None,
        "model": asked.model,
        "output": output,
        "previous_response_id": None,
        "truncation": "disabled",
        "usage": None if status else usage,
        "metadata": {},
        **asked.echo,
    }


def _stream(asked: Asked, reply: Reply, output: list[dict[str, Any]], style: Style) -> Events:
    for number_, (name, data) in enumerate(_steps(asked, reply, output, style.piece)):
        yield name, {"type": name, "sequence_number": number_, **data}  # type: ignore[dict-item]


def _steps(asked: Asked, reply: Reply, output: list[dict[str, Any]], piece: int) -> Events:
    started = _body(asked, reply, [], "in_progress")
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    for index, item in enumerate(output):
        at = {"output_index": index}
        inner = {"item_id": item["id"], **at}
        empty_keys = {"reasoning": "summary", "message": "content", "custom_tool_call": "input"}
        key = empty_keys.get(item["type"], "arguments")
        bare = {**item, "status": "in_progress"} if item["type"] != "reasoning" else dict(item)
        if key in item:
            bare[key] = type(item[key])()
        yield "response.output_item.added", {**at, "item": bare}
        yield from _inner_steps(item, inner, piece)
        yield "response.output_item.done", {**at, "item": item}
    complete = _body(asked, reply, output)
    yield f"response.{complete['status']}", {"response": complete}


def _inner_steps(item: JsonObject, inner: JsonObject, piece: int) -> Events:
    match item["type"]:
        case "reasoning":
            (part,) = item["summary"]
            at = {**inner, "summary_index": 0}
            yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
            for delta in pieces(part["text"], piece):
                yield "response.reasoning_summary_text.delta", {**at, "delta": delta}
            yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {**at, "part": part}
        case "message":
            (part,) = item["content"]
            at = {**inner, "content_index": 0}
            key = "text" if part["type"] == "output_text" else "refusal"
            more: JsonObject = {"logprobs": []} if key == "text" else {}
            yield "response.content_part.added", {**at, "part": {**part, key: ""}}
            for delta in pieces(part[key], piece):
                yield f"response.{part['type']}.delta", {**at, "delta": delta, **more}
            yield f"response.{part['type']}.done", {**at, key: part[key], **more}
            yield "response.content_part.done", {**at, "part": part}
        case "custom_tool_call":
            for delta in pieces(item["input"], piece):
                yield "response.custom_tool_call_input.delta", {**inner, "delta": delta}
            yield "response.custom_tool_call_input.done", {**inner, "input": item["input"]}
        case "function_call":
            for delta in pieces(item["arguments"], piece):
                yield "response.function_call_arguments.delta", {**inner, "delta": delta}
            end = {**inner, "name": item["name"], "arguments": item["arguments"]}
            yield "response.function_call_arguments.done", end
