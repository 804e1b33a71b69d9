"""Every setting as a row for people and programs: its name, type, default and meaning, read from the records."""

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

from pydantic import BaseModel

from dgm.config.settings import MOST, MiningSettings, Section, Settings

MINING = "mining"
"""Section of settings that only a mining has."""
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
    return (*_sections(Settings, ""), *_sections(MiningSettings, MINING))


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
        described = schema["properties"][key]
        if section := _record_in(field.annotation):
            inner.append(
                (f"{prefix}{key}.{NAME}" if _is_mapping(field.annotation) else prefix + key, section)
            )
            continue
        rows.append(
            ListedSetting(
                prefix + key,
                _type_text(described),
                described.get("default"),
                field.is_required(),
                _plain(meanings.get(key, "")),
                _choices(described),
            )
        )
    yield ListedSection(name, _plain((record.__doc__ or "").strip()), tuple(rows))
    for below, section in inner:
        yield from _sections(section, below)


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


def _type_text(schema: Mapping[str, Any]) -> str:
    if either := schema.get("anyOf") or schema.get("oneOf"):
        kinds = [_type_text(kind) for kind in either if kind.get("type") != "null"]
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
            return f"list of: {_type_text(schema.get('items', {}))}"
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
        f"to {high:g}" if high is not None and high < MOST else "",
        f"below {below:g}" if below is not None else "",
    ]
    return "".join(f" {part}" for part in parts if part)


def _plain(text: str) -> str:
    """Return a docstring as one line, code in single backquotes."""
    return " ".join(text.split()).replace("``", "`")


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that dgm reads: a secret or a location, which is no setting of a run."""

    name: str
    meaning: str


OWN_VARIABLES: Sequence[Variable] = (
    Variable("DGM_ARCHIVE", "Folder in which runs are made and looked for; default: ./archive."),
    Variable(
        "DGM_ENGINE",
        "Address of the Docker engine: unix://…, tcp://host:port or ssh://user@host; several with spaces or commas "
        "between them; or of a Ray cluster: ray or ray://host:port. It comes before all others; the "
        "setting engine of a command or call names another.",
    ),
    Variable(
        "DGM_UNBOUNDED",
        "1: run agents on a Docker engine that does not bound their processes or memory; else none runs there.",
    ),
    Variable("DGM_DEBUG", "1: print the traceback of whatever ends a command, before its one line."),
)
"""Variables of dgm itself."""
SYSTEM_VARIABLES: Sequence[Variable] = (
    Variable("HTTPS_PROXY", "Proxy for model calls; NO_PROXY names hosts that are reached without it."),
    Variable("DOCKER_HOST", "Address of the Docker engine; empty is unset."),
    Variable("DOCKER_CONTEXT", "Context of the Docker CLI; default: its current one."),
    Variable("DOCKER_CONFIG", "Folder of the Docker CLI's configuration and contexts; default: ~/.docker."),
    Variable("DOCKER_TLS_VERIFY", "Not empty: encrypt tcp:// addresses, and check who the engine is."),
    Variable(
        "DOCKER_CERT_PATH",
        "Folder with ca.pem, cert.pem and key.pem for tcp:// addresses; default: ~/.docker.",
    ),
    Variable("NO_COLOR", "Not empty: print without colours."),
    Variable("PAGER", "Program with which the browser shows long texts."),
    Variable("LC_ALL", "C or POSIX (also LC_CTYPE and LANG): draw with ASCII alone."),
    Variable(
        "XDG_CACHE_HOME", "Folder for caches (dgm/ below it): downloads, unpacked runs; default: ~/.cache."
    ),
    Variable("XDG_CONFIG_HOME", "Folder for what you agreed to pay for (dgm/ below it); default: ~/.config."),
)
"""Variables of the machine, which other programs read too."""
