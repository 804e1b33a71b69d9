"""Checks of a request: keys and types by table, addresses and stored data by one rule, and sizes against bounds."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dgm.gateway.leaving_out import leave_out
from dgm.gateway.translation import parsing
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject

MAX_BODY_DEPTH = 64
"""Maximum depth of a whole request; schemas and inputs have the lower bound of ``parsing.MAX_DEPTH``."""
MAX_CHOICES = 16
"""Maximum number of answers that one request may ask for."""

Rule = Callable[[Any, str], object]
"""Check of a value at a place; raises ``BadRequest``."""


def split_words(text: str) -> list[str]:
    """Return the names in a blank-separated list."""
    return text.split()


PROVIDER_SIDE = "it runs at the provider; no tools of a provider, and nothing that it fetches"
STORED = "what a provider stores is not reachable; send the content itself"
UNPRICED = "its price is not that of the model's table"
DATED = re.compile(r"(?<=_)20\d\d_?\d\d_?\d\d$")

SCHEME = re.compile(r"\s*(?!data:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
LINKS = ("$ref", "$dynamicRef", "$recursiveRef")
"""Keys by which a schema refers to another schema."""


@dataclass(frozen=True, slots=True)
class KeyRules:
    """The allowed keys of an object.

    A key whose value is null asks for nothing and is always allowed. A refused key that is false or
    empty is allowed too. An unknown key is left out: without it, the provider cannot act on it.
    """

    passed: Mapping[str, Rule | None]
    """Map of key to the rule for its value; None: any value passes."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Map of refused key to the reason."""

    def check(self, given: JsonObject, place: str = "") -> None:
        """Remove unknown keys, and raise ``BadRequest`` for the first key that does not pass.

        Raises:
            BadRequest: a key does not pass; the message names it and the reason.
        """
        unknown: list[str] = []
        for key, value in given.items():
            if value is None:
                continue
            told = join_place(place, key)
            if key not in self.passed:
                if key not in self.refused:
                    unknown.append(key)
                    if not asks_for_nothing(value):
                        leave_out(told)
                elif not asks_for_nothing(value):
                    raise BadRequest(
                        f"{told} is not offered here: {self.refused[key]}", "unsupported_parameter"
                    )
                continue
            rule = self.passed[key]
            if rule is not None:
                rule(value, told)
        if unknown and isinstance(given, dict):
            for key in unknown:
                del given[key]


@dataclass(frozen=True, slots=True)
class TypeRules:
    """The allowed types of tools, blocks or items; a name that ends in an underscore stands for every dated version."""

    what: str
    """Kind of object: ``content``, ``items`` or ``tools``."""
    code: str
    passed: Mapping[str, Rule | None]
    refused: Mapping[str, str] = field(default_factory=dict)

    def check(self, kind: object, given: JsonObject, place: str) -> None:
        """Raise ``BadRequest`` unless the type passes and the object follows its rule.

        Raises:
            BadRequest: the type does not pass; the message names it and the reason.
        """
        family = kind if isinstance(kind, str) else ""
        passed = self.passed
        if family not in passed:
            family = DATED.sub("", family)
            if family not in passed:
                raise self._refusal(kind, family, place)
        rule = passed[family]
        if rule is not None:
            rule(given, place)

    def each(self, value: object, place: str) -> None:
        """Check each object of a list by its ``type``."""
        for at, one in enumerate(parsing.read_entries(value, place, parsing.MAX_MESSAGES)):
            here = f"{place}[{at}]"
            if not isinstance(one, dict):
                raise BadRequest(f"{here} must be an object")
            self.check(one.get("type"), one, here)

    def content(self, value: object, place: str) -> None:
        """Check content: a text, or a list of blocks."""
        if not isinstance(value, str):
            self.each(value, place)

    def _refusal(self, kind: object, family: str, place: str) -> BadRequest:
        shown = repr(str(kind)[:60])
        reason = self.refused.get(family) or self.refused.get(str(kind))
        if reason:
            return BadRequest(f"{place}: {shown} is not offered here: {reason}", self.code)
        return BadRequest(f"{place}: {self.what} of the type {shown} are not known here", self.code)


def asks_for_nothing(value: object) -> bool:
    """Return whether a value asks for nothing: null, false, or an empty list."""
    return value is None or value is False or value == []


def join_place(place: str, key: str) -> str:
    """Return the place of a key, in printable characters."""
    written = key if key.isidentifier() and key.isascii() and len(key) <= 60 else json.dumps(key[:60])[1:-1]
    return f"{place}.{written}" if place else written


def check_bounded(body: JsonObject) -> None:
    """Raise ``BadRequest`` unless the body is an object that every JSON library can write.

    Raises:
        BadRequest: it is no object, or is nested deeper than ``MAX_BODY_DEPTH``.
    """
    level: list[Any] = [parsing.read_record(body, "the body")]
    for _ in range(MAX_BODY_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise BadRequest(f"the body is nested deeper than {MAX_BODY_DEPTH}")


def check_schema(value: object, place: str) -> None:
    """Check that a JSON schema is bounded and self-contained.

    Raises:
        BadRequest: it is no object, is nested too deep, or refers to an address.
    """
    parsing.read_schema(value, place)
    check_unlinked(value, place)


def check_unlinked(value: object, place: str) -> None:
    """Raise ``BadRequest`` where a schema refers to an address; some servers fetch such addresses."""
    level = [value]
    while level:
        for one in level:
            if isinstance(one, dict):
                for key in LINKS:
                    link = one.get(key)
                    if isinstance(link, str) and SCHEME.match(link[:200]):
                        raise BadRequest(
                            f"{place}: {key} must stay within the schema", "unsupported_parameter"
                        )
        level = [child for one in level for child in _child_values(one) if isinstance(child, dict | list)]


def _child_values(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def tool_names(tools: Sequence[JsonObject]) -> set[str]:
    """Return the names of tools, in any protocol's shape."""
    found: set[str] = set()
    for tool in tools:
        for held in (tool, tool.get("function"), tool.get("custom")):
            if isinstance(held, dict) and isinstance(held.get("name"), str):
                found.add(held["name"])
    return found
