"""Every setting as a row for people and programs: its name, type, default and meaning, read from the records."""

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

from pydantic import BaseModel

from dgm.config.section import Section
from dgm.config.settings import Settings

NAME = "NAME"
"""Stands in a setting's name for what the user names: a model, an operator, an instance."""


@dataclass(frozen=True, slots=True)
class ListedSetting:
    """One setting."""

    name: str
    """Dotted, as ``--set`` takes it."""
    type: str
    """In words: ``whole number from 1``."""
    default: Any
    """The default as JSON; None: nothing is set."""
    required: bool
    meaning: str
    choices: tuple[str, ...]
    """All values, where they are few."""


@dataclass(frozen=True, slots=True)
class ListedSection:
    """Settings that stand in one table of the file."""

    name: str
    """Dotted; empty for those at the top."""
    meaning: str
    settings: tuple[ListedSetting, ...]


def list_sections() -> Sequence[ListedSection]:
    """Return all settings, section by section, in the order of the records."""
    return tuple(_sections(Settings, ""))


def list_settings() -> Sequence[ListedSetting]:
    """Return all settings in one row."""
    return tuple(setting for section in list_sections() for setting in section.settings)


def _sections(record: type[BaseModel], name: str) -> Iterator[ListedSection]:
    schema = record.model_json_schema()
    meanings = _read_meanings(record)
    prefix = f"{name}." if name else ""
    inner: list[tuple[str, type[BaseModel]]] = []
    rows: list[ListedSetting] = []
    for key, field in record.model_fields.items():
        section = _record_in(field.annotation)
        if section is not None and not _is_mapping(field.annotation):
            inner.append((prefix + key, section))
            continue
        described = {**schema["properties"][key], "description": meanings.get(key, "")}
        rows.append(_describe_setting(prefix + key, described, schema, field.is_required()))
        if section is not None and _is_mapping(field.annotation):
            inner.append((f"{prefix}{key}.{NAME}", section))
    yield ListedSection(name, _plain((record.__doc__ or "").strip()), tuple(rows))
    for below, section in inner:
        yield from _sections(section, below)


def _describe_setting(
    name: str, schema: Mapping[str, Any], whole: Mapping[str, Any], required: bool
) -> ListedSetting:
    return ListedSetting(
        name,
        _type_text(schema, whole),
        schema.get("default"),
        required,
        _plain(schema["description"]),
        _choices(schema),
    )


def _read_meanings(record: type[BaseModel]) -> Mapping[str, str]:
    """Return the string under each field in the source of a record, and of those it extends, by the field's name."""
    meanings: dict[str, str] = {}
    for part in reversed([part for part in record.__mro__ if issubclass(part, Section)]):
        (definition,) = ast.parse(inspect.getsource(part)).body
        body = definition.body if isinstance(definition, ast.ClassDef) else []
        for field, below in pairwise(body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(meaning))):
                    meanings[name] = meaning
    return meanings


def _record_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401  (any type)
    """Return the section that a field holds, by itself or as the values of a table; None if it holds none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return _record_in(get_args(annotation)[1]) if _is_mapping(annotation) else None


def _is_mapping(annotation: Any) -> bool:  # noqa: ANN401  (any type)
    return getattr(annotation, "__origin__", None) is Mapping


def _type_text(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        kinds = [_type_text(kind, whole) for kind in schema["anyOf"] if kind.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if choices := _choices(schema):
        return " | ".join(choices)
    match schema.get("type"):
        case "integer":
            return "whole number" + _range(schema)
        case "number":
            return "number" + _range(schema)
        case "string":
            return "text"
        case "array":
            return f"list of: {_type_text(schema.get('items', {}), whole)}"
        case _:
            return "table"


def _choices(schema: Mapping[str, Any]) -> tuple[str, ...]:
    if schema.get("type") == "boolean":
        return ("true", "false")
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    if len(kinds) == 1:
        return _choices(kinds[0])
    return tuple(
        str(value) for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ()))
    )


def _range(schema: Mapping[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    parts = [
        f"from {low:g}" if low is not None else "",
        f"above {above:g}" if above is not None else "",
        f"to {high:g}" if high is not None else "",
        f"below {below:g}" if below is not None else "",
    ]
    return "".join(f" {part}" for part in parts if part)


def _plain(text: str) -> str:
    """Return a docstring as one line, code in single backquotes."""
    return " ".join(text.split()).replace("``", "`")
