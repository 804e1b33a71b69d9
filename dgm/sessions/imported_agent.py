"""A template's files with a user's setup in place of its own: what evolves, what is checked, which version runs."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dgm.archive.snapshots import write_folder
from dgm.bounded_reading import parse_json
from dgm.config.toml_files import format_value, parse_toml
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.meta.contract import FILE, read_contract
from dgm.paths import asset
from dgm.sandboxes.npm_locks import LOCK, MANIFEST, check_lock, first_error
from dgm.sessions.agent_import import ImportedSetup, Remark, import_setup
from dgm.sessions.agent_setups import ON_REQUEST, AgentSetup, Kind, load_setups

CHECK, RECORD = "settings/never_weaker.py", "settings/imported.json"
NPM_S, VERSION_S = 180.0, 20.0
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_LOCK_ONLY = ("--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress")


@dataclass(frozen=True, slots=True)
class ImportedAgent:
    """A user's setup in a new agent."""

    setup: ImportedSetup
    evolves: tuple[str, ...]
    """Patterns of what evolution edits."""
    version: str
    """Version of the program that the agent runs."""
    version_remark: str
    """Where that version comes from, or what to do to have another."""


def import_agent(
    files: dict[str, Entry], template: str, repository: Path, evolve: Sequence[str]
) -> ImportedAgent:
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
        raise UserError(f"--import: the template {template} takes no setup; these do: {', '.join(setups)}")
    setup = setups[template]
    imported = import_setup(repository, setup)
    evolved = [kind for kind in Kind if kind not in ON_REQUEST]
    for name in [name for name in files if setup.has(name, *evolved)]:
        del files[name]
    for name in [name for name in imported.files if name in files and not setup.has(name)]:
        imported.left_out.append(Remark(name, "the template has a file of its own there"))
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
    return ImportedAgent(imported, evolves, version, remark)


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
            raise UserError(f"--evolve: {name!r}: for {template} evolution may edit, too: {known}")
    return [kind for kind in offered if kind in evolve]


def load_check(program: Path) -> Any:  # noqa: ANN401  (a program for sandboxes, which is no module of dgm)
    """Return the check of imported settings as a module."""
    module = ModuleType("never_weaker")
    exec(program.read_bytes(), vars(module))
    return module


def _write_manifest(files: dict[str, Entry], evolves: Sequence[str], fixed: Sequence[str]) -> None:
    """Write to ``agent.toml`` what evolution edits, and let the check begin with that of the settings."""
    text = files[FILE].data.decode("utf-8")
    agent = parse_toml(files[FILE].data)["agent"]
    kept = [path for path in agent.get("protected", []) if path.removesuffix("**") not in evolves]
    values = {
        "check": ["python3", "-I", CHECK, *agent["check"]],
        "editable": list(evolves),
        "protected": list(dict.fromkeys([*kept, *fixed])),
    }
    for key, value in values.items():
        line = f"{key} = {format_value(value)}\n"
        text = re.sub(rf"(?ms)^{key} = \[.*?\]\n", "", text)
        text = text.replace("\n[agent]\n", "\n[agent]\n" + line, 1)
    files[FILE] = Entry(text.encode())


def _pin_version(files: dict[str, Entry], setup: AgentSetup, repository: Path) -> tuple[str, str]:
    """Let the agent run the version that the user has installed, if that is known."""
    place = MANIFEST if MANIFEST in files else FILE
    text = files[place].data.decode("utf-8")
    # An entry of npm is "NAME": "VERSION" or "NAME": "npm:OTHER@VERSION-PLATFORM", one of Python is "NAME==VERSION".
    entry = re.compile(rf'(?<=")({setup.packages})("\s*:\s*"(?:npm:[^"]*@)?|==)({_VERSION.pattern})')
    pinned = max((found[-1] for found in entry.findall(text)), key=_parts, default="")
    installed = find_version(setup, repository)
    if not installed or installed == pinned:
        return pinned, "as installed here" if installed else f"{setup.program} is not installed here"
    changed_text = entry.sub(lambda found: found[0].removesuffix(found[3]) + installed, text)
    changed = {place: Entry(changed_text.encode())}
    if place == MANIFEST:
        try:
            changed[LOCK] = Entry(_lock(changed, installed, repository))
        except (UserError, OSError, subprocess.SubprocessError) as error:
            reason = " ".join(str(error).split())[:150]
            write = f"write it into {place} and run: npm install --package-lock-only"
            return pinned, f"{installed} is installed here; to have it, {write} ({reason})"
    files.update(changed)
    return installed, "as installed here"


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def find_version(setup: AgentSetup, repository: Path) -> str:
    """Return the version that the program on ``PATH`` prints, or an empty text; nothing of the repository is run."""
    program = _find_program(setup.program, repository)
    if not program:
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


def _find_program(name: str, repository: Path) -> str:
    """Return the path of a program on ``PATH``, or an empty text where it is missing or belongs to the repository."""
    program = Path(shutil.which(name) or repository)
    inside = any(path.is_relative_to(repository) for path in (program.absolute(), program.resolve()))
    return "" if inside else str(program)


def _lock(manifest: Snapshot, version: str, repository: Path) -> bytes:
    """Return the lock of a manifest without addresses, as npm makes it.

    Raises:
        UserError: npm is missing or fails, the registry has no package of that version for any platform, or the lock
            names more than packages of a registry.
    """
    npm = _find_program("npm", repository)
    if not npm:
        raise UserError("npm is not installed")
    with tempfile.TemporaryDirectory() as outer:
        draft = Path(outer, "agent")
        write_folder(manifest, draft)
        done = subprocess.run(
            [npm, "install", *_LOCK_ONLY, "--omit-lockfile-registry-resolved"],
            cwd=draft,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=NPM_S,
            check=False,
        )
        if done.returncode:
            raise UserError(first_error(done.stderr.decode("utf-8", "replace")))
        data = (draft / LOCK).read_bytes()
    check_lock(data)
    packages = parse_json(data)["packages"]
    if not any(path and str(entry.get("version")).startswith(version) for path, entry in packages.items()):
        raise UserError("the registry has no such version for Linux")
    return data
