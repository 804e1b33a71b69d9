"""Shared conversions between the three protocols' JSON and neutral requests and replies."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dgm.messages import JsonObject, Message, Request, Tool, ToolCall

FAILED = "The tool failed:\n"
"""Prefix of a failed tool's result; OpenAI's protocols have no mark for failure."""

_MEDIA = re.compile(r"(?:data:)?([a-z]+/[\w.+-]+)")
_TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")


def text_of_parts(content: object, gap: str = "") -> str:
    """Return the text of a content, its parts separated by ``gap``; other parts are described in brackets."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list | tuple):
        return str(content)
    texts = [_text_of_part(part) for part in content]
    return gap.join(filter(None, texts) if gap else texts)


def describe_part(part: JsonObject) -> str:
    """Return the text that stands for a picture, or another part that is no text, such as ``[picture not shown]``."""
    kind = str(part.get("type"))[:40]
    name = "picture" if "image" in kind or "screenshot" in kind else kind
    media = _media_type(part)
    return f"[{name} not shown: {media}]" if media else f"[{name} not shown]"


def _media_type(part: JsonObject) -> str:
    """Return what a part declares: ``image/png``, or the beginning of its ``data:`` address; empty if it does not."""
    for key in ("source", "image_url", "file", "file_data"):
        held = part.get(key)
        if isinstance(held, dict):
            held = held.get("media_type") or held.get("url") or held.get("file_data")
        if isinstance(held, str) and (match := _MEDIA.match(held[:120])):
            return match[1]
    return ""


def whole_number(value: object) -> int | None:
    """Return a whole number, or None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) else None


def floating(value: object) -> float | None:
    """Return a number, or None for any other value."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_texts(value: object) -> tuple[str, ...]:
    """Return the strings of a list, or a single one."""
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def tool_choice_of(value: object) -> str:
    """Return a request's choice of tools in the words of ``Request``."""
    if isinstance(value, str):
        return {"any": "required"}.get(value, value) if value in ("none", "required", "any") else "auto"
    if not isinstance(value, Mapping):
        return "auto"
    kind = value.get("type")
    if kind in ("auto", "any", "none", "required"):
        return "required" if kind == "any" else str(kind)
    inner = value.get(kind) if isinstance(kind, str) else None
    name = inner.get("name") if isinstance(inner, Mapping) else value.get("name")
    return f"tool:{name}" if isinstance(name, str) and name else "auto"


def openai_fields(
    request: Request,
    write_tool: Callable[[Tool], JsonObject],
    named: Callable[[str], JsonObject],
    **more: object,
) -> dict[str, Any]:
    """Return the fields of a body that OpenAI's protocols share.

    Args:
        request: the request.
        write_tool: writes a tool.
        named: writes the choice of one tool by its name.
        more: further fields; None is left out.
    """
    kind, _, name = request.tool_choice.partition(":")
    # Omit the default: some reasoning models refuse the word itself.
    choice = kind if kind == "required" or (kind == "none" and request.tools) else None
    fields = {
        "tools": [write_tool(tool) for tool in request.tools] or None,
        "parallel_tool_calls": None if request.parallel or not request.tools else False,
        "tool_choice": named(name) if kind == "tool" else choice,
        "temperature": request.temperature,
        "top_p": request.top_p,
        **more,
    }
    return {name: value for name, value in fields.items() if value is not None}


def schema_of(tool: Tool) -> JsonObject:
    """Return a tool's parameters; without any, the schema of an empty object, which is still required."""
    return tool.parameters or {"type": "object", "properties": {}}


def same_turn(message: Message, text: str, calls: Sequence[ToolCall]) -> bool:
    """Return whether an agent repeats a turn unchanged, apart from rewritten JSON, which some clients send."""
    if message.text != text or len(message.calls) != len(calls):
        return False
    return all(
        (ours.id, ours.name) == (theirs.id, theirs.name) and _same_json(ours.arguments, theirs.arguments)
        for ours, theirs in zip(message.calls, calls, strict=True)
    )


def _text_of_part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    kind = part.get("type")
    if kind in _TEXTS or kind is None:
        text = part.get("text")
        return text if isinstance(text, str) else ""
    if kind == "refusal":
        return str(part.get("refusal") or "")
    if kind in ("thinking", "redacted_thinking", "reasoning", "tool_addition", "tool_removal"):
        return ""
    return f"[tool: {part.get('tool_name')}]" if kind == "tool_reference" else describe_part(part)


def _same_json(ours: str, theirs: str) -> bool:
    if ours == theirs:
        return True
    try:
        return bool(json.loads(ours) == json.loads(theirs))
    except (ValueError, RecursionError):
        return False
