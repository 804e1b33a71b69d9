"""Walk a request: keys and types by table, addresses and stored data by one rule, and bounds for the host."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dgm.gateway import parsing
from dgm.gateway.parsing import JsonObject
from dgm.gateway.wire import BadRequest

MAX_BODY_DEPTH = 64
"""Of a whole request; schemas and inputs have the lower bound of ``parsing.MAX_DEPTH``."""
MAX_CHOICES = 16
"""Most answers that one request may ask for."""

Rule = Callable[[Any, str], object]
"""Checks a value at a place; raises ``BadRequest``."""
Known = Callable[[str], bool]
"""Tells whether an id is that of an answer which this job has had."""


def words(text: str) -> list[str]:
    """Return the names that blanks separate."""
    return text.split()


PROVIDER_SIDE = "it runs at the provider; no tools of a provider, and nothing that it fetches"
STORED = "what a provider stores is not reachable; send the content itself"
UNPRICED = "its price is not that of the model's table"
DATED = re.compile(r"(?<=_)20\d\d_?\d\d_?\d\d$")

OPAQUE = frozenset(
    # The agent's and the model's own data: schemas, inputs of tools, commands. A provider fetches nothing for them.
    words(
        "input arguments parameters input_schema output_schema input_examples schema json_schema action operation"
        " tabs state_changes logprobs text thinking"
    )
)
TEXTS = frozenset(
    words(
        "type role content id call_id tool_call_id tool_use_id name status output refusal reasoning_content signature"
        " encrypted_content phase summary description"
    )
)
"""Keys that hold nothing to fetch where their value is a text."""
QUOTED = frozenset(("annotations", "citations"))
"""Sources that an earlier answer named: addresses there are text."""
ADDRESS = ("url", "uri", "urls", "uris", "href", "src", "s3location")
"""Ends of the names of keys, without underscores, whose values a provider fetches."""
REFERENCE = (
    *("fileid", "fileids", "containerid", "vectorstoreid", "vectorstoreids", "skillid", "connectorid"),
    *("tunnelid", "assetid", "mediaid", "cachedcontent"),
)
"""Ends of the names of keys whose values name stored data."""
HELD = frozenset(("container", "containers", "skills", "mcpservers", "vectorstores"))
"""Names of keys whose values are places at the provider."""
PROVIDED = frozenset(
    words(
        "googlesearch googlesearchretrieval googlemaps enterprisewebsearch urlcontext codeexecution codeinterpreter"
        " websearch webfetch filesearch mcp"
    )
)
"""Names of keys, without underscores, by which some servers offer tools of their own."""
ENCODED = frozenset(("data", "filedata", "b64json", "base64"))
"""Names of keys that hold data, where some servers take an address too."""
INLINE_SOURCES = ("base64", "text", "content")
SCHEME = re.compile(r"\s*(?!data:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
LINKS = ("$ref", "$dynamicRef", "$recursiveRef")
"""Keys by which a schema refers to another."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of an object.

    A key whose value is null asks for nothing and always may stand. So does a refused key that is false or empty.
    """

    passed: Mapping[str, Rule | None]
    """Key → the rule for its value; None: any value passes."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Key → the reason."""

    def check(self, given: JsonObject, place: str = "") -> None:
        """Raise ``BadRequest`` for the first key that does not pass.

        Raises:
            BadRequest: it names the key, and why.
        """
        for key, value in given.items():
            if value is None:
                continue
            if key not in self.passed:
                if key in self.refused and nothing(value):
                    continue
                raise self._refusal(key, place)
            rule = self.passed[key]
            if rule is not None:
                rule(value, below(place, key))

    def _refusal(self, key: str, place: str) -> BadRequest:
        told = below(place, key)
        if key in self.refused:
            return BadRequest(f"{told} is not offered here: {self.refused[key]}", "unsupported_parameter")
        return BadRequest(f"{told} is not known here; leave it out", "unknown_parameter")


@dataclass(frozen=True, slots=True)
class Kinds:
    """The types of tools, blocks or items; a name that ends in an underscore stands for every dated version."""

    what: str
    """``content``, ``items`` or ``tools``."""
    code: str
    passed: Mapping[str, Rule | None]
    refused: Mapping[str, str] = field(default_factory=dict)

    def check(self, kind: object, given: JsonObject, place: str) -> None:
        """Raise ``BadRequest`` unless the type passes and the object follows its rule.

        Raises:
            BadRequest: it names the type, and why.
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
        """Check a list of objects by their ``type``."""
        for at, one in enumerate(parsing.entries(value, place, parsing.MAX_MESSAGES)):
            here = f"{place}[{at}]"
            if not isinstance(one, dict):
                raise BadRequest(f"{here} must be an object")
            self.check(one.get("type"), one, here)

    def content(self, value: object, place: str) -> None:
        """Check content that is a text, or a list of blocks."""
        if not isinstance(value, str):
            self.each(value, place)

    def _refusal(self, kind: object, family: str, place: str) -> BadRequest:
        shown = repr(str(kind)[:60])
        reason = self.refused.get(family) or self.refused.get(str(kind))
        if reason:
            return BadRequest(f"{place}: {shown} is not offered here: {reason}", self.code)
        return BadRequest(f"{place}: {self.what} of the type {shown} are not known here", self.code)


def nobody(_answer: str) -> bool:
    """Tell that an answer is not of this job: the default where nothing is remembered."""
    return False


def nothing(value: object) -> bool:
    """Tell whether a value asks for nothing: null, false, or an empty list."""
    return value is None or value is False or value == []


def below(place: str, key: str) -> str:
    """Return the place of a key, in printable characters."""
    written = key if key.isidentifier() and key.isascii() and len(key) <= 60 else json.dumps(key[:60])[1:-1]
    return f"{place}.{written}" if place else written


def bounded(body: JsonObject) -> None:
    """Raise ``BadRequest`` unless the body is an object that every JSON library can write.

    Raises:
        BadRequest: it is no object, or is nested deeper than ``MAX_BODY_DEPTH``.
    """
    level: list[Any] = [parsing.record(body, "the body")]
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


def schema(value: object, place: str) -> None:
    """Check that a JSON schema is bounded and needs nothing from elsewhere.

    Raises:
        BadRequest: it is no object, is nested too deep, or refers to an address.
    """
    parsing.schema(value, place)
    unlinked(value, place)


def unlinked(value: object, place: str) -> None:
    """Raise ``BadRequest`` where a schema refers to an address, which some servers fetch."""
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
        level = [child for one in level for child in _within(one) if isinstance(child, dict | list)]


def _within(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def inline(value: object, place: str) -> None:
    """Raise ``BadRequest`` where a value names an address or stored data instead of holding the data.

    The rule holds at every depth and for keys that nobody has heard of. It skips what the agent's own tools take.

    Raises:
        BadRequest: it names the place.
    """
    _seek(value, place, quoted=False, local=False)


def _seek(value: object, place: str, *, quoted: bool, local: bool) -> None:
    if isinstance(value, list):
        for at, one in enumerate(value):
            if isinstance(one, dict | list):
                _seek(one, f"{place}[{at}]", quoted=quoted, local=local)
    elif isinstance(value, dict):
        for key, one in value.items():
            if not one or key in OPAQUE or (key in TEXTS and isinstance(one, str)):
                continue
            name = key.replace("_", "").replace("-", "").lower()
            if name in PROVIDED or (name in HELD and not local) or name.endswith(REFERENCE):
                reason = PROVIDER_SIDE if name in PROVIDED else STORED
                raise BadRequest(f"{below(place, key)} is not offered here: {reason}", "unsupported_content")
            if name.endswith(ADDRESS) and not quoted:
                _held(one, below(place, key))
            elif name in SPECIAL and not quoted and not (key == "data" and value.get("type") == "text"):
                SPECIAL[name](one, below(place, key))
            if isinstance(one, dict | list):
                within = local or name == "environment"
                _seek(one, below(place, key), quoted=quoted or key in QUOTED, local=within)


def _held(value: object, place: str) -> None:
    """Check what stands where an address may stand: objects are walked further, texts must be data."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and one[:5].lower() != "data:":
            raise BadRequest(
                f"{place} is an address or a name; send the data inline, as a data: URL",
                "unsupported_content",
            )


def encoded(value: object, place: str) -> None:
    """Raise ``BadRequest`` where an address stands for data."""
    if isinstance(value, str) and SCHEME.match(value[:200]):
        raise BadRequest(f"{place} is an address; send the data inline", "unsupported_content")


def _direct(value: object, place: str) -> None:
    if isinstance(value, dict) and value.get("type") != "direct":
        raise BadRequest(f"{place} is not offered here: {PROVIDER_SIDE}", "unsupported_content")


def _local(value: object, place: str) -> None:
    if isinstance(value, dict) and value.get("type") != "local":
        raise BadRequest(
            f"{place} must be of the type 'local': a container is the provider's", "unsupported_content"
        )


def _source(value: object, place: str) -> None:
    if isinstance(value, dict) and value.get("type") not in INLINE_SOURCES:
        kind = repr(str(value.get("type"))[:40])
        told = f"{place} is of the type {kind}; only data that is sent inline is offered here"
        raise BadRequest(told, "unsupported_content")


SPECIAL: Mapping[str, Rule] = {
    "caller": _direct,
    "environment": _local,
    "source": _source,
    **dict.fromkeys(ENCODED, encoded),
}
"""Name of a key → the rule for its value."""


def names_of(tools: Sequence[JsonObject]) -> set[str]:
    """Return the names that tools go by, in any of the protocols' shapes."""
    found: set[str] = set()
    for tool in tools:
        for held in (tool, tool.get("function"), tool.get("custom")):
            if isinstance(held, dict) and isinstance(held.get("name"), str):
                found.add(held["name"])
    return found
