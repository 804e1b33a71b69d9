"""TOML: files as editors write them (with or without a byte order mark, with any line ends), and values as text.

A file may come from a stranger, so size, nesting and whole numbers are bounded.
"""

import codecs
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dgm.errors import UserError
from dgm.folders import read_file

LIMIT_BYTES = 2_000_000
MAX_DEPTH = 64
"""Levels of tables and lists, and parts of a dotted key."""
_WHOLE = range(-(2**63), 2**63)
"""Whole numbers of TOML."""
_TOKEN = re.compile(
    r"""\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|#[^\n]*+|[\w-]++|\S""",
    re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
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
        NotToml: the data is not UTF-8, not TOML, or beyond the bounds.
    """
    if len(data) > LIMIT_BYTES:
        raise NotToml(f"larger than {LIMIT_BYTES:,} bytes")
    text = toml_text(data)
    _check_keys(text)
    try:
        table = tomllib.loads(text)
    except RecursionError as error:
        raise NotToml(_TOO_DEEP) from error
    except ValueError as error:  # also of a number with too many digits
        raise NotToml(f"not valid TOML: {error}") from error
    _check_values(table)
    return table


def _check_keys(text: str) -> None:
    """Refuse keys of many parts, for which the parser's time grows with the square of their number.

    Raises:
        NotToml: there is one.
    """
    dots = 0
    for token in _TOKEN.findall(text):
        if token == ".":
            dots += 1
        elif token[0] not in "\"'" and not _BARE.match(token):
            dots = 0
        if dots >= MAX_DEPTH:
            raise NotToml(f"a key has more than {MAX_DEPTH} parts")


def _check_values(table: Mapping[str, Any]) -> None:
    """Refuse deep nesting, on which later code could fail, and numbers that are no TOML.

    Raises:
        NotToml: there is such a value.
    """
    waiting: list[tuple[int, Any]] = [(0, table)]
    while waiting:
        depth, value = waiting.pop()
        if depth > MAX_DEPTH:
            raise NotToml(_TOO_DEEP)
        if isinstance(value, int) and value not in _WHOLE:
            raise NotToml("a whole number does not fit into 64 bits")
        if isinstance(value, dict | list):
            inner = value.values() if isinstance(value, dict) else value
            waiting += [(depth + 1, each) for each in inner]


def read_toml(file: Path) -> dict[str, Any]:
    """Return the table in a TOML file on disk.

    Raises:
        UserError: the file is unreadable, or not TOML; the message names it.
    """
    try:
        return parse_toml(read_file(file, LIMIT_BYTES))
    except NotToml as error:
        raise UserError(f"{file}: {error}") from error


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
