"""What Anthropic's Messages accepts, as strictly as the provider, and how our neutral turns are read from it."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dgm.messages import Message, Request, Role, Tool, ToolCall
from tests.support.wire_server import checks, client_tools, structured
from tests.support.wire_server.errors import Refused
from tests.support.wire_server.protocol import Asked, JsonObject, signed

_PARAMETERS = """
model messages max_tokens system stream temperature top_p top_k stop_sequences tools tool_choice
thinking metadata service_tier output_config cache_control container inference_geo speed diagnostics
user_profile_id workspace_id
"""
KNOWN = frozenset(_PARAMETERS.split())
ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MOST_MARKS = 4


@dataclass(slots=True)
class Reading:
    """How far a request was read: characters so far, and where cache marks were."""

    seen: int = 0
    marks: list[int] = field(default_factory=list)
    reasoned: bool = False

    def mark(self, block: JsonObject, place: str) -> None:
        """Takes note of a block's cache mark."""
        given = block.get("cache_control")
        if given is None:
            return
        if checks.record(given, f"{place}.cache_control").get("type") != "ephemeral":
            raise Refused(400, f"{place}.cache_control.type: Input should be 'ephemeral'")
        if block.get("type") in ("thinking", "redacted_thinking"):
            raise Refused(400, f"{place}.{block['type']}.cache_control: Extra inputs are not permitted")
        self.marks.append(self.seen)


def parse(data: JsonObject, digest: str, *, counting: bool = False) -> Asked:
    """Reads a request; ``counting`` is for the endpoint that only counts tokens.

    Raises:
        Refused: as the provider would.
    """
    if data.get("thread") is not None:
        # The client's tool runner asks for it unbidden, and goes on without where it hears this.
        details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
        raise Refused(400, "thread: not supported for this request", details=details)
    for key in data:
        if key not in KNOWN:
            raise Refused(400, f"{key}: Extra inputs are not permitted")
    for key in ("model", "messages") if counting else ("model", "messages", "max_tokens"):
        if data.get(key) is None:
            raise Refused(400, f"{key}: Field required")
    reading = Reading()
    tools = tuple(
        _tool(checks.record(t, f"tools.{i}"), i, reading) for i, t in enumerate(data.get("tools") or ())
    )
    system = _system(data.get("system"), reading)
    turns = _turns(checks.listed(data["messages"], "messages"), reading)
    if data.get("cache_control") is not None:
        reading.mark({"cache_control": data["cache_control"]}, "request")
    if len(reading.marks) > MOST_MARKS:
        message = f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {len(reading.marks)}."
        raise Refused(400, message)
    _thinking(data)
    choice, parallel = _choice(data.get("tool_choice"), tools)
    request = Request(
        messages=(*system, *turns),
        tools=tools,
        model=checks.text(data["model"], "model"),
        temperature=checks.number(data.get("temperature"), "temperature", 1),
        max_output_tokens=None if counting else checks.whole(data["max_tokens"], "max_tokens"),
        top_p=checks.number(data.get("top_p"), "top_p", 1),
        stop=tuple(data.get("stop_sequences") or ()),
        tool_choice=choice,
        parallel=parallel,
        effort=(data.get("output_config") or {}).get("effort") or "",
    )
    marked = max(reading.marks, default=0)
    return Asked(
        request,
        request.model,
        digest,
        data.get("stream") is True,
        True,
        marked=marked,
        reasoned=reading.reasoned,
        schema=structured.messages(data),
    )


def _thinking(data: JsonObject) -> None:
    thinking = data.get("thinking") or {}
    if thinking.get("type") == "enabled":
        budget = checks.whole(thinking.get("budget_tokens"), "thinking.enabled.budget_tokens", 1024)
        if budget >= data.get("max_tokens", budget + 1):
            raise Refused(400, "`max_tokens` must be greater than `thinking.budget_tokens`")
    if thinking.get("type") in ("enabled", "adaptive") and data.get("temperature") not in (None, 1):
        raise Refused(400, "`temperature` may only be set to 1 when thinking is enabled")
    if thinking.get("type") == "enabled" and (data.get("tool_choice") or {}).get("type") in ("any", "tool"):
        raise Refused(400, "Thinking may not be enabled when tool_choice forces tool use.")


def _tool(tool: JsonObject, at: int, reading: Reading) -> Tool:
    if tool.get("type", "custom") != "custom":
        found = client_tools.messages_tool(tool, at)
        reading.seen += len(found.name)
        reading.mark(tool, f"tools.{at}")
        return found
    name = tool.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Refused(400, f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    schema = tool.get("input_schema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Refused(400, f"tools.{at}.custom.input_schema.type: Field required")
    description = tool.get("description") or ""
    reading.seen += len(name) + len(description)
    reading.mark(tool, f"tools.{at}")
    return Tool(name, description, schema)


def _system(value: Any, reading: Reading) -> list[Message]:
    if value is None or value == "":
        return []
    blocks = [{"type": "text", "text": value}] if isinstance(value, str) else checks.listed(value, "system")
    return [
        Message(Role.SYSTEM, _text(checks.record(b, "system"), f"system.{i}", reading))
        for i, b in enumerate(blocks)
    ]


def _text(block: JsonObject, place: str, reading: Reading) -> str:
    if block.get("type") != "text":
        raise Refused(400, f"{place}.type: Input should be 'text'")
    text = checks.text(block.get("text"), f"{place}.text")
    if not text:
        raise Refused(400, "messages: text content blocks must be non-empty")
    if not text.strip():
        raise Refused(400, "messages: text content blocks must contain non-whitespace text")
    reading.seen += len(text)
    reading.mark(block, place)
    return text


def _turns(messages: Sequence[Any], reading: Reading) -> list[Message]:
    if not messages:
        raise Refused(400, "messages: at least one message is required")
    turns: list[Message] = []
    before = ""
    calls: list[str] = []
    used: set[str] = set()
    for at, item in enumerate(messages):
        record = checks.record(item, f"messages.{at}")
        role = record.get("role")
        if role == "system" and at:
            turns += _system(record.get("content"), reading)
            continue
        if role not in ("user", "assistant"):
            raise Refused(
                400, f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".'
            )
        if at == 0 and role != "user":
            raise Refused(400, 'messages: first message must use the "user" role')
        if role == before:
            message = 'messages: roles must alternate between "user" and "assistant", but found multiple'
            raise Refused(400, f'{message} "{role}" roles in a row')
        before = role
        blocks = _blocks(record.get("content"), at, last=at == len(messages) - 1 and role == "assistant")
        if role == "user":
            turns += _user(blocks, at, calls, reading)
            calls = []
        else:
            said = _assistant(blocks, at, reading)
            turns += said
            calls = [call.id for turn in said for call in turn.calls]
            if len(set(calls)) < len(calls) or used & set(calls):
                raise Refused(400, f"messages.{at}: `tool_use` ids must be unique")
            used |= set(calls)
    if calls:
        raise Refused(400, _unanswered(len(messages) - 1, calls))
    return turns


def _blocks(content: Any, at: int, *, last: bool) -> list[JsonObject]:
    if content in ("", []) and not last:
        message = "all messages must have non-empty content except for the optional final assistant message"
        raise Refused(400, f"messages.{at}: {message}")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [
        checks.record(b, f"messages.{at}.content") for b in checks.listed(content, f"messages.{at}.content")
    ]


def _user(blocks: Sequence[JsonObject], at: int, calls: Sequence[str], reading: Reading) -> list[Message]:
    """Results first, one for each call of the turn before; then texts, each a message of its own."""
    turns: list[Message] = []
    answered: list[str] = []
    for index, block in enumerate(blocks):
        place = f"messages.{at}.content.{index}"
        if block.get("type") != "tool_result":
            _every(calls, answered, at)
            turns.append(Message(Role.USER, _text(block, place, reading)))
            continue
        name = checks.text(block.get("tool_use_id"), f"{place}.tool_result.tool_use_id")
        if name in answered:
            message = f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {name}"
            raise Refused(400, f"{place}: {message}")
        if name not in calls:
            message = (
                f"unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each `tool_result` block must have "
                "a corresponding `tool_use` block in the previous message."
            )
            raise Refused(400, f"{place}: {message}")
        answered.append(name)
        text = _result(block.get("content"), place, reading)
        reading.mark(block, place)
        turns.append(Message(Role.TOOL, text, call_id=name, failed=block.get("is_error") is True))
    _every(calls, answered, at)
    return turns


def _result(content: Any, place: str, reading: Reading) -> str:
    if content is None or isinstance(content, str):
        reading.seen += len(content or "")
        return content or ""
    parts = checks.listed(content, f"{place}.tool_result.content")
    return "".join(
        _text(checks.record(part, place), f"{place}.tool_result.content", reading) for part in parts
    )


def _every(calls: Sequence[str], answered: Sequence[str], at: int) -> None:
    missing = [name for name in calls if name not in answered]
    if missing:
        raise Refused(400, _unanswered(at - 1, missing))


def _unanswered(at: int, missing: Sequence[str]) -> str:
    return (
        f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
        "next message."
    )


def _assistant(blocks: Sequence[JsonObject], at: int, reading: Reading) -> list[Message]:
    """One turn, or several where an adapter merged adjacent ones: a text after a text or a call begins a new one."""
    turns: list[tuple[str, list[ToolCall]]] = []
    reading.reasoned = False
    for index, block in enumerate(blocks):
        place = f"messages.{at}.content.{index}"
        kind = block.get("type")
        if kind == "text":
            turns.append((_text(block, place, reading), []))
        elif kind == "tool_use":
            call = _call(block, place, reading)
            if not turns:
                turns.append(("", []))
            turns[-1][1].append(call)
        else:
            _thought(block, place)
            reading.reasoned = True
            reading.mark(block, place)
    return [Message(Role.ASSISTANT, text, tuple(calls)) for text, calls in turns]


def _call(block: JsonObject, place: str, reading: Reading) -> ToolCall:
    name = checks.text(block.get("id"), f"{place}.tool_use.id")
    if not ID.fullmatch(name):
        raise Refused(400, f"{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    given = block.get("input")
    if not isinstance(given, dict):
        raise Refused(400, f"{place}.tool_use.input: Input should be a valid dictionary")
    call = ToolCall(name, checks.text(block.get("name"), f"{place}.tool_use.name"), json.dumps(given))
    reading.seen += len(call.name) + len(call.arguments)
    reading.mark(block, place)
    return call


def _thought(block: JsonObject, place: str) -> None:
    kind = block.get("type")
    if kind == "thinking":
        if not signed(block.get("signature"), "thinking", str(block.get("thinking"))):
            raise Refused(400, f"{place}: Invalid `signature` in `thinking` block")
    elif kind == "redacted_thinking":
        text, _, signature = str(block.get("data")).rpartition(".")
        if not signed(signature, "redacted", text):
            raise Refused(400, f"{place}: Invalid `data` in `redacted_thinking` block")
    else:
        raise Refused(
            400, f"{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        )


def _choice(value: Any, tools: tuple[Tool, ...]) -> tuple[str, bool]:
    if value is None:
        return "auto", True
    record = checks.record(value, "tool_choice")
    if not tools and record.get("type") != "none":
        raise Refused(400, "tool_choice: may only be specified while providing `tools`")
    kind = record.get("type")
    words = {"auto": "auto", "any": "required", "none": "none", "tool": f"tool:{record.get('name')}"}
    if kind not in words:
        raise Refused(
            400, f"tool_choice: Input tag '{kind}' found using 'type' does not match any expected tags"
        )
    if kind == "tool" and record.get("name") not in {tool.name for tool in tools}:
        raise Refused(400, f"tool_choice.tool.name: Tool '{record.get('name')}' not found in provided tools")
    return words[kind], record.get("disable_parallel_tool_use") is not True
