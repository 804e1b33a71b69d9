"""Where settings come from, which source wins, and what is said of wrong ones."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dgm.config.combining import check_together, overlap
from dgm.config.places import make_path_absolute
from dgm.config.settings import Settings
from dgm.errors import UserError
from dgm.toml_files import NotToml, parse_toml, read_toml

KeyPath = tuple[str, ...]
_NO_LIMITS = ("budget.until_score", "budget.patience")
"""Settings of the section ``budget`` whose flags do not begin with ``--max-``."""


def resolve(file: Path | None, assignments: Iterable[str], flags: Mapping[str, Any]) -> Settings:
    """Return the settings from all sources: the file, then the assignments, then the flags. Later sources win.

    Args:
        file: a TOML file, or None. Paths in it are relative to its folder; all others to the working directory.
        assignments: texts ``a.b=c``; the value is read as TOML, or as plain text if it is not TOML.
        flags: dotted key → value; None values are ignored.

    Raises:
        UserError: a source cannot be read, a key is unknown, or a value is invalid, alone or with another.
    """
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for path, value in leaves(read_settings_file(file) if file else {}):
        _assign(merged, path, make_path_absolute(path, value, file.parent) if file else value)
        origin[".".join(path)] = str(file)
    for text in assignments:
        key, found, value = text.partition("=")
        if not found:
            raise UserError(f"--set {text}: expected KEY=VALUE, for example --set policy.alpha=0.5")
        path = key_path(key.strip())
        _assign(merged, path, _parse_value(value.strip()))
        origin[".".join(path)] = "--set"
    for key, value in flags.items():
        if value is not None:
            _assign(merged, tuple(key.split(".")), value)
            limit = "max-" if key.startswith("budget.") and key not in _NO_LIMITS else ""
            origin[key] = f"--{limit}{key.rpartition('.')[2].replace('_', '-')}"
    settings = validate_settings(merged, origin)
    check_together(settings, origin)
    return settings


def resolve_layers(layers: Iterable[tuple[str, Mapping[str, Any]]], folder: Path) -> Settings:
    """Return the settings of several nested tables. Later tables win.

    Args:
        layers: the name of each table's source, for messages, and the table.
        folder: base of the relative paths in the tables.

    Raises:
        UserError: a key is unknown, or a value is invalid, alone or with another.
    """
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for source, table in layers:
        for path, value in leaves(table):
            _assign(merged, path, make_path_absolute(path, value, folder))
            origin[".".join(path)] = source
    settings = validate_settings(merged, origin)
    check_together(settings, origin)
    return settings


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
        raise UserError(_describe_error(first, origin)) from error


def _describe_error(error: ErrorDetails, origin: Mapping[str, str]) -> str:
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    where = next((source for known, source in origin.items() if overlap(known, key)), "settings")
    if error["type"] != "extra_forbidden":
        return f"{where}: {key} = {error['input']!r}: {error['msg'][0].lower()}{error['msg'][1:]}"
    near = difflib.get_close_matches(key, list(_known_keys(Settings, "")), 1, 0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"{where}: unknown setting '{key}'{hint}"


def _known_keys(section: type[BaseModel], prefix: str) -> Iterable[str]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _known_keys(kind, f"{prefix}{name}.")
        else:
            yield prefix + name


def _assign(table: dict[str, Any], path: KeyPath, value: Any) -> None:  # noqa: ANN401  (any TOML value)
    *sections, name = path
    for section in sections:
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            raise UserError(f"setting {'.'.join(path)}: '{section}' is a value, not a section")
        table = inner
    table[name] = value


def _parse_value(text: str) -> Any:  # noqa: ANN401  (any TOML value)
    try:
        return parse_toml(f"v = {text}".encode("utf-8", "surrogateescape"))["v"]
    except NotToml:
        return text
