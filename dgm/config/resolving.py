"""Where settings come from, which source wins, what is said of wrong ones, and names of earlier versions."""

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dgm.config.listing import MINING, NAME, list_settings
from dgm.config.settings import KINDS, GateSettings, MiningSettings, ProviderSettings, Section, Settings
from dgm.config.toml_files import NotToml, parse_toml, read_toml
from dgm.errors import UserError
from dgm.paths import asset, preset_file, preset_names, seed_names

KeyPath = tuple[str, ...]
ARGUMENTS = {
    "seed_agent": "agent",
    "policy.name": "policy",
    "budget.usd": "max_usd",
    "budget.evaluations": "max_evaluations",
    "sinks.to": "sink",
    "notify.to": "notify",
}
"""Setting → parameter of ``dgm.evolve`` that gives it, if it has another name."""


class _Parameter(str):
    """Source of a setting: a parameter, not a file."""

    __slots__ = ()


_SETTINGS = _Parameter("settings")


_FORMER_SECTIONS = {name: name for name in KINDS if name != "openai-compatible"} | {
    "compatible": "openai-compatible"
}
"""Section of ``models`` before version 2 of the settings → section of ``providers``."""
_GONE = frozenset({
    ("scale", "speculate"),
    ("scale", "cache_mb"),
    ("scale", "registry"),
    ("scale", "images_gb"),
    ("scale", "lease_s"),
    ("scale", "demand"),
    ("limits", "log_bytes"),
    ("limits", "workspace_bytes"),
    ("evidence", "transcript_bytes"),
    ("evidence", "layout"),
    ("providers", "azure", "api_version"),
    ("providers", "bedrock", "profile"),
    *(("providers", name, "waiting") for name in KINDS),
})  # fmt: skip
_BEFORE_VETTING: Mapping[str, Mapping[str, Any]] = {
    "vetting": {"patch": False, "syntax": False, "probes": 0},
    "evidence": {"ancestors": 0, "others": 0},
}
"""Values for runs that are older than the settings of making children."""

log = logging.getLogger(__name__)


def resolve(
    file: Path | None,
    settings: Iterable[str] | Mapping[str, Any],
    arguments: Mapping[str, Any],
    preset: str | None = None,
) -> Settings:
    """Return the settings from all sources: preset, file, settings, arguments. Later sources win.

    Args:
        file: a TOML file, or None. Paths in it are relative to its folder; all others to the working directory.
        settings: dotted key → value or table; or texts ``a.b=c``, with a value in TOML, or plain text.
        arguments: dotted key → value of a parameter; None values are ignored.
        preset: one of ``preset_names``, or None.

    Raises:
        UserError: a source cannot be read, a key is unknown, or a value is invalid, alone or with another.
    """
    merged = _MergedSettings()
    if preset is not None:
        if preset not in preset_names():
            known = ", ".join(preset_names())
            raise UserError(f"there is no preset {preset!r}; there are {known}", argument="preset")
        shipped = preset_file(preset)
        merged.add_table(f"preset {preset}", read_toml(shipped), shipped.parent)
    if file:
        merged.add_table(str(file), read_settings_file(file), file.parent)
    for key, value in settings.items() if isinstance(settings, Mapping) else map(_parse_assignment, settings):
        path = key_path(key)
        for inner, leaf in leaves(value, path) if isinstance(value, Mapping) and value else [(path, value)]:
            merged.add(_SETTINGS, inner, leaf)
        merged.set_origin(_SETTINGS, path)
    for key, value in arguments.items():
        if value is not None:
            merged.add(_Parameter(ARGUMENTS.get(key, key)), tuple(key.split(".")), value)
    return merged.validate()


def resolve_mining(
    settings: Iterable[str] | Mapping[str, Any],
) -> tuple[MiningSettings, Mapping[str, Any]]:
    """Return the settings of a mining, and all other settings by dotted key; arguments as in ``resolve``.

    Raises:
        UserError: a key of a mining is unknown, or a value is invalid.
    """
    values, others = dict[str, Any](), dict[str, Any]()
    for key, value in settings.items() if isinstance(settings, Mapping) else map(_parse_assignment, settings):
        section, *name = key_path(key)
        if section != MINING:
            others[key] = value
        elif name:
            values[".".join(name)] = value
        else:
            values |= value
    try:
        return _Mining.model_validate({MINING: values}).mining, others
    except ValidationError as error:
        raise _describe_error(error.errors()[0], {MINING: _SETTINGS}) from error


class _Mining(Section):
    mining: MiningSettings


def _parse_assignment(text: str) -> tuple[str, Any]:
    key, found, value = text.partition("=")
    if not found:
        raise UserError(f"{text!r}: expected KEY=VALUE, for example policy.alpha=0.5", argument="set")
    return key.strip(), parse_value(value.strip())


class _MergedSettings:
    """Settings of several sources, with the source of each."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._origin: dict[str, str] = {}
        self._former: dict[str, str] = {}

    def add_table(self, source: str, table: Mapping[str, Any], folder: Path) -> None:
        for path, value in leaves(table):
            self.add(source, path, make_path_absolute(path, value, folder))

    def add(self, source: str, path: KeyPath, value: object) -> None:
        new = _present_path(path)
        if new != path or new in _GONE:
            now = "gone, and ignored" if new in _GONE else f"now {'.'.join(new)}"
            self._former[f"{source}: {'.'.join(path)}"] = now
        if new not in _GONE:
            _assign(self._values, new, value)
            self._origin[".".join(new)] = source

    def set_origin(self, source: str, path: KeyPath) -> None:
        self._origin[".".join(_present_path(path))] = source

    def validate(self) -> Settings:
        if self._former:
            _warn_once("; ".join(f"{name} is {now}" for name, now in self._former.items()))
        settings = validate_settings(self._values, self._origin)
        for key, wrong in _conflicts(settings):
            raise _make_error(key.partition(" ")[0], f"{key}: {wrong}", self._origin)
        return settings


@cache
def _warn_once(text: str) -> None:
    """Log a warning, but not again for each run of a sweep."""
    log.warning("%s", text)


def read_frozen(record: Mapping[str, Any], source: str) -> Settings:
    """Return frozen settings of this or an earlier version of dgm, which mean what they meant to it.

    Args:
        record: ``settings`` of a ``run.json``; not changed.
        source: the file, for messages.

    Raises:
        UserError: a value is invalid.
    """
    now: dict[str, Any] = {}
    usual = ProviderSettings().model_dump(mode="json")
    for path, value in leaves(record):
        new = _present_path(path)
        # Former versions froze all that may be said of all providers.
        if new not in _GONE and (new == path or value != usual.get(new[-1])):
            _assign(now, new, value)
    if "vetting" not in record:
        now |= {name: {**now.get(name, {}), **was} for name, was in _BEFORE_VETTING.items()}
    return validate_settings(now, {"": source})


def _present_path(path: KeyPath) -> KeyPath:
    """Return the present name of a setting that an earlier version may have named otherwise."""
    if path[0] == "models" and path[1:2] and path[1] in _FORMER_SECTIONS:
        return ("providers", _FORMER_SECTIONS[path[1]], *path[2:])
    return path


def read_settings_file(file: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        UserError: the file does not exist, or is not TOML.
    """
    if not file.exists():
        raise UserError(f"{file}: no such settings file")
    return read_toml(file)


def leaves(table: Mapping[str, Any], prefix: KeyPath = ()) -> Iterable[tuple[KeyPath, Any]]:
    """Yield each value of a nested table that is not a table itself, with the keys that lead to it."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def key_path(key: str) -> KeyPath:
    """Return the parts of a dotted key; a part that contains dots is quoted, as in TOML."""
    try:
        inner: Any = parse_toml(f"{key} = 0".encode("utf-8", "surrogateescape"))
    except NotToml:
        return tuple(key.split("."))
    path: list[str] = []
    while isinstance(inner, dict) and inner:
        name, inner = next(iter(inner.items()))
        path.append(name)
    return tuple(path or [key])


def validate_settings(values: Mapping[str, Any], origin: Mapping[str, str]) -> Settings:
    """Return the settings of a nested mapping; ``origin`` names the source of a dotted key for messages.

    Raises:
        UserError: a key is unknown or a value is invalid; the message names the first fault, in one line.
    """
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise _describe_error(first, origin) from error


def _describe_error(error: ErrorDetails, origin: Mapping[str, str]) -> UserError:
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    if error["type"] != "extra_forbidden":
        inner = next((name for name in _known_keys(path) if name.startswith(f"{key}.")), "")
        if error["type"] == "model_type" and inner:
            return _make_error(key, f"{key} is a section; set a key in it, such as {inner}", origin)
        message = error["msg"].removeprefix("Value error, ")
        return _make_error(key, f"{key} = {error['input']!r}: {message[0].lower()}{message[1:]}", origin)
    near = difflib.get_close_matches(key, list(_known_keys(path)), 1, 0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return _make_error(key, f"unknown setting '{key}'{hint}", origin)


def _make_error(key: str, problem: str, origin: Mapping[str, str]) -> UserError:
    source = next((source for known, source in origin.items() if _overlap(known, key)), "settings")
    if not isinstance(source, _Parameter):
        return UserError(f"{source}: {problem}")
    argument = source if source != _SETTINGS else key if "." in key else ""
    return UserError(problem.removeprefix(f"{key} = ") if argument else problem, argument=argument)


def _known_keys(path: list[str]) -> Iterator[str]:
    """Yield the names of all settings; where a name is the user's, that of the path."""
    for setting in list_settings():
        parts = setting.name.split(".")
        yield ".".join(
            path[place] if part == NAME and place < len(path) else part for place, part in enumerate(parts)
        )


def _assign(table: dict[str, Any], path: KeyPath, value: Any) -> None:  # noqa: ANN401  (any TOML value)
    *sections, name = path
    for section in sections:
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            raise UserError(f"setting {'.'.join(path)}: '{section}' is a value, not a section")
        table = inner
    table[name] = value


def parse_value(text: str) -> Any:  # noqa: ANN401  (any TOML value)
    """Return a value that is written as TOML, or as plain text."""
    try:
        return parse_toml(f"v = {text}".encode("utf-8", "surrogateescape"))["v"]
    except NotToml:
        return text


def _overlap(known: str, key: str) -> bool:
    """Return whether two dotted keys are equal, or one of them lies below the other."""
    return f"{known}.".startswith(f"{key}.") or f"{key}.".startswith(f"{known}.")


def _conflicts(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield settings, each valid alone, that must not stand together: a key with its value, and what is wrong."""
    budget, gates = settings.budget, settings.gates
    if budget.expansion_cost and budget.budget().evaluations is None:
        yield (
            f"budget.expansion_cost = {budget.expansion_cost:g}",
            "there is no budget of evaluations to take it of; set budget.evaluations too",
        )
    yield from _operator_conflicts(settings)
    if gates.novelty == "off" and gates.novelty_threshold != GateSettings().novelty_threshold:
        yield (
            f"gates.novelty_threshold = {gates.novelty_threshold:g}",
            "nothing is compared; set gates.novelty = 'similarity' or 'model' too",
        )
    if gates.approve_s is not None and not gates.approve:
        yield f"gates.approve_s = {gates.approve_s:g}", "nobody is asked; set gates.approve = true too"
    if gates.on_timeout is not None and gates.approve_s is None:
        yield (
            f"gates.on_timeout = {gates.on_timeout!r}",
            "children wait without end; set gates.approve_s too",
        )


def _operator_conflicts(settings: Settings) -> Iterator[tuple[str, str]]:
    names, operators = settings.operator_names, settings.operators
    key = f"operator = {settings.operator!r}"
    if not all(names):
        yield key, "an operator without a name; write one, or several joined by '+'"
    if twice := next((name for name in names if names.count(name) > 1), None):
        yield key, f"'{twice}' is named twice; operators.weights says which is chosen more often"
    if operators.choice == "bandit" and len(names) == 1:
        yield "operators.choice = 'bandit'", "there is one operator only; name several, joined by '+'"
    if operators.promises and operators.choice != "bandit":
        yield "operators.promises = true", "only the bandit heeds it; set operators.choice = 'bandit' too"
    for name, weight in operators.weights.items():
        if name not in names:
            yield f"operators.weights.{name} = {weight:g}", "the setting 'operator' does not name it"
        if operators.choice == "bandit":
            yield (
                f"operators.weights.{name} = {weight:g}",
                "a bandit has no weights; use operators.choice = 'fixed'",
            )


_URL = re.compile(r"[a-z+]+://|[\w.-]+@[\w.-]+:")
"""Addresses that git clones from elsewhere."""


def make_path_absolute(key: tuple[str, ...], value: object, folder: Path) -> Any:  # noqa: ANN401  (any TOML value)
    """Return the value of a setting; a path that it names is made absolute.

    Args:
        key: the parts of the setting's dotted name.
        value: the value in the file.
        folder: the folder of the settings file.
    """
    if isinstance(value, list):
        return [make_path_absolute(key, part, folder) for part in value]
    place = _PLACES.get(".".join(key))
    return place(value, folder) if place and isinstance(value, str) else value


def _seed_agent(value: str, folder: Path) -> str:
    # Shipped agents win over folders of the same name, as on the command line.
    return value if value in seed_names() or _URL.match(value) else _absolute(value, folder)


def _benchmark(value: str, folder: Path) -> str:
    """Make the paths among the parts of ``A+B`` absolute; keep an existing path whole that contains a ``+``."""
    words, found = value.split("+"), list[str]()
    while words:
        long = [n for n in range(len(words), 1, -1) if _exists("+".join(words[:n]), folder)]
        taken = long[0] if long else 1
        found.append(_part("+".join(words[:taken]), folder))
        words = words[taken:]
    return "+".join(found)


def _part(name: str, folder: Path) -> str:
    kind, colon, rest = name.partition(":")
    if colon:
        named = not rest or _URL.match(rest) or not (_exists(name, folder) or _is_path(rest))
        return name if named else f"{kind}:{_absolute(rest, folder)}"
    # Shipped suites win over folders of the same name, as on the command line.
    if (asset("benchmarks", name) / "suite.toml").is_file():
        return name
    beside = (folder / name / "suite.toml").is_file()
    return _absolute(name, folder) if beside or _is_path(name) else name


def _subset(value: str, folder: Path) -> str:
    return _absolute(value, folder) if value.endswith(".toml") or "/" in value else value


def _exists(name: str, folder: Path) -> bool:
    kind, colon, rest = name.partition(":")
    there = folder / Path(rest if colon else kind).expanduser()
    # Data sets of SWE-bench are named by one word, as ``swebench:lite``.
    return there.exists() if kind != "swebench" else there.is_file() and bool(there.suffix)


def _is_path(text: str) -> bool:
    return text.startswith(("~", ".")) or "/" in text


def _absolute(text: str, folder: Path) -> str:
    return str(folder.absolute() / Path(text).expanduser())


def _sink(value: str, folder: Path) -> str:
    scheme, _, rest = value.partition(":")
    return f"{scheme}:{_absolute(rest, folder)}" if scheme == "tensorboard" and rest else value


_PLACES: Mapping[str, Callable[[str, Path], str]] = {
    "benchmark": _benchmark,
    "seed_agent": _seed_agent,
    "benchmarks.swebench.subset": _subset,
    "sinks.to": _sink,
}
