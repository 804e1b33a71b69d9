"""The changes of an agent that let its program run or reach more by itself: hooks, permissions and MCP servers.

Coding agents keep these in files and folders whose names begin with a dot, and in ``opencode.json``.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from dgm.domain import Entry, Snapshot
from dgm.toml_files import parse_toml

_FILES = (".*", "opencode.json*")
_PROGRAMS = (".*/hooks/*", ".*/plugin/*", ".*/plugins/*")
"""Files that programs run by themselves."""
_KEYS = {
    "hook": "hooks notify plugin enabledPlugins apiKeyHelper statusLine lint-cmd test-cmd",
    "permission": "permissions permission permissionMode allowed-tools disallowedTools tools sandbox sandbox_mode "
    "sandbox_workspace_write approval_policy trust_level yes-always",
    "MCP server": "mcpServers mcp_servers mcp servers enabledMcpjsonServers enableAllProjectMcpServers",
    "environment variable": "env",
}
"""Keys at any depth of those files, and what stands below them. Programs: Claude Code, Codex, OpenCode, Qwen Code,
Gemini CLI, Cline, Copilot CLI, aider."""
_KIND_OF = {key: kind for kind, keys in _KEYS.items() for key in keys.split()}
_YAML_KEY = re.compile(r"""^["']?([\w-]+)["']?[ \t]*:(.*(?:\n(?:[ \t-].*)?)*)""", re.MULTILINE)
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class PrivilegeChange:
    """One setting or program that two versions of an agent do not share."""

    path: str
    kind: str
    change: str
    """``added``, ``removed`` or ``changed``."""
    setting: str = ""
    """Dotted key of the setting, and its value; empty for a whole file."""


def find_privilege_changes(before: Snapshot, after: Snapshot) -> list[PrivilegeChange]:
    """Return the changed hooks, permissions, MCP servers and environment variables of two sources, by path.

    Programs that hooks and MCP servers start, and files of the same kind beside them, are among them.
    """
    paths = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    changes = [change for path in paths for change in _compare(path, before.get(path), after.get(path))]
    listed = {change.path for change in changes}
    started = _find_programs(before) | _find_programs(after)
    for path in paths:
        file = PurePosixPath(path)
        if path not in listed and (file.parent, file.suffix) in started:
            whole = _describe_whole(before.get(path), after.get(path))
            changes.append(PrivilegeChange(path, "program of a hook or MCP server", whole))
    return sorted(changes)


def _find_programs(source: Snapshot) -> set[tuple[PurePosixPath, str]]:
    """Return the folder and the suffix of each file that a hook or an MCP server of a source names."""
    commands = ""
    for path, entry in source.items():
        if _matches(path, _FILES):
            with suppress(ValueError, RecursionError):
                entries = _list_entries(_read_settings(path, entry))
                commands += "".join(value for kind, _, value in entries if kind in ("hook", "MCP server"))
    words = re.findall(r"[\w./-]+", commands)
    paths = [PurePosixPath(path) for path in source if any(f"/{word}".endswith(f"/{path}") for word in words)]
    return {(path.parent, path.suffix) for path in paths}


def _describe_whole(before: Entry | None, after: Entry | None) -> str:
    return "added" if before is None else "removed" if after is None else "changed"


def _compare(path: str, before: Entry | None, after: Entry | None) -> Iterator[PrivilegeChange]:
    whole = _describe_whole(before, after)
    if _matches(path, _PROGRAMS):
        yield PrivilegeChange(path, "hook", whole)
    elif _matches(path, _FILES):
        try:
            old, new = _read_settings(path, before), _read_settings(path, after)
            counts = Counter(_list_entries(old)), Counter(_list_entries(new))
        except (ValueError, RecursionError):
            yield PrivilegeChange(path, "unreadable settings", whole)
            return
        for change, entries in (("removed", counts[0] - counts[1]), ("added", counts[1] - counts[0])):
            for kind, name, value in entries:
                yield PrivilegeChange(path, kind, change, f"{name} = {value}")


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}") for pattern in patterns)


def _read_settings(path: str, entry: Entry | None) -> Mapping[str, Any]:
    """Return the settings in a file; empty for a file without any.

    Raises:
        ValueError: it is not in the format that its name promises.
    """
    if entry is None:
        return {}
    if path.endswith(".toml"):
        return parse_toml(entry.data)
    if path.endswith((".json", ".jsonc")):
        settings: Mapping[str, Any] = json.loads(entry.data.decode("utf-8-sig"))
        return settings
    text = entry.data.decode("utf-8", "replace").replace("\r\n", "\n")
    if path.endswith(".md"):
        head = _FRONT_MATTER.match(text)
        text = head[1] if head else ""
    elif not path.endswith((".yml", ".yaml")):
        text = ""
    return {key: value.strip() for key, value in _YAML_KEY.findall(text)}


def _list_entries(settings: object, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield kind, dotted key and value of each entry that grants something: an item of a list or table, or a value."""
    if not isinstance(settings, Mapping):
        return
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if kind := _KIND_OF.get(key):
            table = value.items() if isinstance(value, Mapping) else [("", value)]
            for inner, below in table:
                full = f"{name}.{inner}" if inner else name
                for item in below if isinstance(below, list) else [below]:
                    yield kind, full, json.dumps(item, ensure_ascii=False, default=str)
        else:
            yield from _list_entries(value, f"{name}.")
