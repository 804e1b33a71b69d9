"""Import of a user's setup of a coding agent from a repository: what is taken, left out, and out of reach.

Only the repository is read, and nothing of it is run. Credentials and values of environment variables are left out.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from dgm.bounded_reading import parse_json
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.folders import FILE, PROGRAM, read_file
from dgm.publish.scrubbing import LocalIdentity, Scrubber
from dgm.sessions.agent_setups import AgentSetup, Kind
from dgm.toml_files import format_key, format_value, parse_toml

FILE_BYTES, MAX_BYTES, MAX_FILES, MAX_DEPTH = 1_000_000, 3_000_000, 400, 10
SERVER_FILES = 50
"""Maximum number of files in the folder of an MCP server's program; of a larger one the program alone is taken."""
_SKIPPED = frozenset({".git", "__pycache__", "node_modules", ".venv", ".DS_Store"})
_LOCAL = re.compile(
    r".*\.local\.\w+|\.env(\..*)?|.*\.(pem|key|p12|pfx)|\.?credentials(\.json)?|auth\.json|\.netrc|id_(rsa|ed25519)"
)
_VALUES = frozenset({"env", "environment", "set", "headers", "http_headers"})
"""Keys of maps whose values are of one machine, or secret."""
_SECRET = re.compile(r"(?i)(api[-_]?key|token|secret|password|credentials?)$")
_RUNNERS = frozenset({"python3", "python", "node", "sh", "bash"})
_DOWNLOADERS = frozenset(
    {"npx", "uvx", "uv", "bunx", "bun", "pnpm", "yarn", "pipx", "deno", "docker", "podman"}
)
_USUAL = _RUNNERS | {
    "git",
    "test",
    "[",
    "echo",
    "cat",
    "grep",
    "sed",
    "awk",
    "jq",
    "cd",
    "exit",
    "true",
    "env",
}
"""Programs that a hook may call without a remark."""
_MENTION = re.compile(r"(?<![\w`])@((?:[\w.-]+/)*[\w.-]*\w)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_WEB = re.compile(rb"\bWeb(?:Search|Fetch)\b|\bweb_?(?:search|fetch)\b")


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that was left out, or that does not work in a sandbox."""

    path: str
    reason: str


@dataclass(slots=True)
class ImportedSetup:
    """A user's setup as files of an agent's folder."""

    files: dict[str, Entry] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    """Path of each file → what it is for."""
    left_out: list[Remark] = field(default_factory=list)
    out_of_reach: list[Remark] = field(default_factory=list)
    """What cannot work in a sandbox."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Path → content of the settings that were taken."""

    def leave_out(self, path: str, reason: str) -> None:
        """Note that something is not taken over."""
        self.left_out.append(Remark(path, reason))


def import_setup(repository: Path, setup: AgentSetup) -> ImportedSetup:
    """Return what a repository holds for one program.

    Raises:
        UserError: the folder is none, holds nothing for the program, or too much, or its settings cannot be read.
    """
    if not repository.is_dir():
        raise UserError(f"{repository}: not a folder; name the repository with your agent's files")
    return _Import(repository.resolve(), setup).collect(str(repository))


class _Import:
    """One import under way."""

    def __init__(self, root: Path, setup: AgentSetup) -> None:
        self._root = root
        self._setup = setup
        self._scrubber = Scrubber(LocalIdentity("", "", "", "", LocalIdentity.here().secrets).needles(()))
        self._result = ImportedSetup()

    def collect(self, name: str) -> ImportedSetup:
        """Take all files of the setup's kinds, and those that they name."""
        for kind, paths in self._setup.paths.items():
            for path in paths:
                for file in self._list_files(path):
                    self._take(file, kind)
        result = self._result
        if not result.files:
            wanted = ", ".join(path for paths in self._setup.paths.values() for path in paths)
            raise UserError(f"{name}: holds nothing of {self._setup.program}: looked for {wanted}")
        for path in [path for path, kind in result.kinds.items() if kind in (Kind.PERMISSIONS, Kind.MCP)]:
            if path.endswith((".json", ".toml", ".yml")):
                self._clean_settings(path)
        for path, kind in list(result.kinds.items()):
            if kind is Kind.INSTRUCTIONS and path.endswith(".md"):
                self._follow_mentions(path)
        web = sorted(path for path, entry in result.files.items() if _WEB.search(entry.data))
        if web:
            self._warn(", ".join(web), "name web tools; a sandbox has no network")
        return result

    def _warn(self, path: str, reason: str) -> None:
        self._result.out_of_reach.append(Remark(path, reason))

    def _list_files(self, name: str, depth: int = 0) -> Iterator[str]:
        path = self._root / name
        real = path.resolve()
        if not real.exists():
            if path.is_symlink():
                self._result.leave_out(name, "a link that leads nowhere")
        elif not real.is_relative_to(self._root):
            self._result.leave_out(name, "a link that leads out of the repository")
        elif path.is_symlink() and path.parent.resolve().is_relative_to(real):
            self._result.leave_out(name, "a link to a folder around it")
        elif real.is_dir() and depth < MAX_DEPTH:
            for item in sorted({*os.listdir(real)} - _SKIPPED):
                yield from self._list_files(f"{name}/{item}", depth + 1)
        elif _LOCAL.fullmatch(path.name):
            self._result.leave_out(name, "settings of one machine, or credentials")
        elif not real.is_file():
            self._result.leave_out(name, "neither a file nor a folder")
        elif real.stat().st_size > FILE_BYTES:
            self._result.leave_out(name, f"larger than {FILE_BYTES:,} bytes")
        else:
            yield name

    def _take(self, name: str, kind: Kind) -> None:
        result, path = self._result, (self._root / name).resolve()
        data = read_file(path, FILE_BYTES)
        clean = self._scrubber.clean(data)
        if clean != data:
            self._result.leave_out(name, "what looks like a key; <key> stands in its place")
        result.files[name] = Entry(clean, PROGRAM if os.access(path, os.X_OK) else FILE)
        result.kinds[name] = kind
        if len(result.files) > MAX_FILES or sum(len(each.data) for each in result.files.values()) > MAX_BYTES:
            raise UserError(
                f"{self._root / name}: more than {MAX_FILES} files or {MAX_BYTES:,} bytes until here; "
                "move away what the agent does not need"
            )

    def _follow_mentions(self, name: str, depth: int = 0) -> None:
        text = _CODE.sub("", self._result.files[name].data.decode("utf-8", "replace"))
        for mention in _MENTION.findall(text):
            target = os.path.normpath(PurePosixPath(name).parent / mention)
            if target in self._result.files or not (self._root / target).is_file() or target.startswith(".."):
                continue
            for file in self._list_files(target):
                self._take(file, Kind.INSTRUCTIONS)
                if depth < MAX_DEPTH:
                    self._follow_mentions(file, depth + 1)

    def _clean_settings(self, name: str) -> None:
        entry = self._result.files[name]
        table = read_settings(name, entry.data)
        before = json.dumps(table, default=str)
        for key in self._setup.left_out:
            if key in table:
                del table[key]
                self._result.leave_out(name, f"{key}: credentials, a model, or not for a sandbox")
        servers = table.get(self._setup.servers)
        for server, words in list(servers.items()) if isinstance(servers, dict) else ():
            reason = self._judge_server(words)
            if reason:
                del servers[server]
                self._warn(name, f"MCP server {server} is left out: {reason}")
        self._drop_values(name, table)
        for hook in _find_commands(table.get("hooks")):
            self._judge_hook(name, hook)
        if json.dumps(table, default=str) != before:
            text = write_settings(name, table, entry.data)
            self._result.files[name] = Entry(text.encode(), entry.mode)
        self._result.settings[name] = table

    def _drop_values(self, name: str, value: object, where: str = "") -> None:
        for key, inner in list(value.items()) if isinstance(value, dict) else ():
            path = f"{where}.{key}".lstrip(".")
            if (key in _VALUES and isinstance(inner, dict)) or (
                _SECRET.search(key) and isinstance(inner, str)
            ):
                del value[key]  # type: ignore[attr-defined]
                names = f": {', '.join(inner)}" if isinstance(inner, dict) and inner else ""
                self._result.leave_out(name, f"values of {path}{names}")
            else:
                self._drop_values(name, inner, path)

    def _judge_server(self, server: object) -> str:
        """Return why a server cannot start in a sandbox; take its program's files if it can."""
        if not isinstance(server, dict):
            return "it is no table"
        command, more = server.get("command"), server.get("args") or []
        words = [*(command if isinstance(command, list) else [command] if command else []), *more]
        if server.get("url") or not words or not all(isinstance(word, str) for word in words):
            return "a sandbox has no network" if server.get("url") else "it has no command"
        program = PurePosixPath(words[0]).name
        if program in _DOWNLOADERS:
            return (
                f"{program} downloads its program or is not in a sandbox; put the program into the repository"
            )
        files = [name for word in words if (name := self._find_file(word))]
        if program not in _RUNNERS and self._find_file(words[0]) not in files:
            return f"{words[0]} is a program of this machine"
        if not files:
            return "its command names no file of the repository"
        for file in files:
            folder = str(PurePosixPath(file).parent)
            near = [] if folder == "." else list(self._list_files(folder))
            for name in near if len(near) <= SERVER_FILES else [file]:
                if name not in self._result.files:
                    self._take(name, Kind.MCP)
        return ""

    def _find_file(self, word: str) -> str:
        """Return the path of a file of the repository that a word of a command names, or an empty text."""
        for variable in self._setup.project:
            word = word.removeprefix(f"{variable}/")
        path = (self._root / word).resolve()
        if word.startswith(("-", "/", "~")) or not path.is_file() or not path.is_relative_to(self._root):
            return ""
        return os.path.normpath(word)

    def _judge_hook(self, name: str, command: str) -> None:
        try:
            words = shlex.split(command)
        except ValueError:
            words = command.split()
        inside = {path.split("/", 1)[0] for paths in self._setup.paths.values() for path in paths} - {""}
        for number, word in enumerate(words):
            if word.startswith(("~", "$HOME", "/")) and not word.startswith(("/bin/", "/usr/bin/", "/dev/")):
                self._warn(name, f"a hook calls {word}, a path of this machine")
            elif word.split("/", 1)[0] in inside and "/" in word:
                self._warn(name, f"a hook calls {word}; begin it with {self._setup.project[0]}/ to be found")
            elif number == 0 and "/" not in word and word not in _USUAL:
                self._warn(name, f"a hook calls {word}, which an image of tasks may lack")


def _find_commands(value: object) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(value.get("command"), str):
        yield value["command"]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _find_commands(each)


def read_settings(name: str, data: bytes) -> dict[str, Any]:
    """Return the table in a settings file.

    Raises:
        UserError: it is not JSON, TOML or YAML, as its name says, or no table.
    """
    try:
        if name.endswith(".json"):
            table = parse_json(data)
        else:
            table = parse_toml(data) if name.endswith(".toml") else yaml.safe_load(data) or {}
    except (ValueError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{name}: cannot be read: {problem}; mend it before you import it") from error
    if not isinstance(table, dict):
        raise UserError(f"{name}: expected a table at its top; mend it before you import it")
    return table


def write_settings(name: str, table: Mapping[str, Any], before: bytes) -> str:
    """Return settings as text; JSON is indented as it was, so that a patch of it applies to the user's file, too."""
    if name.endswith(".json"):
        indent = re.search(rb"\n([ \t]+)", before)
        return json.dumps(table, indent=indent[1].decode() if indent else 2, ensure_ascii=False) + "\n"
    if name.endswith(".toml"):
        return "".join(f"{format_key([key])} = {format_value(value)}\n" for key, value in table.items())
    return str(yaml.safe_dump(dict(table), sort_keys=False, allow_unicode=True))
