"""A provider's refusal in one form, and the wait that it asks for: in headers, in fields, or in its sentence.

Providers and proxies say the same in many forms: an object, a list, ``detail`` lists of validators, JSON within a
string, plain text, a page.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_S = 366 * 86_400.0
"""Maximum wait in seconds; a longer one is a mistake, and no clock holds the longest."""
_LONGEST_TEXT = 4_000
_DEEPEST = 8
_CODE_KEYS = frozenset(
    ("code", "type", "status", "reason", "__type", "error_code", "status_code", "error_type", "error")
)
_TEXT_KEYS = frozenset(
    ("message", "msg", "detail", "details", "error", "errors", "error_message", "errorMessage", "status_msg", "title",
     "description", "metadata", "raw", "base_resp", "innererror", "response", "param", "Message")
)  # fmt: skip
_EMPTY = re.compile(r"provider returned error|param incorrect|bad request|error|none|null|\W*", re.IGNORECASE)

_PART = (
    r"(?:\d+(?:\.\d+)?\s*"
    r"(?:d(?:ays?)?|h(?:ours?|rs?)?|ms|milliseconds?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z]))"
)
_PARTS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|[dhms])[a-z]*", re.IGNORECASE)
_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "milli": 0.001}
_DURATION = re.compile(rf"{_PART}(?:[\s,]*(?:and\s+)?{_PART})*", re.IGNORECASE)
_SENTENCE = re.compile(
    r"(?:retry|retrying|try again|available(?: again)?|resets?|reset time|wait)(?:\s+after|\s+in|\s+for)?:?\s+"
    rf"(?:about |another |at least )?(?P<duration>{_DURATION.pattern})",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"""(?:retryDelay|retry_?after)(?:_?(?:s|seconds|(?P<ms>ms)))?\\*["']\s*:\s*\\*["']?(?P<number>\d+(?:\.\d+)?)s?\b""",
    re.IGNORECASE,
)
"""Pattern of a field with the seconds: Google's ``retryDelay``, ``retry_after`` and the like."""
_RESET = re.compile(r"ratelimit-(?:[\w-]+-)?reset")
_EPOCH_S, _EPOCH_MS = 1e9, 1e12
"""Numbers from which a reset is a point in time, in seconds or milliseconds since 1970, and no duration."""


@dataclass(frozen=True, slots=True)
class ProviderRefusal:
    """A provider's refusal in place of an answer."""

    status: int
    """HTTP status; 0 or 200: the error came within a successful answer or a stream."""
    body: object
    """The JSON, or the text if it is none."""
    message: str
    codes: frozenset[str]
    """Its codes, types and reasons."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers with lower-case names."""
    text: str = ""
    """The raw body, at most 4,000 characters."""
    places: tuple[str, ...] = ()
    """Parts of the request that a field names: ``temperature``, ``messages.0.role``."""

    @property
    def is_page(self) -> bool:
        """Whether the body is a page or a line of text and no JSON."""
        return isinstance(self.body, str) and bool(self.body.strip())


def read_refusal(status: int, content: object, headers: Mapping[str, str] | None = None) -> ProviderRefusal:
    """Return a refusal in one form.

    Args:
        status: the HTTP status; 0 or 200 for an error within an answer.
        content: the body as bytes or text, or the JSON that was read from it.
        headers: of the answer.
    """
    if isinstance(content, bytes | bytearray):
        content = bytes(content).decode("utf-8", "replace")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    body = content
    if isinstance(content, str):
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = _page_text(content)
    texts: list[str] = []
    codes: set[str] = set()
    places: list[str] = []
    _collect(body, texts, codes, places)
    lower = {name.lower(): value for name, value in (headers or {}).items()}
    if kind := lower.get("x-amzn-errortype", ""):
        codes.add(kind.partition(":")[0])
    sentences = [text for text in dict.fromkeys(texts) if not _EMPTY.fullmatch(text)]
    sentences = sentences or list(dict.fromkeys(_sentences(body))) or texts
    message = (": ".join(sentences) or text.strip() or "(the answer is empty)")[:_LONGEST_TEXT]
    named = tuple(dict.fromkeys(places))
    return ProviderRefusal(status, body, message, frozenset(codes), lower, text[:_LONGEST_TEXT], named)


def _collect(node: object, texts: list[str], codes: set[str], places: list[str], depth: int = 0) -> None:
    """Collect the messages, the codes and the named parts of the request."""
    if depth > _DEEPEST:
        return
    if isinstance(node, str):
        inner = _parse_embedded(node)
        before = len(texts)
        _collect(inner, texts, codes, places, depth + 1)
        if len(texts) == before:
            texts.append(" ".join(node.split()))
    elif isinstance(node, list):
        for one in node:
            _collect(one, texts, codes, places, depth + 1)
    elif isinstance(node, Mapping) and isinstance(node.get("loc"), list) and isinstance(node.get("msg"), str):
        path = ".".join(str(part) for part in node["loc"] if part != "body")
        places.append(path)
        texts.append(f"{path}: {node['msg']}" if path else node["msg"])
        codes.add(str(node.get("type", "")))
    elif isinstance(node, Mapping):
        for key, value in node.items():
            word = not isinstance(value, bool) and re.fullmatch(r"\S+", str(value)) is not None
            if key in _CODE_KEYS and word and isinstance(value, str | int):
                codes.add(str(value))
            if key == "param" and word:
                places.append(re.sub(r"\[(\d+)\]", r".\1", str(value)))
            elif key in _TEXT_KEYS:
                _collect(value, texts, codes, places, depth + 1)


def _parse_embedded(text: str) -> object:
    """Return the provider's JSON within the words of a proxy; None if there is none that describes an error."""
    start = text.find("{")
    try:
        inner = json.JSONDecoder(strict=False).raw_decode(text[start:])[0] if start >= 0 else None
    except (ValueError, RecursionError):
        return None
    return inner if isinstance(inner, Mapping) and inner.keys() & (_CODE_KEYS | _TEXT_KEYS) else None


def _sentences(node: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of an object that are more than a word, whatever their keys."""
    if isinstance(node, str):
        if re.search(r"\w\s+\w", node) and not _EMPTY.fullmatch(node):
            yield " ".join(node.split())
    elif isinstance(node, Mapping | list) and depth <= _DEEPEST:
        for one in node.values() if isinstance(node, Mapping) else node:
            yield from _sentences(one, depth + 1)


def _page_text(text: str) -> str:
    """Return a page's title and words; any other text unchanged."""
    if not text.lstrip().startswith("<"):
        return text
    plain = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text, flags=re.I | re.S)
    return " ".join(plain.split()) or text


def requested_wait(refusal: ProviderRefusal) -> float | None:
    """Return the seconds to wait by the headers, the fields or the text, at most ``LONGEST_S``; None if none is given.

    A reset comes last: it tells when a limit is whole again, which may be long after the next call is taken.
    """
    embedded = _embedded_headers(refusal.body)
    for headers in (refusal.headers, embedded):
        if (seconds := waiting_time(headers)) is not None:
            return min(seconds, LONGEST_S)
    if delay := _FIELD.search(refusal.text):
        seconds = float(delay["number"]) * (0.001 if delay["ms"] else 1.0)
    elif sentence := _SENTENCE.search(refusal.message):
        seconds = _duration(sentence["duration"])
    else:
        seconds = reset_time({**embedded, **refusal.headers})
    return None if seconds is None else min(seconds, LONGEST_S)


def waiting_time(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that ``retry-after-ms`` or ``Retry-After`` (seconds, or a date) asks for; None without one.

    The result is not below 0 and has no upper bound: the caller decides how long to wait.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    date = _parse_date(headers.get("retry-after", ""))
    return None if date is None else max((date - (now or datetime.now(UTC))).total_seconds(), 0.0)


def reset_time(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds until the last limit of which nothing remains is free again; None if no header says so.

    These are ``x-ratelimit-reset-requests``, ``anthropic-ratelimit-tokens-reset`` and the like.
    """
    resets = []
    for name, value in headers.items():
        remaining = headers.get(name.replace("reset", "remaining"), "")
        if _RESET.search(name) and re.fullmatch(r"0+(\.0+)?", remaining):
            resets.append(_until(value, now or datetime.now(UTC)))
    return max((seconds for seconds in resets if seconds is not None), default=None)


def _until(value: str, now: datetime) -> float | None:
    """Return the seconds until a reset: a duration (``6m0s``), seconds, a Unix time, or a date."""
    try:
        number = float(value)
    except ValueError:
        if _DURATION.fullmatch(value):
            return _duration(value)
        date = _parse_date(value)
        return None if date is None else max((date - now).total_seconds(), 0.0)
    if not math.isfinite(number):
        return None
    if number >= _EPOCH_S:
        number = number / (1000.0 if number >= _EPOCH_MS else 1.0) - now.timestamp()
    return max(number, 0.0)


def _duration(text: str) -> float:
    return sum(float(number) * _UNITS[unit] for number, unit in _PARTS.findall(text.lower()))


def _parse_date(text: str) -> datetime | None:
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = parse(text)
        except (ValueError, OverflowError):
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None


def _embedded_headers(body: object) -> Mapping[str, str]:
    """Return the headers that a router (OpenRouter) repeats within the body of its refusal, in lower case."""
    node = body
    for key in ("error", "metadata", "headers"):
        node = node.get(key) if isinstance(node, Mapping) else None
    return (
        {str(name).lower(): str(value) for name, value in node.items()} if isinstance(node, Mapping) else {}
    )
