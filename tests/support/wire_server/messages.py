"""Anthropic's Messages as the provider speaks it: what it accepts, and how it answers."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dgm.messages import Message, Reply, Request, Role, Stop, Tool, ToolCall
from tests.support.wire_server.protocol import (
    ANTHROPIC,
    Asked,
    BrainFault,
    Events,
    JsonObject,
    Refused,
    Style,
    Wire,
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
    strict_objects,
    text,
    whole,
)

_PARAMETERS = """
model messages max_tokens system stream temperature top_p top_k stop_sequences tools tool_choice
thinking metadata service_tier output_config cache_control container inference_geo speed diagnostics
user_profile_id workspace_id
"""
KNOWN = frozenset(_PARAMETERS.split())
ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
TYPED = {"bash": "bash", "memory": "memory", "text_editor": "str_replace_based_edit_tool"}
"""Types of tools that the model knows, without their dates, and the only name that each may have."""
MOST_MARKS = 4
STOP = {Stop.END: "end_turn", Stop.TOOL_CALLS: "tool_use", Stop.LENGTH: "max_tokens", Stop.REFUSAL: "refusal"}
DECLINED = {"type": "refusal", "category": "general_harms", "explanation": "The request was declined."}


@dataclass(slots=True)
class Reading:
    """Progress in a request: characters so far, and where cache marks were."""

    seen: int = 0
    marks: list[int] = field(default_factory=list)
    reasoned: bool = False

    def mark(self, block: JsonObject, place: str) -> None:
        """Take note of a block's cache mark."""
        if block.get("cache_control") is None:
            return
        ephemeral = record(block["cache_control"], place).get("type") == "ephemeral"
        need(ephemeral, f"{place}.cache_control.type: Input should be 'ephemeral'")
        thought = block.get("type") in ("thinking", "redacted_thinking")
        need(not thought, f"{place}.cache_control: Extra inputs are not permitted")
        self.marks.append(self.seen)


def parse(data: JsonObject, digest: str) -> Asked:
    """Read a request.

    Raises:
        Refused: as the provider would.
    """
    if data.get("thread") is not None:
        # The client's tool runner asks for it unbidden, and goes on without where it hears this.
        details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
        raise Refused(400, "thread: not supported for this request", details=details)
    only(data, KNOWN)
    reading = Reading()
    tools = tuple(_tool(record(tool, "tools"), reading) for tool in data.get("tools") or ())
    system = _system(data.get("system"), reading)
    turns = _turns(listed(data.get("messages"), "messages"), reading)
    reading.mark(data, "request")
    need(
        len(reading.marks) <= MOST_MARKS,
        f"A maximum of {MOST_MARKS} blocks with cache_control may be provided.",
    )
    _check_thinking(data)
    _check_form((data.get("output_config") or {}).get("format"))
    choice, parallel = _choice(data.get("tool_choice"), tools)
    request = Request(
        messages=(*system, *turns),
        tools=tools,
        model=text(data.get("model"), "model"),
        temperature=number(data, "temperature", 1),
        max_output_tokens=whole(data.get("max_tokens"), "max_tokens"),
        top_p=number(data, "top_p", 1),
        stop=tuple(data.get("stop_sequences") or ()),
        tool_choice=choice,
        parallel=parallel,
        effort=(data.get("output_config") or {}).get("effort") or "",
    )
    marked, stream = max(reading.marks, default=0), data.get("stream") is True
    return Asked(request, request.model, digest, stream, marked=marked, reasoned=reading.reasoned)


def _check_form(form: Any) -> None:
    if form is not None:
        fits = set(record(form, "format")) == {"type", "schema"} and form["type"] == "json_schema"
        need(fits, "output_config.format.schema: Field required")
        strict_objects(form["schema"], all_required=False)


def _check_thinking(data: JsonObject) -> None:
    thinking = data.get("thinking") or {}
    kind = thinking.get("type")
    if kind == "enabled":
        budget = whole(thinking.get("budget_tokens"), "thinking.enabled.budget_tokens", 1024)
        need(budget < data.get("max_tokens", 0), "`max_tokens` must be greater than `thinking.budget_tokens`")
        forced = (data.get("tool_choice") or {}).get("type") in ("any", "tool")
        need(not forced, "Thinking may not be enabled when tool_choice forces tool use.")
    if kind in ("enabled", "adaptive"):
        need(data.get("temperature") in (None, 1), "`temperature` must be 1 when thinking is enabled")


def _tool(tool: JsonObject, reading: Reading) -> Tool:
    name, kind = tool.get("name"), str(tool.get("type", "custom"))
    if kind == "custom":
        need(isinstance(name, str) and NAME.fullmatch(name), "tools: name does not match the pattern")
        schema = tool.get("input_schema")
        need(
            isinstance(schema, dict) and schema.get("type") == "object",
            "tools: input_schema.type is required",
        )
        found = Tool(str(name), tool.get("description") or "", schema or {})
    else:
        known = TYPED.get(re.sub(r"_\d{8}$", "", kind))
        need(name in (known, "str_replace_editor" if known else None), f"tools: '{kind}' is not offered")
        need("input_schema" not in tool, f"tools: {kind}.input_schema: Extra inputs are not permitted")
        found = Tool(str(name), "")
    reading.seen += len(found.name) + len(found.description)
    reading.mark(tool, "tools")
    return found


def _system(value: Any, reading: Reading) -> list[Message]:
    if value is None or value == "":
        return []
    blocks = [{"type": "text", "text": value}] if isinstance(value, str) else listed(value, "system")
    return [Message(Role.SYSTEM, _text(record(block, "system"), "system", reading)) for block in blocks]


def _text(block: JsonObject, place: str, reading: Reading) -> str:
    need(block.get("type") == "text", f"{place}: Input tag '{block.get('type')}' found using 'type'")
    content = text(block.get("text"), f"{place}.text")
    need(content.strip(), "messages: text content blocks must contain non-whitespace text")
    reading.seen += len(content)
    reading.mark(block, place)
    return content


def _turns(messages: Sequence[Any], reading: Reading) -> list[Message]:
    need(messages, "messages: at least one message is required")
    turns: list[Message] = []
    before = "assistant"
    for at, item in enumerate(messages):
        place = f"messages.{at}"
        role, content = record(item, place).get("role"), item.get("content")
        if role == "system" and at:
            turns += _system(content, reading)
            continue
        need(role in ("user", "assistant"), f'{place}: Unexpected role "{role}".')
        need(role != before, f'{place}: roles must alternate and begin with "user", found "{role}"')
        before = role
        optional = at == len(messages) - 1 and role == "assistant"
        need(content not in ("", []) or optional, f"{place}: all messages must have non-empty content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else listed(content, place)
        blocks = [record(block, place) for block in blocks]
        turns += (_user if role == "user" else _assistant)(blocks, place, reading)
    ids = [call.id for turn in turns for call in turn.calls]
    need(len(ids) == len(set(ids)), "messages: `tool_use` ids must be unique")
    results = [turn.call_id for turn in turns if turn.role is Role.TOOL]
    need(len(results) == len(set(results)), "messages: each tool_use must have a single result")
    check_answered(tuple(turns), at_once=True)
    return turns


def _user(blocks: Sequence[JsonObject], place: str, reading: Reading) -> list[Message]:
    """Return results first, as the provider wants them; then texts, each a message of its own."""
    turns: list[Message] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            turns.append(Message(Role.USER, _text(block, place, reading)))
            continue
        name = text(block.get("tool_use_id"), f"{place}.tool_use_id")
        content = block.get("content") or ""
        if isinstance(content, str):
            reading.seen += len(content)
        else:
            content = "".join(_text(record(part, place), place, reading) for part in listed(content, place))
        reading.mark(block, place)
        turns.append(Message(Role.TOOL, content, call_id=name, failed=block.get("is_error") is True))
    return turns


def _assistant(blocks: Sequence[JsonObject], place: str, reading: Reading) -> list[Message]:
    """Return one turn, or several where an adapter merged adjacent ones: a text begins a new one."""
    turns: list[tuple[str, list[ToolCall]]] = []
    reading.reasoned = False
    for block in blocks:
        match block.get("type"):
            case "tool_use":
                if not turns:
                    turns.append(("", []))
                turns[-1][1].append(_call(block, place, reading))
            case "thinking":
                valid = signed(block.get("signature"), "thinking", str(block.get("thinking")))
                need(valid, f"{place}: Invalid `signature` in `thinking` block")
                reading.reasoned = True
                reading.mark(block, place)
            case _:
                turns.append((_text(block, place, reading), []))
    return [Message(Role.ASSISTANT, content, tuple(calls)) for content, calls in turns]


def _call(block: JsonObject, place: str, reading: Reading) -> ToolCall:
    name = text(block.get("id"), f"{place}.tool_use.id")
    need(ID.fullmatch(name), f"{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    arguments = json.dumps(record(block.get("input"), f"{place}.tool_use.input"))
    call = ToolCall(name, text(block.get("name"), f"{place}.tool_use.name"), arguments)
    reading.seen += len(call.name) + len(call.arguments)
    reading.mark(block, place)
    return call


def _choice(value: Any, tools: tuple[Tool, ...]) -> tuple[str, bool]:
    if value is None:
        return "auto", True
    kind, name = record(value, "tool_choice").get("type"), value.get("name")
    need(tools or kind == "none", "tool_choice: may only be specified while providing `tools`")
    words = {"auto": "auto", "any": "required", "none": "none", "tool": f"tool:{name}"}
    need(kind in words, f"tool_choice: Input tag '{kind}' found using 'type'")
    need(
        kind != "tool" or name in {tool.name for tool in tools},
        f"tool_choice.tool.name: Tool '{name}' not found",
    )
    return words[str(kind)], value.get("disable_parallel_tool_use") is not True


# Answers


def render(asked: Asked, reply: Reply, style: Style) -> dict[str, Any]:
    """Return the answer in one piece."""
    return _body(asked, reply, _content(reply), STOP[reply.stop])


def events(asked: Asked, reply: Reply, style: Style) -> Events:
    """Yield the answer as events, a ``ping`` among them."""
    return _stream(asked, reply, STOP[reply.stop], style)


def refusal(asked: Asked, style: Style) -> dict[str, Any]:
    return {**_body(asked, Reply(""), [], "refusal"), "stop_details": DECLINED}


def refusal_events(asked: Asked, style: Style) -> Events:
    return _stream(asked, Reply(""), "refusal", style)


def empty(asked: Asked) -> dict[str, Any]:
    return _body(asked, Reply(""), [], "end_turn")


def empty_events(asked: Asked, style: Style) -> Events:
    return _stream(asked, Reply(""), "end_turn", style)


def error_event(error: Refused) -> tuple[str, JsonObject]:
    return "error", error.record(ANTHROPIC, "req_in_stream")


WIRE = Wire(ANTHROPIC, parse, render, events, refusal, refusal_events, empty, empty_events, error_event)


def _content(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        signature = sign("thinking", reply.reasoning)
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": signature})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text, "citations": None})
    return blocks + [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": _input(c)} for c in reply.calls
    ]


def _input(call: ToolCall) -> Any:
    try:
        return record(json.loads(call.arguments), "input")
    except (ValueError, Refused) as error:
        raise BrainFault(f"this wire carries objects as arguments, not {call.arguments[:60]!r}") from error


def _body(asked: Asked, reply: Reply, content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    used = counts(asked, reply)
    usage = {
        "input_tokens": used.input - used.cached - used.written,
        "cache_creation_input_tokens": used.written,
        "cache_read_input_tokens": used.cached,
        "output_tokens": used.output,
        "output_tokens_details": {"thinking_tokens": used.reasoning},
    }
    head = {"id": f"msg_{asked.digest[:24]}", "type": "message", "role": "assistant", "model": asked.model}
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _stream(asked: Asked, reply: Reply, stop: str, style: Style) -> Events:
    start = _body(asked, reply, [], None)
    usage = start["usage"]
    start["usage"] = {**usage, "output_tokens": 1, "output_tokens_details": None}
    yield "message_start", {"type": "message_start", "message": start}
    arguments = iter(reply.calls)
    for index, block in enumerate(_content(reply)):
        content = next(arguments).arguments if block["type"] == "tool_use" else ""
        for name, data in _block(block, content, style.piece):
            yield name, {"type": name, "index": index, **data}
        if index == 0:
            yield "ping", {"type": "ping"}
    delta: dict[str, Any] = {"stop_reason": stop, "stop_sequence": None}
    if stop == "refusal":
        delta["stop_details"] = DECLINED
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _block(block: dict[str, Any], arguments: str, piece: int) -> Events:
    deltas: list[JsonObject] = []
    match block["type"]:
        case "thinking":
            first = {"type": "thinking", "thinking": "", "signature": ""}
            deltas += [{"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"], piece)]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "text":
            first = {**block, "text": ""}
            deltas += [{"type": "text_delta", "text": p} for p in pieces(block["text"], piece)]
        case _:
            first = {**block, "input": {}}
            deltas += [
                {"type": "input_json_delta", "partial_json": p} for p in ("", *pieces(arguments, piece))
            ]
    yield "content_block_start", {"content_block": first}
    for delta in deltas:
        yield "content_block_delta", {"delta": delta}
    yield "content_block_stop", {}
