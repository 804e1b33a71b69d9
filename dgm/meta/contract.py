"""The contract in ``agent.toml``: how to start an agent, and which files a child of it may change.

The full text of the contract is ``archive/seeds/README.md``.
"""

import difflib
import posixpath
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from dgm.archive.volatile_text import check_patterns
from dgm.bounded_reading import plain_requirement
from dgm.config.toml_files import NotToml, parse_toml
from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.paths import seed_names

FILE = "agent.toml"
AUTO_ACTIONS = "auto"
GIVEN = re.compile(
    r"PATH|HOME|PYTHONPATH|PYTHONHOME|DGM_.*|LD_.*"
    r"|(OPENAI|ANTHROPIC|AZURE_OPENAI|AZURE|LITELLM_PROXY)_(BASE_URL|API_.*|AUTH_TOKEN|ENDPOINT)"
    r"|OPENAI_(DEFAULT_)?MODEL|ANTHROPIC_(DEFAULT_[A-Z]+_)?MODEL"
)
"""Variables that are dgm's to set: the model's address, key and name, and how programs are found."""
NPM_FILES = ("package.json", "package-lock.json")
"""Files that name packages of the npm registry."""
OWN_EDITOR = "self"
Part = Literal["loop", "tools", "context", "prompts", "memory", "completion"]
PARTS: tuple[str, ...] = get_args(Part)
"""Parts of a scaffold, as the operator ``module`` names them."""
_HOME = "/tmp"
"""Home folder of an agent in its sandbox."""
_IMAGE = re.compile(r"[a-z0-9][a-z0-9-]*")
_WORDS = "must be a list of non-empty strings"
_FAULTS = {
    "env": "must be a table of texts",
    "parts": "must be a table of lists",
    "image": "must be a Dockerfile's path or a recipe's name",
    "trajectory": "must be a file's path",
}
"""Key → what a value of another type should be; a list of words for others."""


def _check_packages(packages: tuple[str, ...]) -> tuple[str, ...]:
    # A path, an address or an option would make the host build untrusted code.
    for package in packages:
        if not plain_requirement(package):
            raise ValueError(f"{package!r} is no package such as 'openai>=3' (names and versions)")
    return packages


def _check_ignored(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        if "\n" in pattern or not pattern.strip() or pattern.startswith(("!", "#")):
            raise ValueError(f"{pattern!r} is no pattern such as '.notes/' or '*.tmp'")
    return patterns


def _check_hidden(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        parts = pattern.split("/")
        if any(part in ("", ".", "..") or ("**" in part and part != "**") for part in parts):
            raise ValueError(f"{pattern!r} is no path such as 'AGENTS.md' or '**/AGENTS.md'")
    return patterns


def _check_volatile(patterns: tuple[str, ...]) -> tuple[str, ...]:
    check_patterns(patterns)
    return patterns


def _check_env(env: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in env.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\0" in value:
            raise ValueError(f'{name}: expected NAME = "text"')
        if GIVEN.fullmatch(name):
            raise ValueError(f"{name}: is set by dgm; leave it out")
    return env


def _resolve_trajectory(path: str) -> str:
    """Return the absolute path, perhaps with wildcards; a relative one is below the agent's folder."""
    inside = _HOME + path[1:] if path.startswith("~/") else path
    absolute = posixpath.normpath(posixpath.join("/agent", inside)) if path else ""
    if "\0" in path or (path and not absolute.startswith(("/agent/", "/tmp/", "/job/", "/work/"))):
        raise ValueError(f"{path!r}: expected a file below /tmp, /work or its own folder")
    return absolute


Words = tuple[Annotated[str, Field(min_length=1)], ...]
SomeWords = Annotated[Words, Field(min_length=1)]


class Contract(BaseModel):
    """The contents of an ``agent.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: SomeWords
    """Command that starts the agent in its folder, with the path of the job file as last argument."""
    check: SomeWords
    """Command that exits 0, without a model, if the agent could work."""
    actions: Literal["auto", "tools", "text"] = "auto"
    """Way in which the agent is told to act: ``tools`` (native calls), ``text``, or ``auto``: as the model can."""
    editable: Words = ("**",)
    """Patterns of paths that a child may change, add or remove."""
    protected: Words = (FILE,)
    """Patterns that win over ``editable``; ``agent.toml``, the own image's Dockerfile and npm's files always do."""
    requires: Annotated[Words, AfterValidator(_check_packages)] = ()
    """Python packages, as pip names them, that its sandbox must offer."""
    image: Annotated[str, AfterValidator(lambda image: image.removeprefix("./"))] = ""
    """Its own image: a Dockerfile of its folder, or a recipe's name; empty: it works in each task's image alone."""
    env: Annotated[Mapping[str, str], AfterValidator(_check_env)] = {}
    """Variables that it gets beside those of dgm."""
    ignored: Annotated[Words, AfterValidator(_check_ignored)] = ()
    """Patterns, as in ``.gitignore``, of new files that are never part of the agent's result."""
    hidden: Annotated[Words, AfterValidator(_check_hidden)] = ()
    """Patterns of a task repository's files that its program would load as instructions: it works without them."""
    trajectory: Annotated[str, AfterValidator(_resolve_trajectory)] = ""
    """Absolute path of the files in which it tells of its work (``dgm.meta.trajectories``), where ``*`` stands for any
    part of a name and ``**`` for any folders; empty: it writes none."""
    volatile: Annotated[Words, AfterValidator(_check_volatile)] = ()
    """Regular expressions of what no two of its requests share, such as ids that it invents; a replay and a repetition
    compare requests without it."""
    parts: Mapping[Part, SomeWords] = {}
    """Map of scaffold part to patterns of its files (``dgm.meta.self_edit``); empty: the names decide."""
    name: object = ""
    """A name for people; dgm does not use it."""
    editor: str = OWN_EDITOR
    """Agent that works on this one's source: ``self``, or a shipped one for an agent that cannot edit itself."""
    npm: Annotated[bool, Field(exclude=True)] = False
    """True if its ``package-lock.json`` names packages that its sandbox must offer."""

    def may_change(self, path: str) -> bool:
        """Return whether a child may differ from its parent at ``path``."""
        return matches(path, self.editable) and not matches(path, self.protected)

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
        agent = parse_toml(source[FILE].data).get("agent")
    except NotToml as error:
        raise AgentFault("contract", f"{FILE}: {error}") from error
    if not isinstance(agent, dict):
        raise AgentFault("contract", f"{FILE}: no [agent] table")
    try:
        if "npm" in agent:
            raise _unknown_key(("npm",))
        contract = Contract.model_validate(agent)
    except ValidationError as error:
        raise _describe_error(error) from error
    if contract.editor not in (OWN_EDITOR, *seed_names()):
        editors = ", ".join(map(repr, (OWN_EDITOR, *seed_names())))
        raise AgentFault("contract", f"{FILE}: agent.editor: {contract.editor!r} is none of {editors}")
    image = contract.image
    if image and image not in source and not _IMAGE.fullmatch(image):
        reason = f"{FILE}: agent.image: there is no file {image!r}, and it is no recipe's name"
        raise AgentFault("contract", reason)
    has_modules = any(path.startswith("node_modules/") for path in source)
    npm = all(name in source for name in NPM_FILES) and not has_modules
    fixed = (FILE, *([image] if image in source else ()), *(NPM_FILES if npm else ()))
    protected = tuple(dict.fromkeys((*fixed, *contract.protected)))
    return contract.model_copy(update={"npm": npm, "protected": protected})


def _describe_error(error: ValidationError) -> AgentFault:
    first = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    path = tuple(str(part) for part in first["loc"] if part != "[key]")
    key, kind = ".".join(("agent", *path)), first["type"]
    if kind == "extra_forbidden" or (path[0] == "parts" and kind == "literal_error"):
        return _unknown_key(path)
    if kind == "missing":
        return AgentFault("contract", f"{FILE}: {key} is missing")
    if kind == "literal_error":
        choices = first["ctx"]["expected"].replace(" or ", ", ")
        return AgentFault("contract", f"{FILE}: {key}: {first['input']!r} is none of {choices}")
    if kind == "value_error":
        separator = "." if key == "agent.env" else ": "
        return AgentFault("contract", f"{FILE}: {key}{separator}{first['ctx']['error']}")
    if path[0] == "parts" and len(path) > 1:
        return AgentFault("contract", f"{FILE}: agent.parts.{path[1]} {_WORDS}")
    if path[0] == "env" and len(path) > 1:
        return AgentFault("contract", f'{FILE}: {key}: expected NAME = "text"')
    return AgentFault("contract", f"{FILE}: agent.{path[0]} {_FAULTS.get(path[0], _WORDS)}")


def _unknown_key(path: tuple[str, ...]) -> AgentFault:
    names = PARTS if path[0] == "parts" and len(path) > 1 else [*Contract.model_fields]
    near = difflib.get_close_matches(path[-1], names, 1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return AgentFault("contract", f"{FILE}: unknown key '{'.'.join(('agent', *path))}'{hint}")


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns covers a path: a path, a shell pattern, or a folder."""
    return any(_matches_pattern(path, pattern.removeprefix("./")) for pattern in patterns)


def _matches_pattern(path: str, pattern: str) -> bool:
    folder = pattern.removesuffix("**").rstrip("/")
    return (
        pattern == "**"
        or fnmatchcase(path, pattern)
        or (pattern.startswith("**/") and fnmatchcase(path, pattern[3:]))
        or ("*" not in folder and path.startswith(folder + "/"))
    )
