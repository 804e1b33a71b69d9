"""Read the trajectory that an agent wrote, in the formats that agents share: mini-swe-agent's, ATIF, OpenHands'.

Whatever the format, it becomes messages, as the recorded model calls are. An agent may write anything, so nothing here
raises for a file that is not as expected: then the recorded calls are all there is.
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
_ROLES = {role.value: role for role in Role} | {"developer": Role.SYSTEM, "function": Role.TOOL}
_SOURCES = {"user": Role.USER, "agent": Role.ASSISTANT, "system": Role.SYSTEM, "environment": Role.TOOL}

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
    events, or one event a line (OpenHands).
    """
    found, _ = _parse(data)
    if isinstance(found, dict):
        for key, read in _READERS.items():
            if isinstance(found.get(key), list):
                return tuple(_bounded(read, found[key]))
    if isinstance(found, list):
        return tuple(_bounded(_read_chat if _is_chat(found) else _read_events, found))
    return ()


def form_of(data: bytes) -> TrajectoryForm:
    """Return the form of a trajectory that ``read_trajectory`` reads."""
    found, is_lines = _parse(data)
    if not isinstance(found, dict):
        return TrajectoryForm("messages" if _is_chat(found) else "events", is_lines)
    for key in ("trajectory_format", "schema_version"):
        if isinstance(found.get(key), str) and 0 < len(found[key]) <= NAME_CHARS:
            return TrajectoryForm(found[key], is_lines)
    return TrajectoryForm(next((key for key in _READERS if isinstance(found.get(key), list)), ""), is_lines)


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


def _is_chat(found: object) -> bool:
    return isinstance(found, list) and any("role" in item for item in _items(found))


def _bounded(read: Any, found: Sequence[Any]) -> Iterator[Message]:  # noqa: ANN401  (one of the three below)
    for message in read(_items(found[:MOST])):
        if message.text or message.calls:
            yield message


def _items(found: Sequence[Any]) -> list[Item]:
    return [item for item in found if isinstance(item, dict)]


def _read_chat(found: Sequence[Item]) -> Iterator[Message]:
    for item in found:
        role = _ROLES.get(str(item.get("role")))
        if role is not None:
            yield Message(role, _text(item.get("content")), tuple(_chat_calls(item.get("tool_calls"))))
        elif item.get("type") == "function_call_output":
            yield Message(Role.TOOL, _text(item.get("output")))


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
            yield from _read_chat([event["llm_message"]])
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


_READERS = {"messages": _read_chat, "steps": _read_steps, "history": _read_events}
"""Key of an object → how the list under it is read."""
