"""The contract in ``agent.toml``: how to start an agent, and which files a child of it may change.

The full text of the contract is ``archive/seeds/README.md``.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.paths import SEEDS
from dgm.toml_files import NotToml, parse_toml

FILE = "agent.toml"
_BOUND = r"[<>=!~]=?=? *[A-Za-z0-9.*+!]+"
PACKAGE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])? *({_BOUND}( *, *{_BOUND})*)?")
AUTO_ACTIONS = "auto"
ACTIONS = (AUTO_ACTIONS, "tools", "text")
KEYS = (
    "name",
    "command",
    "check",
    "actions",
    "requires",
    "editable",
    "protected",
    "ignored",
    "parts",
    "editor",
)
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
    """Patterns that win over ``editable``; ``agent.toml`` is always among them."""
    requires: tuple[str, ...] = ()
    """Python packages, as pip names them, that its sandbox must offer."""
    ignored: tuple[str, ...] = ()
    """Patterns, as in ``.gitignore``, of new files that are never part of the agent's result."""
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
    return Contract(
        command=_words(agent, "command"),
        check=_words(agent, "check"),
        actions=_choice(agent, "actions", ACTIONS),
        editable=_words(agent, "editable", ("**",)),
        protected=tuple(dict.fromkeys((FILE, *_words(agent, "protected", ())))),
        requires=_packages(agent),
        ignored=_litter(agent),
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


def _packages(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the required packages, by name and version only.

    A path, an address or an option would make the host build untrusted code.
    """
    packages = _words(table, "requires", ())
    for package in packages:
        if not PACKAGE.fullmatch(package):
            raise AgentFault(
                "contract",
                f"{FILE}: agent.requires: {package!r} is no package such as 'openai>=3' (names and versions)",
            )
    return packages


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
