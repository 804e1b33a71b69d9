"""What both OpenAI protocols do alike with one turn: count it, name its calls, tell whether an agent changed it."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dgm.domain import Usage
from dgm.messages import Message, Request, Tool, ToolCall

CHARACTERS_PER_TOKEN = 4
FAILED = "The tool failed:\n"
"""Before the result of a tool that failed, for which these protocols have no mark."""

JsonObject = Mapping[str, Any]


def used(request: Request, said: int, counts: object, read: str, wrote: str) -> Usage:
    """The usage of one call, as the server counted it, or estimated where it did not.

    Many compatible servers count nothing, or only in some answers. A call never counts as free for that: what is
    missing or 0 becomes characters / 4, at least 1. Some servers leave reasoning out of their output tokens but
    not out of the total, so the larger of the two is believed.

    Args:
        request: what was asked.
        said: characters of the reply: text, reasoning, calls.
        counts: the answer's ``usage``; may be anything.
        read: ``prompt`` or ``input``: what the protocol calls tokens that were read …
        wrote: ``completion`` or ``output``: … and written.
    """
    given: JsonObject = counts if isinstance(counts, Mapping) else {}
    into, out = _count(given, f"{read}_tokens"), _count(given, f"{wrote}_tokens")
    if into:
        out = max(out, _count(given, "total_tokens") - into)
    into, out = into or _estimate(_asked(request)), out or _estimate(said)
    details, thought = given.get(f"{read}_tokens_details"), given.get(f"{wrote}_tokens_details")
    cached = min(_count(details, "cached_tokens"), into)
    return Usage(
        calls=1,
        input_tokens=into,
        output_tokens=out,
        cached_tokens=cached,
        written_tokens=min(_count(details, "cache_write_tokens"), into - cached),
        reasoning_tokens=min(_count(thought, "reasoning_tokens"), out),
    )


def length(calls: Iterable[ToolCall]) -> int:
    """Characters of calls."""
    return sum(len(call.name) + len(call.arguments) for call in calls)


def with_ids(ids: Sequence[str], request: Request) -> list[str]:
    """The calls' ids, with one made for each call that has none or another call's.

    Made ones are ``call_0``, ``call_1`` …, the first that are free in the conversation: the same request and the
    same answer always give the same ids.
    """
    taken = {call.id for message in request.messages for call in message.calls}
    numbers = itertools.count()
    named: list[str] = []
    reserved = taken | set(ids)
    for given in ids:
        if not given or given in taken:
            given = next(name for number in numbers if (name := f"call_{number}") not in reserved)
        taken.add(given)
        named.append(given)
    return named


def unchanged(message: Message, text: str, calls: Sequence[ToolCall]) -> bool:
    """Whether an agent sends a turn as the model said it; JSON may be written anew, as some clients do."""
    if message.text != text or len(message.calls) != len(calls):
        return False
    return all(
        (ours.id, ours.name) == (theirs.id, theirs.name) and _same_json(ours.arguments, theirs.arguments)
        for ours, theirs in zip(message.calls, calls, strict=True)
    )


def result(message: Message) -> str:
    """What a tool's result says."""
    return FAILED + message.text if message.failed else message.text


def schema(tool: Tool) -> JsonObject:
    """A tool's parameters; a tool without any still needs the schema of an object."""
    return tool.parameters or {"type": "object", "properties": {}}


def arguments_text(arguments: object) -> str:
    """A call's arguments as JSON text; some servers send an object, some nothing where there are none."""
    if isinstance(arguments, str):
        return arguments if arguments.strip() else "{}"
    return json.dumps(arguments if arguments is not None else {})


def texts(parts: object, *keys: str) -> str:
    """All strings under ``keys`` of a list of records, joined."""
    if not isinstance(parts, list):
        return ""
    records = [part for part in parts if isinstance(part, Mapping)]
    return "".join(part[key] for part in records for key in keys if isinstance(part.get(key), str))


def _asked(request: Request) -> int:
    spoken = sum(len(message.text) + length(message.calls) for message in request.messages)
    offered = sum(
        len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in request.tools
    )
    return spoken + offered


def _estimate(characters: int) -> int:
    return max(1, -(-characters // CHARACTERS_PER_TOKEN))


def _count(counts: object, name: str) -> int:
    value = counts.get(name) if isinstance(counts, Mapping) else None
    return max(0, value) if isinstance(value, int) else 0


def _same_json(ours: str, theirs: str) -> bool:
    if ours == theirs:
        return True
    try:
        return bool(json.loads(ours) == json.loads(theirs))
    except (ValueError, RecursionError):
        return False
