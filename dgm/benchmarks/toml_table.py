"""TOML files of suites, read key by key: a mistake is reported with its file, its line and the nearest right word."""

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from dgm.config.toml_files import LIMIT_BYTES, NotToml, parse_toml, toml_text
from dgm.errors import UserError
from dgm.folders import read_file

T = TypeVar("T")
N = TypeVar("N", int, float)
MOST_S = 1e6
"""Longest time limit in a suite, in seconds: 11 days."""
MOST_MB = 16_000_000
MOST_CORES = 1024.0
_NAMES: Mapping[type, str] = {
    str: "a text",
    float: "a number",
    int: "a whole number",
    list: "a list",
    dict: "a table",
}
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")


class Table:
    """A TOML table that is emptied key by key; a key that is left over is a mistake."""

    def __init__(self, file: Path, text: str, values: Mapping[str, Any], prefix: str = "") -> None:
        self._file = file
        self._text = text
        self._left = dict(values)
        self._known: list[str] = []
        self._prefix = prefix

    @classmethod
    def load(cls, file: Path) -> "Table":
        """Load the whole file.

        Raises:
            UserError: it is missing or no TOML; the message names file and line.
        """
        data = read_file(file, LIMIT_BYTES)
        try:
            return cls(file, toml_text(data), parse_toml(data))
        except NotToml as error:
            raise UserError(f"{file}: {error}") from error

    def has(self, key: str) -> bool:
        """Return whether the key was given and is not taken yet."""
        self._known.append(key)
        return key in self._left

    def names(self) -> Sequence[str]:
        """Return the keys that are not taken yet."""
        return list(self._left)

    def is_text(self, key: str) -> bool:
        """Return whether the value is a text, for a key that may have another type too."""
        return isinstance(self._left.get(key), str)

    def fail(self, key: str, problem: str) -> UserError:
        """Return the error for the author of the file."""
        line = _line(self._text, self._prefix, key)
        place = f"{self._file}:{line}" if line else f"{self._file}"
        return UserError(f"{place}: {self._prefix}{key}: {problem}")

    def forbid_near(self, key: str) -> None:
        """Refuse a key that is surely a misspelling of this one.

        Raises:
            UserError: there is one.
        """
        near = difflib.get_close_matches(key, self._left, 1)
        if near:
            raise self.fail(near[0], f"unknown key (did you mean {key!r}?)")

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Take the key's value.

        Raises:
            UserError: the key is missing without a default, or its value has another type.
        """
        self._known.append(key)
        value = self._left.pop(key, default)
        if value is None:
            raise self.fail(key, f"missing{self._near(key)}; expected {_NAMES[kind]}")
        if kind is float and type(value) is int:
            return float(value)  # type: ignore[return-value]
        if type(value) is not kind:
            raise self.fail(key, f"{value!r} is not {_NAMES[kind]}")
        return value

    def table(self, key: str) -> "Table":
        """Take a table inside of this one; empty if there is none."""
        return Table(self._file, self._text, self.take(key, dict, {}), f"{self._prefix}{key}.")

    def choice(self, key: str, options: Sequence[str], default: str | None = None) -> str:
        """Take one of the options."""
        value = self.take(key, str, default)
        if value not in options and value != default:
            raise self.fail(key, f"{value!r} is none of {', '.join(options)}{suggestion(value, options)}")
        return value

    def positive(self, key: str, default: float, unit: str = "seconds", most: float = MOST_S) -> float:
        """Take a number above 0, at most ``most``."""
        return self._check_range(key, self.take(key, float, default), unit, most)

    def count(self, key: str, default: int, unit: str, most: int = MOST_MB) -> int:
        """Take a whole number above 0, at most ``most``."""
        return self._check_range(key, self.take(key, int, default), unit, most)

    def _check_range(self, key: str, value: N, unit: str, most: float) -> N:
        if not 0 < value <= most:
            limit = "above 0" if not value > 0 else f"at most {most:,g}"
            raise self.fail(key, f"{value!r} must be {limit} ({unit})")
        return value

    def texts(self, key: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """Take a list of texts, none of them empty or repeated."""
        values = self.take(key, list, None if default is None else list(default))
        for value in values:
            if not isinstance(value, str) or not value.strip():
                raise self.fail(key, f"{value!r} is not a text")
        return tuple(values)

    def end(self) -> None:
        """Refuse the first key that is left over.

        Raises:
            UserError: there is one.
        """
        for key in self._left:
            raise self.fail(key, f"unknown key{suggestion(key, self._known)}")

    def _near(self, key: str) -> str:
        near = difflib.get_close_matches(key, self._left, 1)
        return f" (is {near[0]!r} meant?)" if near else ""


def first_mistake(error: ValidationError) -> tuple[str, str, Any]:
    """Return the key, the reason and the value of the first mistake in a record that another program wrote."""
    first = error.errors(include_url=False)[0]
    reason = first["msg"].removeprefix("Value error, ")
    key = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
    return key, f"{reason[:1].lower()}{reason[1:]}", first["input"]


SUGGESTED = 12
"""Maximum number of known words that a message lists."""


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest known word, or the known words if none is near."""
    near = difflib.get_close_matches(word, known, 1)
    if near:
        return f" (did you mean {near[0]!r}?)"
    more = f" and {len(known) - SUGGESTED} more" if len(known) > SUGGESTED else ""
    return f" (known: {', '.join(known[:SUGGESTED]) or 'none'}{more})"


def _line(text: str, prefix: str, key: str) -> int:
    """Return the line of a key, which the parser does not tell; 0 if it is not found."""
    here = ""
    given = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]")
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            here = header[1] + "."
            if here == f"{prefix}{key}.":
                return number
        elif here == prefix and given.match(line):
            return number
    return 0
