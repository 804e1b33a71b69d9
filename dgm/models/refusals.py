"""A provider's refusal in one form: status, message, codes, and the parts of the request that it names.

Providers and proxies say the same in many forms: an object, a list, ``detail`` lists of validators, JSON within a
string, plain text, a page. ``dgm.models.faults`` decides the meaning of a refusal.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_LONGEST_TEXT = 4_000
_DEEPEST = 8
_WORD_KEYS = (
    "code",
    "type",
    "status",
    "reason",
    "__type",
    "error_code",
    "status_code",
    "error_type",
    "error",
)
_SAID_KEYS = (
    "message", "msg", "detail", "details", "error", "errors", "error_description", "error_message", "errorMessage",
    "error_msg", "status_msg", "description", "title", "metadata", "raw", "base_resp", "innererror", "inner_error",
    "fieldViolations", "response", "violations", "param", "Message",
)  # fmt: skip
_EMPTY_PHRASES = re.compile(
    r"provider returned error|param incorrect|bad request|error|invalid[ _]?(request|argument)|none|null"
    r"|upstream error|unknown( error)?|\W*",
    re.IGNORECASE,
)
_EMBEDDED = re.compile(r"""[\[{]\s*(?:\\?["']|\{)""")
_VALIDATOR = re.compile(
    r"""'loc': [(\[](?P<loc>[^)\]]*)[)\]], 'msg': (?P<quote>["'])(?P<msg>.*?)(?P=quote), '"""
)

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ProviderRefusal:
    """A provider's refusal in place of an answer."""

    status: int
    """HTTP status; 0 or 200: the error came within a successful answer or a stream."""
    body: object
    """The JSON, or the text if it is none."""
    message: str
    words: frozenset[str]
    """Its codes, types and reasons."""
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    """The raw body, at most 4,000 characters."""
    places: tuple[Place, ...] = ()
    """Parts of the request that it names by a field of its own (``param``, ``loc``)."""

    @property
    def page(self) -> bool:
        """Whether the body is a page for people."""
        return re.match(r"\s*<(!doctype|html|head|\?xml|body|title|h1|center)", self.text, re.I) is not None

    @property
    def plain(self) -> bool:
        """Whether the body is text and no JSON."""
        return isinstance(self.body, str) and bool(self.body.strip())


@dataclass(slots=True)
class _RefusalParts:
    said: list[str] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    places: list[Place] = field(default_factory=list)


def read_refusal(status: int, content: object, headers: Mapping[str, str] | None = None) -> ProviderRefusal:
    """Return a refusal in one form.

    Args:
        status: the HTTP status; 0 or 200 for an error within an answer.
        content: the body as bytes or text, or the JSON that was read from it.
        headers: of the answer; looked up in lower case.
    """
    lower = {name.lower(): value for name, value in (headers or {}).items()}
    if isinstance(content, bytes | bytearray):
        content = bytes(content).decode("utf-8", "replace")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    body = _parse_or_keep(content) if isinstance(content, str) else content
    found = _RefusalParts()
    if isinstance(body, str):
        _collect_text(body if not body.lstrip().startswith("<") else _page_text(body), found, 0)
    else:
        _collect(body, found, 0)
    if kind := lower.get("x-amzn-errortype", ""):
        found.words.add(kind.partition(":")[0])
    said = list(dict.fromkeys(one for one in found.said if not _EMPTY_PHRASES.fullmatch(one)))
    said = said or list(dict.fromkeys(_iter_sentences(body)))
    message = ": ".join(said or list(dict.fromkeys(found.said))) or text.strip() or "(the answer is empty)"
    words = frozenset(word for word in found.words if word)
    return ProviderRefusal(
        status,
        body,
        message[:_LONGEST_TEXT],
        words,
        lower,
        text[:_LONGEST_TEXT],
        tuple(dict.fromkeys(found.places)),
    )


def _iter_sentences(node: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of an object that are more than a word, whatever their keys."""
    if isinstance(node, str):
        if re.search(r"\w\s+\w", node) and not _EMPTY_PHRASES.fullmatch(node):
            yield " ".join(node.split())
    elif isinstance(node, Mapping | list) and depth <= _DEEPEST:
        for one in node.values() if isinstance(node, Mapping) else node:
            yield from _iter_sentences(one, depth + 1)


def _parse_or_keep(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _collect(node: object, found: _RefusalParts, depth: int) -> None:
    if depth > _DEEPEST or node is None or isinstance(node, bool):
        return
    if isinstance(node, str):
        _collect_text(node, found, depth)
    elif isinstance(node, Mapping):
        _collect_object(node, found, depth)
    elif isinstance(node, Sequence):
        for one in node:
            _collect(one, found, depth + 1)


def _collect_object(node: Mapping[str, object], found: _RefusalParts, depth: int) -> None:
    where, said = node.get("loc"), node.get("msg")
    if isinstance(where, Sequence) and not isinstance(where, str) and isinstance(said, str):
        _collect_validation(tuple(part for part in where if isinstance(part, str | int)), said, found)
        found.words.update(word for word in (node.get("type"),) if isinstance(word, str))
        return
    for key in _WORD_KEYS:
        word = node.get(key)
        if isinstance(word, int) and not isinstance(word, bool):
            word = str(word)
        if isinstance(word, str) and word and not re.search(r"\s", word):
            found.words.add(word)
    for key in ("param", "field"):
        named = node.get(key)
        if isinstance(named, str) and named and not re.search(r"\s", named):
            found.places.append(parse_place(named))
    for key in _SAID_KEYS:
        if key == "param" and not re.search(r"\s", str(node.get(key))):
            continue
        if key in node:
            _collect(node[key], found, depth + 1)


def _collect_validation(where: Place, said: str, found: _RefusalParts) -> None:
    place = where[1:] if where[:1] == ("body",) else where
    if place:
        found.places.append(place)
    found.said.append(": ".join(filter(None, (".".join(map(str, place)), said))))


def _collect_text(text: str, found: _RefusalParts, depth: int) -> None:
    """Collect a text, or the contents of JSON or Python within it."""
    listed = list(_VALIDATOR.finditer(text))
    for one in listed:
        parts = [part.strip().strip("'\"") for part in one["loc"].split(",") if part.strip()]
        _collect_validation(tuple(int(p) if p.isdigit() else p for p in parts), one["msg"], found)
    if listed:
        return
    begun = _EMBEDDED.search(text)
    if begun and depth < _DEEPEST:
        before = len(found.said)
        for inner in _parse_embedded(text[begun.start() :]):
            if _describes_error(inner):
                _collect(inner, found, depth + 1)
            if len(found.said) > before:
                return
    if said := " ".join(text.split()):
        found.said.append(said)


def _describes_error(node: object) -> bool:
    """Return whether an object within a text describes an error, and is no list of names or values."""
    if isinstance(node, Mapping):
        return any(key in node for key in (*_WORD_KEYS, *_SAID_KEYS))
    return (
        isinstance(node, Sequence)
        and not isinstance(node, str)
        and any(_describes_error(one) for one in node)
    )


def _parse_embedded(text: str) -> Iterator[object]:
    """Yield the object at the beginning of a text: JSON, JSON escaped once more, or Python's repr."""
    end = max(text.rfind("}"), text.rfind("]")) + 1
    for form in (text, text.replace('\\"', '"').replace('\\\\"', '\\"')):
        try:
            yield json.JSONDecoder(strict=False).raw_decode(form)[0]
        except (ValueError, RecursionError):
            continue
    try:
        yield ast.literal_eval(text[:end])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return


def parse_place(named: str) -> Place:
    """Return the parts of a dotted name: ``messages[0].role`` becomes ``("messages", 0, "role")``."""
    parts = [part for part in re.split(r"[.\[\]/]+", named.strip("'\"` #")) if part and part != "body"]
    return tuple(int(part) if part.isdigit() else part for part in parts)


def _page_text(text: str) -> str:
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    plain = re.sub(r"<(script|style)\b.*?</\1>|<title.*?</title>|<[^>]*>", " ", text, flags=re.I | re.S)
    words = " ".join((f"{title[1]}: " if title else "").split() + plain.split())
    return words[:_LONGEST_TEXT] or text
