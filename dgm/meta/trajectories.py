"""Read the trajectory that an agent wrote: the formats that agents share, and the session logs of known programs.

Whatever the format, it becomes messages, as the recorded model calls are. Programs differ in the names of a few fields,
which are tables here. An agent may write anything, so nothing here raises for a file that is not as expected: then the
recorded calls are all there is.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.bounded_reading import parse_json
from dgm.messages import Message, Role, ToolCall

TRACE = "trajectory"
"""Name of the trace that holds the file as the agent wrote it; what was read of it is in the trace ``conversation``."""
MOST = 10_000
"""Maximum number of messages that are read."""
KNOWN = (
    "mini-swe-agent, ATIF, OpenHands, chat messages, and the session logs of Claude Code, Codex, Qwen Code, Gemini CLI,"
    " Cline and pi"
)
"""The forms that are read, for messages to people."""
_NAME_CHARS = 80
_ROLES = {role.value: role for role in Role} | {
    "developer": Role.SYSTEM,
    "function": Role.TOOL,
    "toolResult": Role.TOOL,
    "tool_result": Role.TOOL,
    "model": Role.ASSISTANT,
    "gemini": Role.ASSISTANT,
}
_SOURCES = {"user": Role.USER, "agent": Role.ASSISTANT, "system": Role.SYSTEM, "environment": Role.TOOL}
_CALLS = [
    "tool_use",
    "toolCall",
    "tool-call",
    "functionCall",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
]
"""Types of a tool's call, as a part of a message or a line of its own."""
_RESULTS = [
    "tool_result",
    "tool-result",
    "functionResponse",
    "function_call_output",
    "custom_tool_call_output",
]
_ID = ("tool_use_id", "tool_call_id", "toolCallId", "call_id", "id")
_NAME = ("name", "toolName")
_ARGUMENTS = ("arguments", "input", "args", "action")
_OUTPUT = ("output", "content", "result", "response")

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrajectoryForm:
    """The form of a file that an agent wrote."""

    name: str
    """The name that the file gives itself (``ATIF-v1.4``, ``mini-swe-agent-1.1``), else the key of its messages."""
    is_lines: bool
    """True if it is one JSON value a line."""


def read_trajectory(data: bytes) -> Sequence[Message]:
    """Return the messages of a trajectory; none if it has no form that is known.

    Known are: ``messages`` as chat models take them (mini-swe-agent, and many others); ``steps`` of ATIF; a list of
    events, or one event a line (OpenHands); and session logs with a message, or an item of the Responses protocol, a
    line.
    """
    value, _ = _parse(data)
    items = _items(value if isinstance(value, list) else [value])
    inside = [(key, item[key]) for item in items if (key := _container(item))]
    lists = inside or [("history" if _is_events(items) else "messages", items)]
    messages = (message for key, rows in lists for message in _READERS[key](_items(rows[:MOST])))
    return tuple(message for message in messages if message.text or message.calls)[:MOST]


def join_files(files: Sequence[bytes]) -> bytes:
    """Return the files of one trajectory as one: a single one unchanged, several as one JSON value a line."""
    if len(files) == 1:
        return files[0]
    lines = []
    for data in files:
        value, is_lines = _parse(data)
        lines.append(data.strip() if is_lines or value is None else json.dumps(value).encode())
    return b"\n".join(lines) + b"\n"


def form_of(data: bytes) -> TrajectoryForm:
    """Return the form of a trajectory that ``read_trajectory`` reads."""
    value, is_lines = _parse(data)
    if isinstance(value, dict):
        formats = (value.get("trajectory_format"), value.get("schema_version"))
        names = [name for name in formats if isinstance(name, str) and 0 < len(name) <= _NAME_CHARS]
        return TrajectoryForm((names or [_container(value)])[0], is_lines)
    items = _items(value or ())
    is_log = any("role" not in item and _message_of(item) is not item for item in items)
    name = "events" if _is_events(items) else "session-log" if is_log else "messages"
    return TrajectoryForm(name, is_lines)


def _parse(data: bytes) -> tuple[Any, bool]:
    """Return the value of an agent's file, and whether it is a list of one value a line; None if it is no JSON."""
    text = data.decode("utf-8", "replace")
    try:
        return parse_json(text), False
    except ValueError:
        pass
    try:
        return [parse_json(line) for line in text.split("\n") if line.strip()], True
    except ValueError:
        return None, False


def _items(values: object) -> list[Item]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list | tuple) else []


def _container(item: Item) -> str:
    """Return the key under which an object holds its messages; empty if it holds none."""
    return next((key for key in _READERS if isinstance(item.get(key), list)), "")


def _is_events(items: Sequence[Item]) -> bool:
    """Return whether a list holds OpenHands' events."""
    return not any("role" in item for item in items) and any(
        "observation" in item or "llm_message" in item or ("action" in item and "type" not in item)
        for item in items
    )


def _read_messages(items: Sequence[Item]) -> Iterator[Message]:
    """Yield the messages of a chat or a session log; the parts of an answer that stand in several lines are joined."""
    waiting: Message | None = None
    answered: set[str] = set()
    for item in _latest(items):
        is_line = "role" not in item
        for message in _read_message(_message_of(item)):
            if message.role is not Role.TOOL:
                answered.clear()
            elif is_line and message.call_id in answered:
                # Gemini CLI writes a result with its call and once more as what it sends.
                continue
            elif message.call_id:
                answered.add(message.call_id)
            if is_line and waiting and waiting.role is message.role is Role.ASSISTANT:
                text = _join(waiting.text, message.text, between="\n\n")
                waiting = Message(Role.ASSISTANT, text, (*waiting.calls, *message.calls))
                continue
            if waiting:
                yield waiting
            waiting = message
    if waiting:
        yield waiting


def _latest(items: Sequence[Item]) -> Sequence[Item]:
    """Return the newest state of each line, where a log changes earlier ones (Gemini CLI)."""
    if not any("$set" in item for item in items):
        return items
    lines: dict[str, Item] = {}
    for item in items:
        change = item.get("$set")
        messages = change.get("messages") if isinstance(change, dict) else None
        if isinstance(messages, list):
            lines = {str(message.get("id")): message for message in _items(messages)}
        elif "id" in item:
            lines[str(item["id"])] = item
        elif str(item.get("$rewindTo")) in lines:
            numbers = list(lines)
            lines = {number: lines[number] for number in numbers[: numbers.index(str(item["$rewindTo"]))]}
    return list(lines.values())


def _message_of(item: Item) -> Item:
    """Return the message that a line of a session log holds; the line itself where it is one."""
    payload, kind = item.get("payload"), item.get("type")
    if isinstance(payload, dict):
        if kind == "compacted":
            return {"role": "user", "content": payload.get("message")}
        return payload if kind == "response_item" else {}
    if isinstance(item.get("message"), dict):
        return {"role": kind, **item["message"]}
    return {"role": kind, **item} if "role" not in item and kind in _ROLES else item


def _read_message(item: Item) -> Iterator[Message]:
    role, kind = _ROLES.get(str(item.get("role"))), str(item.get("type"))
    content = item.get("content", item.get("parts"))
    parts, text = [_part(part) for part in _items(content)], _text(content)
    if kind in _CALLS or kind in _RESULTS:
        role, parts, text = Role.ASSISTANT, [item], ""
    if role is None:
        return
    own_calls = _items(item.get("toolCalls"))
    functions = [
        {"id": call.get("id"), **call["function"]}
        for call in _items(item.get("tool_calls"))
        if isinstance(call.get("function"), dict)
    ]
    calls = [*functions, *(part for part in parts if part.get("type") in _CALLS), *own_calls]
    yield from (_read_result(part) for part in parts if part.get("type") in _RESULTS)
    if text or calls:
        yield Message(role, text, tuple(map(_read_call, calls)))
    yield from (_read_result(call) for call in own_calls if "result" in call)


def _part(part: Item) -> Item:
    """Return a part with its type; Google's form has it as a key."""
    for kind in ("functionCall", "functionResponse"):
        if isinstance(part.get(kind), dict):
            return {"type": kind, **part[kind]}
    return part


def _first(item: Item, keys: Iterable[str]) -> Any:  # noqa: ANN401  (a value of an agent's file)
    return next((item[key] for key in keys if item.get(key) is not None), "")


def _read_call(item: Item) -> ToolCall:
    name = _first(item, _NAME) or str(item.get("type", "")).removesuffix("_call")
    return _call(_first(item, _ID), name, _first(item, _ARGUMENTS))


def _call(ident: object, name: object, arguments: object) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(_text(ident), _text(name), text)


def _read_result(item: Item) -> Message:
    return Message(Role.TOOL, _output(_first(item, _OUTPUT)), call_id=_text(_first(item, _ID)))


def _output(value: object) -> str:
    """Return what a tool answered: a text, parts, or an object with either."""
    if isinstance(value, list):
        return _join(*(_output(_part(part)) if isinstance(part, dict) else _text(part) for part in value))
    if isinstance(value, dict):
        inside = _first(value, (*_OUTPUT, "text", "value"))
        return _output(inside) if inside else json.dumps(value, ensure_ascii=False) if value else ""
    return _text(value)


def _read_steps(items: Sequence[Item]) -> Iterator[Message]:
    """Yield the messages of ATIF's steps."""
    for step in items:
        role = _SOURCES.get(str(step.get("source")), Role.ASSISTANT)
        calls = [
            _call(call.get("tool_call_id"), call.get("function_name"), call.get("arguments"))
            for call in _items(step.get("tool_calls"))
        ]
        text = _join(_text(step.get("reasoning_content")), _text(step.get("message")), between="\n\n")
        yield Message(role, text, tuple(calls))
        observed = step.get("observation")
        for result in _items(observed.get("results")) if isinstance(observed, dict) else ():
            ident = _text(result.get("source_call_id"))
            yield Message(Role.TOOL, _text(result.get("content")), call_id=ident)


def _read_events(items: Sequence[Item]) -> Iterator[Message]:
    """Yield the messages of OpenHands' events; in its newer form, actions and observations are objects."""
    for event in items:
        role = _SOURCES.get(str(event.get("source")), Role.ASSISTANT)
        if isinstance(event.get("llm_message"), dict):
            yield from _read_messages([event["llm_message"]])
        elif "observation" in event:
            observed, keys = event["observation"], ("content", "output", "result")
            if not isinstance(observed, dict):
                observed, keys = event, ("content", "message", "message")
            yield Message(Role.TOOL, next(filter(None, (_text(observed.get(key)) for key in keys)), ""))
        elif isinstance(action := event.get("action"), dict):
            name = event.get("tool_name") or action.get("kind")
            call = _call(event.get("tool_call_id"), name, action)
            yield Message(role, _text(event.get("thought")), (call,))
        elif "action" in event:
            arguments = dict(event["args"]) if isinstance(event.get("args"), dict) else {}
            thought = _text(arguments.pop("thought", "")) or _text(arguments.get("content"))
            if action in ("message", "system"):
                role = Role.SYSTEM if action == "system" else role
                yield Message(role, thought or _text(event.get("message")))
            else:
                yield Message(role, thought, (_call("", action, arguments),))


def _text(content: object) -> str:
    """Return the text of a content, which is a text, or a list of parts."""
    if isinstance(content, list):
        return _join(*(_text(part.get("text")) if isinstance(part, dict) else part for part in content
                       if isinstance(part, str | dict)))  # fmt: skip
    return "" if content is None or isinstance(content, dict) else str(content)


def _join(*texts: str, between: str = "\n") -> str:
    return between.join(filter(None, texts))


_READERS: Mapping[str, Callable[[Sequence[Item]], Iterator[Message]]] = {
    "messages": _read_messages,
    "steps": _read_steps,
    "history": _read_events,
}
"""Key of an object → reader of the list under it."""
