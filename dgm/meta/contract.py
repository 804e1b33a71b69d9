"""The contract in ``agent.toml``: how to start an agent, and which files a child of it may change.

The full text of the contract is ``archive/seeds/README.md``.
"""

import difflib
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from dgm.archive.volatile_text import check_patterns
from dgm.bounded_reading import plain_requirement
from dgm.config.toml_files import NotToml, parse_toml
from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.paths import SEEDS

FILE = "agent.toml"
AUTO_ACTIONS = "auto"
ACTIONS = (AUTO_ACTIONS, "tools", "text")
KEYS = (
    "name",
    "command",
    "check",
    "actions",
    "requires",
    "image",
    "env",
    "editable",
    "protected",
    "ignored",
    "hidden",
    "trajectory",
    "volatile",
    "parts",
    "editor",
)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
GIVEN = re.compile(
    r"PATH|HOME|PYTHONPATH|PYTHONHOME|DGM_.*|LD_.*"
    r"|(OPENAI|ANTHROPIC|AZURE_OPENAI|AZURE|LITELLM_PROXY)_(BASE_URL|API_.*|AUTH_TOKEN|ENDPOINT)"
    r"|OPENAI_(DEFAULT_)?MODEL|ANTHROPIC_(DEFAULT_[A-Z]+_)?MODEL"
)
"""Variables that are dgm's to set: the model's address, key and name, and how programs are found."""
AGENT_HOME = "/tmp"
"""Home folder of an agent in its sandbox."""
RECIPE = re.compile(r"[a-z0-9][a-z0-9-]*")
NPM_FILES = ("package.json", "package-lock.json")
"""Files that name packages of the npm registry."""
OWN_EDITOR = "self"
EDITORS = (OWN_EDITOR, *SEEDS)
PARTS = ("loop", "tools", "context", "prompts", "memory", "completion")
"""Parts of a scaffold, as the operator ``module`` names them."""


@dataclass(frozen=True, slots=True)
class Contract:
    """The contents of an ``agent.toml``."""

    command: tuple[str, ...]
    """Command that starts the agent in its folder, with the path of the job file as last argument."""
    check: tuple[str, ...]
    """Command that exits 0, without a model, if the agent could work."""
    actions: str = AUTO_ACTIONS
    """Way in which the agent is told to act: ``tools`` (native calls), ``text``, or ``auto``: as the model can."""
    editable: tuple[str, ...] = ("**",)
    """Patterns of paths that a child may change, add or remove."""
    protected: tuple[str, ...] = (FILE,)
    """Patterns that win over ``editable``; ``agent.toml``, the own image's Dockerfile and npm's files always do."""
    requires: tuple[str, ...] = ()
    """Python packages, as pip names them, that its sandbox must offer."""
    image: str = ""
    """Its own image: a Dockerfile of its folder, or a recipe's name; empty: it works in each task's image alone."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that it gets beside those of dgm."""
    npm: bool = False
    """True if its ``package-lock.json`` names packages that its sandbox must offer."""
    ignored: tuple[str, ...] = ()
    """Patterns, as in ``.gitignore``, of new files that are never part of the agent's result."""
    hidden: tuple[str, ...] = ()
    """Patterns of a task repository's files that its program would load as instructions: it works without them."""
    trajectory: str = ""
    """Absolute path of the files in which it tells of its work (``dgm.meta.trajectories``), where ``*`` stands for any
    part of a name and ``**`` for any folders; empty: it writes none."""
    volatile: tuple[str, ...] = ()
    """Regular expressions of what no two of its requests share, such as ids that it invents; a replay and a repetition
    compare requests without it."""
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Map of scaffold part to patterns of its files (``parts``); empty: the names decide."""
    editor: str = OWN_EDITOR
    """Agent that works on this one's source: ``self``, or a shipped one for an agent that cannot edit itself."""

    def may_change(self, path: str) -> bool:
        """Return whether a child may differ from its parent at ``path``."""
        return _matches(path, self.editable) and not _matches(path, self.protected)

    def forbidden_changes(self, before: Snapshot, after: Snapshot) -> list[str]:
        """Return the paths that differ although they may not, sorted."""
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        return sorted(path for path in changed if not self.may_change(path))


def read_contract(source: Snapshot) -> Contract:
    """Return the contract of an agent's source.

    Raises:
        AgentFault: stage ``contract``: there is no ``agent.toml``, or it is invalid.
    """
    if FILE not in source:
        raise AgentFault("contract", f"no {FILE} at the top of the agent's folder")
    try:
        table = parse_toml(source[FILE].data)
    except NotToml as error:
        raise AgentFault("contract", f"{FILE}: {error}") from error
    agent = table.get("agent")
    if not isinstance(agent, dict):
        raise AgentFault("contract", f"{FILE}: no [agent] table")
    for key in agent:
        _check_key(key, KEYS, "agent")
    image = _image(agent, source)
    npm = all(name in source for name in NPM_FILES) and not any(
        path.startswith("node_modules/") for path in source
    )
    fixed = (FILE, *([image] if image in source else ()), *(NPM_FILES if npm else ()))
    return Contract(
        command=_words(agent, "command"),
        check=_words(agent, "check"),
        actions=_choice(agent, "actions", ACTIONS),
        editable=_words(agent, "editable", ("**",)),
        protected=tuple(dict.fromkeys((*fixed, *_words(agent, "protected", ())))),
        requires=_packages(agent),
        image=image,
        env=_variables(agent.get("env", {})),
        npm=npm,
        ignored=_litter(agent),
        hidden=_hidden(agent),
        trajectory=_trajectory(agent.get("trajectory", "")),
        volatile=_volatile(agent),
        parts=_parts(agent.get("parts", {})),
        editor=_choice(agent, "editor", EDITORS),
    )


def _check_key(key: str, known: Sequence[str], table: str) -> None:
    if key not in known:
        near = difflib.get_close_matches(key, known, 1)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        raise AgentFault("contract", f"{FILE}: unknown key '{table}.{key}'{hint}")


def _parts(table: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(table, dict):
        raise AgentFault("contract", f"{FILE}: agent.parts must be a table of lists")
    for name in table:
        _check_key(name, PARTS, "agent.parts")
    return {name: _words(table, name, of="agent.parts") for name in table}


def _litter(table: Mapping[str, Any]) -> tuple[str, ...]:
    patterns = _words(table, "ignored", ())
    for pattern in patterns:
        if "\n" in pattern or not pattern.strip() or pattern.startswith(("!", "#")):
            raise AgentFault(
                "contract", f"{FILE}: agent.ignored: {pattern!r} is no pattern such as '.notes/' or '*.tmp'"
            )
    return patterns


def _hidden(table: Mapping[str, Any]) -> tuple[str, ...]:
    patterns = _words(table, "hidden", ())
    for pattern in patterns:
        parts = pattern.split("/")
        if pattern.startswith("/") or any(
            part in ("", ".", "..") or ("**" in part and part != "**") for part in parts
        ):
            raise AgentFault(
                "contract",
                f"{FILE}: agent.hidden: {pattern!r} is no path such as 'AGENTS.md' or '**/AGENTS.md'",
            )
    return patterns


def _volatile(table: Mapping[str, Any]) -> tuple[str, ...]:
    patterns = _words(table, "volatile", ())
    try:
        check_patterns(patterns)
    except ValueError as error:
        raise AgentFault("contract", f"{FILE}: agent.volatile: {error}") from error
    return patterns


def _packages(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the required packages, by name and version only.

    A path, an address or an option would make the host build untrusted code.
    """
    packages = _words(table, "requires", ())
    for package in packages:
        if not plain_requirement(package):
            raise AgentFault(
                "contract",
                f"{FILE}: agent.requires: {package!r} is no package such as 'openai>=3' (names and versions)",
            )
    return packages


def _image(table: Mapping[str, Any], source: Snapshot) -> str:
    image = table.get("image", "")
    if not isinstance(image, str):
        raise AgentFault("contract", f"{FILE}: agent.image must be a Dockerfile's path or a recipe's name")
    image = image.removeprefix("./")
    if image and image not in source and not RECIPE.fullmatch(image):
        raise AgentFault(
            "contract", f"{FILE}: agent.image: there is no file {image!r}, and it is no recipe's name"
        )
    return image


def _trajectory(path: object) -> str:
    """Return the absolute path, perhaps with wildcards; a relative one is below the agent's folder."""
    if not isinstance(path, str) or "\0" in path:
        raise AgentFault("contract", f"{FILE}: agent.trajectory must be a file's path")
    if path.startswith("~/"):
        path = AGENT_HOME + path[1:]
    found = posixpath.normpath(posixpath.join("/agent", path)) if path else ""
    if found and not found.startswith(("/agent/", "/tmp/", "/job/", "/work/")):
        raise AgentFault(
            "contract",
            f"{FILE}: agent.trajectory: {path!r}: expected a file below /tmp, /work or its own folder",
        )
    return found


def _variables(table: object) -> Mapping[str, str]:
    if not isinstance(table, dict):
        raise AgentFault("contract", f"{FILE}: agent.env must be a table of texts")
    for name, value in table.items():
        if not VARIABLE.fullmatch(name) or not isinstance(value, str) or "\0" in value:
            raise AgentFault("contract", f'{FILE}: agent.env.{name}: expected NAME = "text"')
        if GIVEN.fullmatch(name):
            raise AgentFault("contract", f"{FILE}: agent.env.{name}: is set by dgm; leave it out")
    return dict(table)


def _choice(table: Mapping[str, Any], key: str, choices: Sequence[str]) -> str:
    """Return one of the choices; the first where the key is missing."""
    value = table.get(key, choices[0])
    if value not in choices:
        raise AgentFault(
            "contract", f"{FILE}: agent.{key}: {value!r} is none of {', '.join(map(repr, choices))}"
        )
    return str(value)


def _words(
    table: Mapping[str, Any], key: str, default: tuple[str, ...] | None = None, of: str = "agent"
) -> tuple[str, ...]:
    value = table.get(key, default)
    if value is None:
        raise AgentFault("contract", f"{FILE}: {of}.{key} is missing")
    good = isinstance(value, list | tuple) and all(isinstance(word, str) and word for word in value)
    if not good or (default is None and not value):
        raise AgentFault("contract", f"{FILE}: {of}.{key} must be a list of non-empty strings")
    return tuple(value)


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(_matches_one(path, pattern.removeprefix("./")) for pattern in patterns)


def _matches_one(path: str, pattern: str) -> bool:
    folder = pattern.removesuffix("**").rstrip("/")
    return (
        pattern == "**"
        or fnmatchcase(path, pattern)
        or (pattern.startswith("**/") and fnmatchcase(path, pattern[3:]))
        or ("*" not in folder and path.startswith(folder + "/"))
    )
