"""Patterns such as ``/users/{id:int}/files/{rest:path}``."""

import re
from dataclasses import dataclass

from .converters import CONVERTERS, Converter
from .errors import BuildError, PatternError
from .url import quote_part

_VARIABLE = re.compile(r"\{([a-z_][a-z0-9_]*)(?::([a-z]+))?\}")


@dataclass(frozen=True)
class Fixed:
    """A part that must be exactly this text."""

    text: str


@dataclass(frozen=True)
class Variable:
    """A part that becomes a parameter."""

    name: str
    converter: Converter


class Pattern:
    """A parsed pattern: its parts, and whether it ends in a slash."""

    def __init__(self, text):
        if not text.startswith("/"):
            raise PatternError(f"a pattern begins with a slash: {text!r}")
        self.text = text
        self.parts = [self._part(part) for part in text[1:].split("/")]
        self.names = [part.name for part in self.parts if isinstance(part, Variable)]
        if len(set(self.names)) < len(self.names):
            raise PatternError(f"a name is used twice: {text!r}")
        for part in self.parts[:-1]:
            if isinstance(part, Variable) and part.converter.takes_rest:
                raise PatternError(f"nothing can follow the rest of a path: {text!r}")

    def _part(self, text):
        found = _VARIABLE.fullmatch(text)
        if found:
            kind = found.group(2) or "text"
            if kind not in CONVERTERS:
                raise PatternError(f"unknown type {kind!r}, expected one of {', '.join(sorted(CONVERTERS))}")
            return Variable(found.group(1), CONVERTERS[kind])
        if "{" in text or "}" in text:
            raise PatternError(f"a variable must be a whole part: {text!r}")
        return Fixed(text)

    def build(self, params):
        """Return the path for parameters; those that are not in the pattern are ignored."""
        written = []
        for part in self.parts:
            if isinstance(part, Fixed):
                written.append(quote_part(part.text))
                continue
            if params.get(part.name) is None:
                raise BuildError(f"{self.text} needs {part.name}")
            try:
                written.append(part.converter.write(params[part.name]))
            except ValueError as error:
                raise BuildError(f"{self.text}: {part.name}: {error}") from error
        return "/" + "/".join(written)
