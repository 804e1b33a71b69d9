"""A user's setup of a coding agent, taken from a repository into the template that wraps the agent's program.

Only the repository is read, and nothing of it is run. Credentials and values of environment variables are left out.
``agent_setups.toml`` says where each program keeps its setup.
"""

import codecs
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from dgm.bounded_reading import parse_json
from dgm.config.toml_files import format_key, format_value, parse_toml, read_toml
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.exports.scrub import LocalIdentity, Scrubber
from dgm.folders import FILE, PROGRAM, read_file
from dgm.meta.contract import FILE as CONTRACT
from dgm.meta.contract import read_contract
from dgm.paths import asset
from dgm.sandboxes.packages import MANIFEST
from dgm.views.own_agent import ImportedFile, ImportRemark, ImportView

CHECK, RECORD = "settings/never_weaker.py", "settings/imported.json"
VERSION_S = 20.0
_VERSION = re.compile(r"\d+\.\d+\.\d+")
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
_WRITTEN_SECRET = re.compile(
    r"(?i)((?:\bbearer |\w*(?:api_?key|token|secret|password)=|--?[\w-]*(?:api-?key|token|secret|password)[= ]"
    r"|(?<!\S)-u (?=\S+:))[\"']?)(?![$<{`-])[^\s\"'$]{6,}"
)
"""A secret within a command, behind its name; one that a variable holds is none."""
_RUNNERS = frozenset({"python3", "python", "node", "sh", "bash"})
_DOWNLOADERS = frozenset(
    {"npx", "uvx", "uv", "bunx", "bun", "pnpm", "yarn", "pipx", "deno", "docker", "podman"}
)
_USUAL = _RUNNERS | {"git", "test", "[", "echo", "cat", "grep", "sed", "awk", "cd", "exit", "true", "env"}
"""Programs that a hook may call without a remark."""
_MENTION = re.compile(r"(?<![\w`])@((?:[\w.-]+/)*[\w.-]*\w)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_WEB = re.compile(rb"\bWeb(?:Search|Fetch)\b|\bweb_?(?:search|fetch)\b")


class Kind(StrEnum):
    """The purpose of a file of a setup."""

    INSTRUCTIONS = "instructions"
    SKILLS = "skills"
    AGENTS = "sub-agents"
    COMMANDS = "commands"
    HOOKS = "hooks"
    PERMISSIONS = "permissions"
    MCP = "mcp"


ON_REQUEST = (Kind.HOOKS, Kind.PERMISSIONS, Kind.MCP)
"""Kinds that evolution edits only where the user asks for it."""


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """One row of the table, whose head explains the fields."""

    program: str
    packages: str
    paths: Mapping[Kind, tuple[str, ...]]
    servers: str = ""
    left_out: tuple[str, ...] = ()
    project: tuple[str, ...] = ()

    def has(self, name: str, *kinds: Kind) -> bool:
        """Return whether a file is one of these kinds, or of any if none is named, by its path."""
        paths = [path for kind in kinds or Kind for path in self.paths.get(kind, ())]
        return any(name == path or name.startswith(f"{path}/") for path in paths)


@cache
def load_setups() -> Mapping[str, AgentSetup]:
    """Return template → setup of its program."""
    table = read_toml(Path(__file__).with_name("agent_setups.toml"))
    return {
        name: AgentSetup(
            **row | {"paths": {Kind(kind): tuple(paths) for kind, paths in row["paths"].items()}}
        )
        for name, row in table.items()
    }


@dataclass(slots=True)
class ImportedSetup:
    """A user's setup as files of an agent's folder."""

    files: dict[str, Entry] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    """Path of each file → its kind."""
    left_out: list[ImportRemark] = field(default_factory=list)
    out_of_reach: list[ImportRemark] = field(default_factory=list)
    """What cannot work in a sandbox."""


def import_setup(repository: Path, setup: AgentSetup) -> ImportedSetup:
    """Return what a repository holds for one program.

    Raises:
        UserError: the folder is none, holds nothing for the program, or too much, or its settings cannot be read.
    """
    if not repository.is_dir():
        raise UserError(f"{repository}: not a folder; name the repository with your agent's files")
    try:
        result = _Importer(repository.resolve(), setup).run()
    except OSError as error:
        raise UserError(f"{error.filename or repository}: cannot be read: {error.strerror}") from error
    if not result.files:
        wanted = ", ".join(path for paths in setup.paths.values() for path in paths)
        raise UserError(f"{repository}: holds nothing of {setup.program}; looked for {wanted}")
    return result


class _Importer:
    """The import of one setup."""

    def __init__(self, root: Path, setup: AgentSetup) -> None:
        self._root = root
        self._setup = setup
        self._scrubber = Scrubber(LocalIdentity("", "", "", "", LocalIdentity.here().secrets).patterns(()))
        self._result = ImportedSetup()

    def run(self) -> ImportedSetup:
        """Take the files of all kinds, and those that they name."""
        result = self._result
        for kind, paths in self._setup.paths.items():
            for path in paths:
                for file in self._list_files(path):
                    self._take(file, kind)
        # Programs of servers and hooks are theirs, whether or not instructions mention them.
        for name, kind in sorted(result.kinds.items(), key=lambda item: item[1] is Kind.INSTRUCTIONS):
            if kind in (Kind.PERMISSIONS, Kind.MCP) and name.endswith(".yml"):
                self._clean_lines(name)
            elif kind in (Kind.PERMISSIONS, Kind.MCP) and name.endswith((".json", ".toml")):
                self._clean_settings(name)
            elif kind is Kind.INSTRUCTIONS and name.endswith(".md"):
                self._follow_mentions(name)
        for name, kind in result.kinds.items():
            if kind is not Kind.PERMISSIONS and _WEB.search(result.files[name].data):
                self._warn(name, "it names web tools; a sandbox has no network")
        return result

    def _leave_out(self, path: str, reason: str) -> None:
        self._result.left_out.append(ImportRemark(path=path, reason=reason))

    def _warn(self, path: str, reason: str) -> None:
        self._result.out_of_reach.append(ImportRemark(path=path, reason=reason))

    def _list_files(self, name: str, depth: int = 0) -> Iterator[str]:
        path = self._root / name
        real = path.resolve()
        if not real.exists():
            if path.is_symlink():
                self._leave_out(name, "a link that leads nowhere")
        elif not real.is_relative_to(self._root):
            self._leave_out(name, "a link that leads out of the repository")
        elif path.is_symlink() and path.parent.resolve().is_relative_to(real):
            self._leave_out(name, "a link to a folder around it")
        elif real.is_dir() and depth < MAX_DEPTH:
            for item in sorted({item.name for item in real.iterdir()} - _SKIPPED):
                yield from self._list_files(f"{name}/{item}", depth + 1)
        elif _LOCAL.fullmatch(path.name):
            self._leave_out(name, "settings of one machine, or credentials")
        elif not real.is_file() or real.stat().st_size > FILE_BYTES:
            self._leave_out(name, f"no file of at most {FILE_BYTES:,} bytes")
        else:
            yield name

    def _take(self, name: str, kind: Kind) -> None:
        result, path = self._result, (self._root / name).resolve()
        data = read_file(path, FILE_BYTES)
        clean = self._scrubber.clean(data)
        if clean != data:
            self._leave_out(name, "what looks like a key; <key> stands in its place")
        result.files[name] = Entry(clean, PROGRAM if os.access(path, os.X_OK) else FILE)
        result.kinds[name] = kind
        if (
            len(result.files) > MAX_FILES
            or sum(len(entry.data) for entry in result.files.values()) > MAX_BYTES
        ):
            raise UserError(
                f"{self._root / name}: more than {MAX_FILES} files or {MAX_BYTES:,} bytes up to here; "
                "move away what the agent does not need"
            )

    def _follow_mentions(self, name: str) -> None:
        text = _CODE.sub("", self._result.files[name].data.decode("utf-8", "replace"))
        for mention in _MENTION.findall(text):
            target = os.path.normpath(PurePosixPath(name).parent / mention)
            if target.startswith("..") or target in self._result.files or not _is_file(self._root / target):
                continue
            for file in self._list_files(target):
                self._take(file, Kind.INSTRUCTIONS)
                self._follow_mentions(file)

    def _clean_lines(self, name: str) -> None:
        """Leave keys at the top of a YAML file out, with the indented lines and lists below them."""
        entry, kept, drops = self._result.files[name], [], False
        for line in entry.data.decode("utf-8", "replace").splitlines(keepends=True):
            if key := re.match(r"[\"']?([\w-]+)[\"']?\s*:", line):
                drops = key[1] in self._setup.left_out or bool(_SECRET.search(key[1]))
                if drops:
                    self._leave_out(name, f"{key[1]}: dgm sets it, or it is not for a sandbox")
            kept += [] if drops else [_hide_secrets(line)]
        self._result.files[name] = Entry("".join(kept).encode(), entry.mode)

    def _clean_settings(self, name: str) -> None:
        entry = self._result.files[name]
        table = _read_settings(name, entry.data)
        before = json.dumps(table, default=str)
        for key in self._setup.left_out:
            if table.pop(key, None) is not None:
                self._leave_out(name, f"{key}: dgm sets it, or it is not for a sandbox")
        servers = table.get(self._setup.servers)
        servers = servers if isinstance(servers, dict) else {}
        for server, words in list(servers.items()):
            if reason := self._judge_server(words):
                del servers[server]
                self._warn(name, f"MCP server {server} is left out: {reason}")
        self._drop_values(name, table, "")
        for command in _find_commands(table.get("hooks")):
            self._judge_hook(name, command)
        if json.dumps(table, default=str) != before or entry.data.startswith(codecs.BOM_UTF8):
            self._result.files[name] = Entry(_write_settings(name, table, entry.data), entry.mode)

    def _drop_values(self, name: str, table: dict[str, Any], where: str) -> None:
        for key, value in list(table.items()):
            values = isinstance(value, dict) and key in _VALUES
            if values or (isinstance(value, str) and _SECRET.search(key)):
                del table[key]
                self._leave_out(name, f"values of {where}{key}: {', '.join(value) if values else key}")
            elif isinstance(value, dict):
                self._drop_values(name, value, f"{where}{key}.")
            elif (clean := _hide_secrets(value)) != value:
                table[key] = clean
                self._leave_out(name, f"{where}{key}: what looks like a secret; <key> stands in its place")

    def _judge_server(self, server: object) -> str:
        """Return why a server cannot start in a sandbox; take its program's files if it can."""
        table = server if isinstance(server, dict) else {}
        command, arguments = table.get("command") or [], table.get("args") or []
        words = [
            word for part in (command, arguments) for word in (part if isinstance(part, list) else [part])
        ]
        if not words or not all(isinstance(word, str) for word in words):
            return "a sandbox has no network" if table.get("url") else "it has no command"
        program, files = (
            PurePosixPath(words[0]).name,
            [name for word in words if (name := self._find_file(word))],
        )
        if program in _DOWNLOADERS:
            return f"{program} downloads programs or is missing in a sandbox; put the program into the repository"
        if not files or (program not in _RUNNERS and not self._find_file(words[0])):
            return f"{' '.join(words)[:200]} is no program of the repository"
        for file in files:
            folder = str(PurePosixPath(file).parent)
            nearby = [] if folder == "." else list(self._list_files(folder))
            for name in {*(nearby if len(nearby) <= SERVER_FILES else ()), file} - {*self._result.files}:
                self._take(name, Kind.MCP)
            self._result.kinds[file] = Kind.MCP
        return ""

    def _find_file(self, word: str) -> str:
        """Return the path of a file of the repository that a word of a command names, or an empty text."""
        for variable in self._setup.project:
            word = word.removeprefix(f"{variable}/")
        path = self._root / word
        if word.startswith(("-", "/", "~")) or not _is_file(path):
            return ""
        return os.path.normpath(word) if path.resolve().is_relative_to(self._root) else ""

    def _judge_hook(self, name: str, command: str) -> None:
        try:
            words = shlex.split(command)
        except ValueError:
            words = command.split()
        for number, word in enumerate(words):
            if (file := self._find_file(word)) in self._result.files:
                self._result.kinds[file] = Kind.HOOKS
            if word.startswith(("~", "$HOME", "/")) and not word.startswith(("/bin/", "/usr/bin/", "/dev/")):
                self._warn(name, f"a hook calls {word}, a path of this machine")
            elif self._setup.has(word.removeprefix("./")):
                hint = f"; begin it with {project[0]}/" if (project := self._setup.project) else ""
                self._warn(name, f"a hook calls {word}, which a sandbox hides{hint}")
            elif number == 0 and "/" not in word and word not in _USUAL:
                self._warn(name, f"a hook calls {word}, which an image of tasks may lack")


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  (``Path.is_file`` raises for a text that can be no path)


def _hide_secrets(value: Any) -> Any:  # noqa: ANN401  (any JSON)
    """Return a value of settings with placeholders for the secrets in its texts and lists of arguments."""
    if isinstance(value, dict):
        return {key: _hide_secrets(inner) for key, inner in value.items()}
    if isinstance(value, list):
        named = [
            False,
            *(isinstance(word, str) and word[:1] == "-" and _SECRET.search(word) for word in value),
        ]
        return [
            "<key>" if name and isinstance(word, str) and word[:1] not in "$<" else _hide_secrets(word)
            for name, word in zip(named, value, strict=False)
        ]
    return _WRITTEN_SECRET.sub(r"\1<key>", value) if isinstance(value, str) else value


def _find_commands(value: object) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(value.get("command"), str):
        yield value["command"]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _find_commands(inner)


def _read_settings(name: str, data: bytes) -> dict[str, Any]:
    try:
        table = parse_json(data) if name.endswith(".json") else parse_toml(data)
    except ValueError as error:
        raise UserError(f"{name}: cannot be read: {error}; mend it before you import it") from error
    if not isinstance(table, dict):
        raise UserError(f"{name}: expected a table at its top; mend it before you import it")
    return table


def _write_settings(name: str, table: dict[str, Any], before: bytes) -> bytes:
    """Return settings as text; JSON is indented as it was, so that a patch of it applies to the user's file, too."""
    if name.endswith(".toml"):
        return "".join(
            f"{format_key([key])} = {format_value(value)}\n" for key, value in table.items()
        ).encode()
    indent = re.search(rb"\n([ \t]+)", before)
    return (json.dumps(table, indent=indent[1].decode() if indent else 2, ensure_ascii=False) + "\n").encode()


def import_agent(
    files: dict[str, Entry], template: str, repository: Path, evolve: Sequence[str]
) -> ImportView:
    """Put the setup of a repository in place of a template's own files.

    Args:
        files: of the template; changed in place.
        template: its name.
        repository: the user's.
        evolve: kinds of ``ON_REQUEST`` that evolution may edit, too.

    Raises:
        UserError: the template wraps no program, a kind is unknown or has no files, or as ``import_setup``.
    """
    setups = load_setups()
    if template not in setups:
        raise UserError(
            f"the template {template} takes no setup; these do: {', '.join(setups)}", argument="repository"
        )
    setup = setups[template]
    imported = import_setup(repository, setup)
    evolved = [kind for kind in Kind if kind not in ON_REQUEST]
    for name in [name for name in files if setup.has(name, *evolved)]:
        del files[name]
    for name in [name for name in imported.files if name in files and not setup.has(name)]:
        imported.left_out.append(ImportRemark(path=name, reason="the template has a file of its own there"))
        del imported.files[name], imported.kinds[name]
    files.update(imported.files)
    patterns = _patterns_of(setup, imported)
    evolved += _choose_kinds(evolve, patterns, template)
    unclear = _add_check(files, setup)
    contract = read_contract(files)
    chosen = [path for kind in patterns if kind in evolved for path in patterns[kind] if path not in unclear]
    used = [path for path in chosen if any(name.startswith(path) for name in files)]
    evolves = (
        *contract.editable,
        *(path for path in used if not contract.may_change(re.sub("/$", "/new", path))),
    )
    fixed = [path for kind in patterns if kind not in evolved for path in patterns[kind]]
    version, remark = _pin_version(files, setup, repository.resolve())
    _write_manifest(files, evolves, ["settings/", *unclear, *fixed])
    return ImportView(
        taken=tuple(ImportedFile(path=path, kind=kind) for path, kind in imported.kinds.items()),
        left_out=tuple(imported.left_out),
        out_of_reach=tuple(imported.out_of_reach),
        evolves=evolves,
        version=version,
        version_remark=remark,
    )


def _add_check(files: dict[str, Entry], setup: AgentSetup) -> list[str]:
    """Add the check that nothing becomes weaker; return the files of which it cannot tell."""
    settings = {
        name: parse_json(entry.data)
        for name, entry in files.items()
        if name.endswith(".json") and setup.has(name, Kind.PERMISSIONS, Kind.MCP)
    }
    program = asset("archive", "templates", Path(CHECK).name)
    read_front_matter = load_check(program).read_front_matter
    front_matter: dict[str, Any] = {}
    for name in [name for name in files if name.endswith((".md", ".mdc"))]:
        try:
            front_matter[name] = read_front_matter(files[name].data.decode("utf-8"))
        except ValueError:
            front_matter[name] = None
    record = {"settings": settings, "front_matter": front_matter}
    files[RECORD] = Entry(json.dumps(record, indent=1).encode())
    files[CHECK] = Entry(program.read_bytes())
    return [name for name, grants in front_matter.items() if grants is None]


def accept_settings(files: Snapshot) -> Snapshot:
    """Return an agent whose check takes its settings as they are now, such as one without a hook."""
    if RECORD not in files:
        return files
    record = parse_json(files[RECORD].data)
    settings = {name: parse_json(files[name].data) for name in record["settings"] if name in files}
    if settings == record["settings"]:
        return files
    return {**files, RECORD: Entry(json.dumps({**record, "settings": settings}, indent=1).encode())}


def _patterns_of(setup: AgentSetup, imported: ImportedSetup) -> Mapping[Kind, Sequence[str]]:
    """Return kind → patterns of its files, those that are taken from other places by their paths."""
    patterns: dict[Kind, list[str]] = {}
    for kind, paths in setup.paths.items():
        patterns[kind] = [path if "." in path.rpartition("/")[2][1:] else f"{path}/" for path in paths]
    for name, kind in imported.kinds.items():
        if not setup.has(name, kind):
            patterns.setdefault(kind, []).append(name)
    return patterns


def _choose_kinds(
    evolve: Sequence[str], patterns: Mapping[Kind, Sequence[str]], template: str
) -> Sequence[Kind]:
    """Return the kinds that the user asks for; of permissions only JSON can be checked."""
    offered = [kind for kind in ON_REQUEST if patterns.get(kind)]
    if not all(path.endswith(".json") for path in patterns.get(Kind.PERMISSIONS, ())):
        offered.remove(Kind.PERMISSIONS)
    for name in evolve:
        if name not in offered:
            known = ", ".join(offered) or "nothing"
            raise UserError(f"{name!r}: for {template} evolution may edit, too: {known}", argument="evolve")
    return [kind for kind in offered if kind in evolve]


def load_check(program: Path) -> Any:  # noqa: ANN401  (a program for sandboxes, which is no module of dgm)
    """Return the check of imported settings as a module."""
    module = ModuleType("never_weaker")
    exec(program.read_bytes(), vars(module))
    return module


def _write_manifest(files: dict[str, Entry], evolves: Sequence[str], fixed: Sequence[str]) -> None:
    """Write to ``agent.toml`` what evolution edits, and let the check begin with that of the settings."""
    text = files[CONTRACT].data.decode("utf-8")
    agent = parse_toml(files[CONTRACT].data)["agent"]
    protected = [path for path in agent.get("protected", []) if path.removesuffix("**") not in evolves]
    values = {
        "check": ["python3", "-I", CHECK, *agent["check"]],
        "editable": list(evolves),
        "protected": list(dict.fromkeys([*protected, *fixed])),
    }
    for key, value in values.items():
        line = f"{key} = {format_value(value)}\n"
        text = re.sub(rf"(?ms)^{key} = \[.*?\]\n", "", text)
        text = text.replace("\n[agent]\n", "\n[agent]\n" + line, 1)
    files[CONTRACT] = Entry(text.encode())


def _pin_version(files: dict[str, Entry], setup: AgentSetup, repository: Path) -> tuple[str, str]:
    """Let the agent run the version that the user has installed, if that is known and takes no lock of npm."""
    file = MANIFEST if MANIFEST in files else CONTRACT
    text = files[file].data.decode("utf-8")
    # An entry of npm is "NAME": "VERSION" or "NAME": "npm:OTHER@VERSION-PLATFORM", one of Python is "NAME==VERSION".
    entry = re.compile(rf'(?<=")({setup.packages})("\s*:\s*"(?:npm:[^"]*@)?|==)({_VERSION.pattern})')
    versions = [match[-1] for match in entry.findall(text)]
    pinned = max(versions, key=lambda version: [int(part) for part in version.split(".")], default="")
    installed = find_version(setup, repository)
    if not installed:
        return pinned, f"{setup.program} is not installed here"
    if installed != pinned and file == MANIFEST:
        advice = f"write it into {MANIFEST} and run: npm install --package-lock-only"
        return pinned, f"{installed} is installed here; to have it, {advice}"
    files[file] = Entry(entry.sub(lambda match: match[0].removesuffix(match[3]) + installed, text).encode())
    return installed, "as installed here"


def find_version(setup: AgentSetup, repository: Path) -> str:
    """Return the version that the program on ``PATH`` prints, or an empty text; nothing of the repository is run."""
    program = Path(shutil.which(setup.program) or repository)
    if any(path.is_relative_to(repository) for path in (program.absolute(), program.resolve())):
        return ""
    try:
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(
                [program, "--version"],
                cwd=empty,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=VERSION_S,
                check=False,
            )
    except (OSError, subprocess.SubprocessError):
        return ""
    version = _VERSION.search(done.stdout.decode("utf-8", "replace"))
    return version[0] if version else ""
