"""Read the trajectory that an agent wrote: the formats that agents share, and the session logs of known programs.

Whatever the format, it becomes messages, as the recorded model calls are. Programs differ in the names of a few fields,
which are tables here. An agent may write anything, so nothing here raises for a file that is not as expected: then the
recorded calls are all there is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.bounded_reading import parse_json
from dgm.messages import Message, Role, ToolCall

TRACE = "trajectory"
"""Name of the trace that holds the file as the agent wrote it; what was read of it is in the trace ``conversation``."""
MOST = 10_000
"""Maximum number of messages that are read."""
NAME_CHARS = 80
"""Maximum length of a form's name; a longer one is none."""
KNOWN = (
    "mini-swe-agent, ATIF, OpenHands, chat messages, and the session logs of Claude Code, Codex, Qwen Code, Gemini CLI,"
    " Cline and pi"
)
"""The forms that are read, for messages to people."""
_ROLES = {role.value: role for role in Role} | {
    "developer": Role.SYSTEM,
    "function": Role.TOOL,
    "toolResult": Role.TOOL,
    "tool_result": Role.TOOL,
    "model": Role.ASSISTANT,
    "gemini": Role.ASSISTANT,
}
_SOURCES = {"user": Role.USER, "agent": Role.ASSISTANT, "system": Role.SYSTEM, "environment": Role.TOOL}

_CALLS = (
    "tool_use",
    "toolCall",
    "tool-call",
    "functionCall",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
)
"""Types of a tool's call, as a part of a message or a line of its own."""
_RESULTS = (
    "tool_result",
    "tool-result",
    "functionResponse",
    "function_call_output",
    "custom_tool_call_output",
)
"""Types of a tool's result."""
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
    found, _ = _parse(data)
    if isinstance(found, dict):
        # A log of one line is no list.
        found = [found]
    if isinstance(found, list) and any(_container(item) for item in _items(found)):
        return tuple(message for item in _items(found) for message in _read_container(item))[:MOST]
    if isinstance(found, list):
        return tuple(_bounded(_read_events if _is_events(found) else _read_messages, found))
    return ()


def join_files(files: Sequence[bytes]) -> bytes:
    """Return the files of one trajectory as one: a single one unchanged, several as one JSON value a line."""
    if len(files) == 1:
        return files[0]
    lines = []
    for data in files:
        found, is_lines = _parse(data)
        lines.append(data.strip() if is_lines or found is None else json.dumps(found).encode())
    return b"\n".join(lines) + b"\n"


def form_of(data: bytes) -> TrajectoryForm:
    """Return the form of a trajectory that ``read_trajectory`` reads."""
    found, is_lines = _parse(data)
    if not isinstance(found, dict):
        is_log = any("role" not in item and _message_of(item) is not item for item in _items(found or ()))
        name = "events" if _is_events(found) else "session-log" if is_log else "messages"
        return TrajectoryForm(name, is_lines)
    for key in ("trajectory_format", "schema_version"):
        if isinstance(found.get(key), str) and 0 < len(found[key]) <= NAME_CHARS:
            return TrajectoryForm(found[key], is_lines)
    return TrajectoryForm(_container(found), is_lines)


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


def _container(item: Item) -> str:
    """Return the key under which an object holds its messages; empty if it holds none."""
    return next((key for key in _READERS if isinstance(item.get(key), list)), "")


def _read_container(item: Item) -> Iterator[Message]:
    if key := _container(item):
        yield from _bounded(_READERS[key], item[key])


def _is_events(found: object) -> bool:
    """Return whether a list holds OpenHands' events."""
    items = _items(found) if isinstance(found, list) else []
    return not any("role" in item for item in items) and any(
        "observation" in item or "llm_message" in item or ("action" in item and "type" not in item)
        for item in items
    )


def _bounded(read: Any, found: Sequence[Any]) -> Iterator[Message]:  # noqa: ANN401  (one of the three below)
    for message in read(_items(found[:MOST])):
        if message.text or message.calls:
            yield message


def _items(found: Sequence[Any]) -> list[Item]:
    return [item for item in found if isinstance(item, dict)]


def _read_messages(found: Sequence[Item]) -> Iterator[Message]:
    """Yield the messages of a chat or a session log; the parts of an answer that stand in several lines are joined."""
    waiting: Message | None = None
    answered: set[str] = set()
    for item in _latest(found):
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
                text = "\n\n".join(filter(None, (waiting.text, message.text)))
                waiting = Message(Role.ASSISTANT, text, (*waiting.calls, *message.calls))
                continue
            if waiting:
                yield waiting
            waiting = message
    if waiting:
        yield waiting


def _latest(found: Sequence[Item]) -> Sequence[Item]:
    """Return the newest state of each line, where a log changes earlier ones (Gemini CLI)."""
    if not any("$set" in item for item in found):
        return found
    lines: dict[str, Item] = {}
    for item in found:
        change = item.get("$set")
        messages = change.get("messages") if isinstance(change, dict) else None
        if isinstance(messages, list):
            lines = {str(each.get("id")): each for each in _items(messages)}
        elif "id" in item:
            lines[str(item["id"])] = item
        elif str(item.get("$rewindTo")) in lines:
            kept = list(lines)
            lines = {key: lines[key] for key in kept[: kept.index(str(item["$rewindTo"]))]}
    return list(lines.values())


def _message_of(item: Item) -> Item:
    """Return the message that a line of a session log holds; the line itself where it is one."""
    payload = item.get("payload")
    if isinstance(payload, dict):
        if item.get("type") == "compacted":
            return {"role": "user", "content": payload.get("message")}
        return payload if item.get("type") == "response_item" else {}
    if isinstance(item.get("message"), dict):
        return {"role": item.get("type"), **item["message"]}
    if "role" not in item and item.get("type") in _ROLES:
        return {"role": item["type"], **item}
    return item


def _read_message(item: Item) -> Iterator[Message]:
    kind = str(item.get("type"))
    role = _ROLES.get(str(item.get("role")))
    if kind in _CALLS or kind in _RESULTS:
        role, parts = Role.ASSISTANT, [item]
    else:
        content = item.get("content", item.get("parts"))
        parts = [_part(part) for part in _items(content)] if isinstance(content, list) else []
    if role is None:
        return
    results = [part for part in parts if part.get("type") in _RESULTS]
    made = item.get("toolCalls")
    made = _items(made) if isinstance(made, list) else []
    named = [_read_call(part) for part in (*(part for part in parts if part.get("type") in _CALLS), *made)]
    calls = [*_chat_calls(item.get("tool_calls")), *named]
    yield from (_read_result(part) for part in results)
    text = "" if kind in _RESULTS + _CALLS else _text(item.get("content", item.get("parts")))
    if text or calls:
        yield Message(role, text, tuple(calls))
    yield from (_read_result(part) for part in made if "result" in part)


def _part(part: Item) -> Item:
    """Return a part with its type; Google's form has it as a key."""
    for kind in ("functionCall", "functionResponse"):
        if isinstance(part.get(kind), dict):
            return {"type": kind, **part[kind]}
    return part


def _first(item: Item, keys: Sequence[str]) -> Any:  # noqa: ANN401  (a value of an agent's file)
    return next((item[key] for key in keys if item.get(key) is not None), "")


def _read_call(item: Item) -> ToolCall:
    name = _first(item, _NAME) or str(item.get("type")).removesuffix("_call")
    return _call(_first(item, _ID), name, _first(item, _ARGUMENTS))


def _read_result(item: Item) -> Message:
    return Message(Role.TOOL, _output(_first(item, _OUTPUT)), call_id=_text(_first(item, _ID)))


def _output(value: object) -> str:
    """Return what a tool answered: a text, parts, or an object with either."""
    if isinstance(value, list):
        return "\n".join(
            filter(None, (_output(_part(each)) if isinstance(each, dict) else _text(each) for each in value))
        )
    if isinstance(value, dict):
        found = _first(value, (*_OUTPUT, "text", "value"))
        return _output(found) if found else json.dumps(value, ensure_ascii=False) if value else ""
    return _text(value)


def _chat_calls(calls: object) -> Iterator[ToolCall]:
    for call in _items(calls) if isinstance(calls, list) else ():
        function = call.get("function")
        if isinstance(function, dict):
            yield _call(call.get("id"), function.get("name"), function.get("arguments"))


def _read_steps(found: Sequence[Item]) -> Iterator[Message]:
    for step in found:
        role = _SOURCES.get(str(step.get("source")), Role.ASSISTANT)
        calls = step.get("tool_calls")
        named = [
            _call(call.get("tool_call_id"), call.get("function_name"), call.get("arguments"))
            for call in (_items(calls) if isinstance(calls, list) else ())
        ]
        thought, said = _text(step.get("reasoning_content")), _text(step.get("message"))
        yield Message(role, "\n\n".join(filter(None, (thought, said))), tuple(named))
        observed = step.get("observation")
        results = observed.get("results") if isinstance(observed, dict) else None
        for result in _items(results) if isinstance(results, list) else ():
            yield Message(
                Role.TOOL, _text(result.get("content")), call_id=_text(result.get("source_call_id"))
            )


def _read_events(found: Sequence[Item]) -> Iterator[Message]:
    for event in found:
        if isinstance(event.get("llm_message"), dict):
            yield from _read_messages([event["llm_message"]])
        elif "observation" in event:
            yield Message(Role.TOOL, _observed(event))
        elif "action" in event:
            yield _read_action(event)


def _read_action(event: Item) -> Message:
    """Return the message of an action; in the newer form it is an object, in the older one a name with arguments."""
    role = _SOURCES.get(str(event.get("source")), Role.ASSISTANT)
    action, given = event["action"], event.get("args")
    if isinstance(action, dict):
        thought = _text(event.get("thought"))
        name = event.get("tool_name") or action.get("kind")
        return Message(role, thought, (_call(event.get("tool_call_id"), name, action),))
    given = dict(given) if isinstance(given, dict) else {}
    thought = _text(given.pop("thought", "")) or _text(given.get("content"))
    if action in ("message", "system"):
        return Message(Role.SYSTEM if action == "system" else role, thought or _text(event.get("message")))
    return Message(role, thought, (_call("", action, given),))


def _observed(event: Item) -> str:
    found = event["observation"]
    if isinstance(found, dict):
        return _text(found.get("content")) or _text(found.get("output")) or _text(found.get("result"))
    return _text(event.get("content")) or _text(event.get("message"))


def _call(ident: object, name: object, given: object) -> ToolCall:
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return ToolCall(_text(ident), _text(name), arguments)


def _text(content: object) -> str:
    """Return the text of a content, which is a text, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [
            part if isinstance(part, str) else _text(part.get("text")) for part in content if _is_part(part)
        ]
        return "\n".join(filter(None, parts))
    return "" if content is None or isinstance(content, dict) else str(content)


def _is_part(part: object) -> bool:
    return isinstance(part, str | dict)


_READERS = {"messages": _read_messages, "steps": _read_steps, "history": _read_events}
"""Key of an object → how the list under it is read."""
