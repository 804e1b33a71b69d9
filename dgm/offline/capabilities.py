"""Roles and parameter slots of the scaffold's tools, recognised from their JSON schemas.

A tool is not used unless all its required parameters are understood. Results are later told apart by role, so a
scaffold may rename every tool and parameter.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dgm.messages import Tool


class ToolRole(StrEnum):
    """The purpose of a tool."""

    SHELL = "shell"
    VIEW = "view"
    REPLACE = "replace"
    LINES = "lines"
    WRITE = "write"
    TEST = "test"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Usable:
    """A tool that was understood: ``slots`` maps a slot (``path``, ``old`` …) to the scaffold's parameter."""

    name: str
    role: ToolRole
    slots: Mapping[str, str]
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Parameters that always take one value, such as the sub-command of an editor."""


Toolbox = Mapping[ToolRole, Usable]

_SLOTS = {
    "command": (
        r"^(command|cmd|script|code|shell|bash|line|input|commandline)$",
        r"\b(command|shell|script)\b",
    ),
    "path": (r"path|file", r"\b(path|file|filename)\b"),
    "old": (
        r"^(old|search|find|before|original|target|from|existing|needle)(_|$)|_(old|before)$|^oldstr",
        r"\b(replaced?|find|search for|existing|original)\b.*|\bto replace\b",
    ),
    "new": (
        r"^(new|replace|replacement|after|with|to|substitute|updated)(_|$)|_(new|after)$|^newstr",
        r"\b(in its place|replacement|new text|instead|replace it with)\b",
    ),
    "first": (
        r"^(start|first|from|begin|offset|lo)(_|$)|(start|first|from).*line",
        r"\b(first|start\w*)\b.*\bline",
    ),
    "last": (r"^(end|last|to|stop|until|hi)(_|$)|(end|last|to).*line", r"\b(last|end\w*)\b.*\bline"),
    "content": (
        r"^(content|contents|text|body|data|source|new_text|replacement|new|new_content|with)$",
        r"\b(contents?|whole text|full text|new text|lines to write)\b",
    ),
    "target": (r"test|target|pattern|name|args", r"\btests?\b"),
}

_ROLES: tuple[tuple[ToolRole, tuple[str, ...], tuple[str, ...], str], ...] = (
    (ToolRole.REPLACE, ("path", "old", "new"), (), r"replac|edit|substitut|patch|swap|chang|modif"),
    (ToolRole.LINES, ("path", "first", "last", "content"), (), r"replac|edit|line|overwrit|chang"),
    (ToolRole.WRITE, ("path", "content"), (), r"writ|creat|overwrit|save|put|store"),
    (ToolRole.SHELL, ("command",), (), r"shell|bash|command|terminal|execut|run"),
    (ToolRole.VIEW, ("path",), ("first", "last"), r"view|read|show|open|display|print|cat\b|look"),
    (ToolRole.TEST, (), ("target",), r"\btests?\b|unittest|pytest|suite"),
    (ToolRole.UNDO, (), ("path",), r"undo|revert|restore|roll.?back"),
)


def recognise(tools: Sequence[Tool]) -> Toolbox:
    """Return the first tool found for each role."""
    box: dict[ToolRole, Usable] = {}
    for tool in tools:
        found = _understand(tool)
        if found is not None and found.role not in box:
            box[found.role] = found
    return box


def _understand(tool: Tool) -> Usable | None:
    properties, required = _schema(tool.parameters)
    what = (re.sub(r"[_\-]+", " ", tool.name) + " " + tool.description[:500]).lower()
    for role, needed, optional, verb in _ROLES:
        if not re.search(verb, what):
            continue
        slots = _fill((*needed, *optional), properties)
        if any(slot not in slots for slot in needed):
            continue
        if all(name in slots.values() for name in required):
            return Usable(tool.name, role, slots)
    return None


def _schema(parameters: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return parameter names with their descriptions, and the required names.

    A malformed schema counts as one without parameters.
    """
    properties = parameters.get("properties")
    required = parameters.get("required")
    if not isinstance(properties, Mapping):
        properties = {}
    described = {
        str(name): str(value.get("description", ""))[:300] if isinstance(value, Mapping) else ""
        for name, value in properties.items()
    }
    return described, [str(name) for name in required] if isinstance(required, list) else []


def _fill(wanted: Sequence[str], properties: Mapping[str, str]) -> dict[str, str]:
    """Match each wanted slot with a parameter: by name first, then by description.

    A parameter serves one slot only.
    """
    slots: dict[str, str] = {}
    for by_description in (False, True):
        for slot in wanted:
            if slot in slots:
                continue
            for name, description in properties.items():
                text = description.lower() if by_description else name.lower()
                if name not in slots.values() and re.search(_SLOTS[slot][by_description], text):
                    slots[slot] = name
                    break
    return slots
