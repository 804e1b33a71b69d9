"""TOML: files as editors write them (with or without a byte order mark, with any line ends), and values as text."""

import codecs
import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dgm.errors import UserError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_OTHERS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


class NotToml(ValueError):
    """A text is not TOML; the message says in a few words what is wrong."""


def toml_text(data: bytes) -> str:
    """Return the text of a TOML file, with line feeds as its line ends.

    Raises:
        NotToml: the data is not UTF-8.
    """
    for mark, name in _OTHERS.items():
        if data.startswith(mark):
            raise NotToml(f"it is {name}; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise NotToml(
            f"not UTF-8 (byte 0x{data[error.start]:02x} at line {line}); save it as UTF-8"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_toml(data: bytes) -> dict[str, Any]:
    """Return the table in the data of a TOML file.

    Raises:
        NotToml: the data is not UTF-8, or not TOML.
    """
    try:
        return tomllib.loads(toml_text(data))
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"not valid TOML: {error}") from error


def read_toml(file: Path) -> dict[str, Any]:
    """Return the table in a TOML file on disk.

    Raises:
        UserError: the file is unreadable, or not TOML; the message names it.
    """
    try:
        return parse_toml(file.read_bytes())
    except NotToml as error:
        raise UserError(f"{file}: {error}") from error
    except FileNotFoundError as error:
        raise UserError(f"{file}: missing") from error
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror or error}") from error


def format_key(path: Sequence[str]) -> str:
    """Return the dotted key of a value in nested tables, as TOML writes it."""
    return ".".join(part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path)


def format_value(value: object) -> str:
    """Return a value as TOML writes it; None as ``nothing``, for messages, because TOML has no null."""
    match value:
        case bool():
            return str(value).lower()
        case list():
            return "[" + ", ".join(map(format_value, value)) + "]"
        case dict():
            pairs = (f"{format_key([name])} = {format_value(each)}" for name, each in value.items())
            return "{" + ", ".join(pairs) + "}"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case None:
            return "nothing"
        case _:
            return repr(value)
