"""Odd values in other programs' JSON: counts of tokens, half surrogate pairs, arguments that are no text."""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dgm.domain import Usage
from dgm.messages import JsonObject
from dgm.wires.json_scan import measure_nesting

INVALID_JSON = "INVALID_JSON"
"""Key under which a model sees its own malformed arguments again: strict providers require an object."""
MAX_NESTING = 64
"""Maximum nesting of a call's arguments that are read as JSON: not every JSON library can write deeper nesting."""
REPLACEMENT = "\ufffd"

_CHARACTERS_PER_TOKEN = 4
_NOT_READ = ("model", "stream", "stream_options", "metadata", "user")
"""Keys of a request that the model does not read."""
_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def count(value: object) -> int:
    """Return a number of tokens; 0 for any other value."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) else 0
    return max(0, value)


def count_of(counts: object, *names: str) -> int:
    """Return the largest number of tokens under any of the names."""
    if not isinstance(counts, Mapping):
        return 0
    return max((count(counts.get(name)) for name in names), default=0)


def estimate(characters: int) -> int:
    """Return the estimated tokens of a text; at least 1."""
    return max(1, -(-characters // _CHARACTERS_PER_TOKEN))


def characters(value: object) -> int:
    """Return the number of characters in the strings of a JSON value, names of fields included."""
    match value:
        case str():
            return len(value)
        case Mapping():
            return sum(len(name) + characters(inner) for name, inner in value.items())
        case list() | tuple():
            return sum(map(characters, value))
        case _:
            return 0


def count_request_chars(request: JsonObject) -> int:
    """Return the approximate number of characters of a request that the model reads."""
    return characters({name: value for name, value in request.items() if name not in _NOT_READ})


def openai_usage(whole: JsonObject, request: JsonObject, said: int, read: str, wrote: str) -> Usage:
    """Return the usage of a call by one of OpenAI's protocols, or of a server that is compatible with it.

    A count that is missing or 0 becomes characters / 4, so that no call counts as free. A given total decides whether
    reasoning is within the output or beside it (Gemini counts it in the total but not in the output). Without a total,
    reasoning that is larger than the output is beside it (xAI).

    Args:
        whole: the whole answer.
        request: the request's body.
        said: characters of the answer.
        read: ``prompt`` or ``input``: the protocol's word for tokens that were read.
        wrote: ``completion`` or ``output``: its word for tokens that were written.
    """
    counts = whole.get("usage")
    given: Mapping[str, Any] = counts if isinstance(counts, Mapping) else {}
    details, thought = given.get(f"{read}_tokens_details"), given.get(f"{wrote}_tokens_details")
    into = count_of(given, f"{read}_tokens") or _split_by_cache(given)
    out, total = count_of(given, f"{wrote}_tokens"), count_of(given, "total_tokens")
    reasoning = max(count_of(thought, "reasoning_tokens"), count_of(given, "reasoning_tokens"))
    if total > out and not into:
        into = total - out if out else 0
    if total and into:
        out = max(out, total - into)
    elif reasoning > out:
        out += reasoning
    into = into or estimate(count_request_chars(request))
    out = out or estimate(said)
    cached = max(
        count_of(details, "cached_tokens"),
        count_of(given, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"),
    )
    written = max(
        count_of(details, "cache_write_tokens", "cache_creation_tokens"),
        count_of(given, "cache_creation_input_tokens"),
    )
    cached = min(cached, into)
    return Usage(
        calls=1,
        input_tokens=into,
        output_tokens=out,
        cached_tokens=cached,
        written_tokens=min(written, into - cached),
        reasoning_tokens=min(reasoning, out),
    )


def _split_by_cache(counts: Mapping[str, Any]) -> int:
    """Return the input if it is given only as cached and uncached tokens (DeepSeek)."""
    return count_of(counts, "prompt_cache_hit_tokens") + count_of(counts, "prompt_cache_miss_tokens")


def texts(parts: object, *keys: str) -> str:
    """Return all strings under ``keys`` of a list of records, joined; a string unchanged."""
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list | tuple):
        return ""
    records = [part for part in parts if isinstance(part, Mapping)]
    return "".join(part[key] for part in records for key in keys if isinstance(part.get(key), str))


def has_half(value: object) -> bool:
    """Return whether a string of the value holds half a surrogate pair; fast, because it checks every chunk."""
    if isinstance(value, str):
        return not value.isascii() and _HALF.search(value) is not None
    if isinstance(value, dict):
        return any(map(has_half, value.values()))
    if isinstance(value, list):
        return any(map(has_half, value))
    return False


def mend_text(text: str) -> str:
    """Return the text with pairs of halves joined, and single halves replaced."""
    if text.isascii() or not _HALF.search(text):
        return text
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _HALF.sub(REPLACEMENT, joined)


def mend_halves(value: Any) -> Any:  # noqa: ANN401  (any JSON)
    """Return the value without half surrogate pairs; the same object if it holds none."""
    if not has_half(value):
        return value
    match value:
        case str():
            return mend_text(value)
        case dict():
            return {mend_text(name): mend_halves(inner) for name, inner in value.items()}
        case _:
            return [mend_halves(inner) for inner in value]


class SurrogateBuffer:
    """A buffer that holds the first half of a surrogate pair back until its text continues."""

    def __init__(self) -> None:
        self._held: dict[tuple[object, ...], str] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def join(self, key: tuple[object, ...], text: str) -> str:
        """Return the next piece of the text ``key`` without halves; hold a first half at its end."""
        if not text:
            return text
        text = self._held.pop(key, "") + text
        if "\ud800" <= text[-1] <= "\udbff":
            self._held[key] = text[-1]
            text = text[:-1]
        return mend_text(text)

    def left(self, *prefix: object) -> list[tuple[object, ...]]:
        """Return the keys that begin with ``prefix`` and whose text never continued, and forget their halves."""
        keys = [key for key in self._held if key[: len(prefix)] == prefix]
        for key in keys:
            del self._held[key]
        return keys


def is_json(text: str) -> bool:
    """Return whether the text is whole JSON that every program can read and write."""
    try:
        _parse_strictly(text)
    except ValueError:
        return False
    return True


def _parse_strictly(text: str) -> object:
    """Return the value of a JSON text; raise ``ValueError`` for deep nesting and for numbers that JSON lacks."""
    if measure_nesting(text) > MAX_NESTING:
        raise ValueError("nested too deep")
    return json.loads(text, parse_constant=_parse_finite, parse_float=_parse_finite)


def _parse_finite(written: str) -> float:
    value = float(written)
    if not math.isfinite(value):
        raise ValueError(f"{written} is no number of JSON")
    return value


def arguments_text(arguments: object) -> str:
    """Return a call's arguments as text; some servers send an object, or nothing instead of empty arguments."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments if arguments is not None else {}, ensure_ascii=False)


def arguments_of(text: object) -> dict[str, Any]:
    """Return a call's arguments as an object, whatever the model wrote."""
    if isinstance(text, Mapping):
        return dict(text)
    if text is None or (isinstance(text, str) and not text.strip()):
        return {}
    try:
        value = _parse_strictly(text) if isinstance(text, str) else text
    except ValueError:
        value = INVALID_JSON
    if value is None:
        return {}
    return value if isinstance(value, dict) else {INVALID_JSON: text}


def mend_arguments(arguments: object) -> object:
    """Return arguments of an earlier call in a form that strict providers accept: the text of a JSON object."""
    if isinstance(arguments, str) and arguments.lstrip().startswith("{") and is_json(arguments):
        return arguments
    return json.dumps(arguments_of(arguments))


class Ids:
    """A generator of ids for a conversation's calls; each new call gets an unused one.

    The same request and the same answer always give the same ids.
    """

    def __init__(self, taken: Iterable[object], prefix: str = "call_") -> None:
        self._taken = {name for name in taken if isinstance(name, str)}
        self._made: Iterator[str] = (f"{prefix}{number}" for number in itertools.count())

    def take(self, given: object) -> str:
        """Return the id ``given``, or a new one if it is missing or taken."""
        name = given if isinstance(given, str) and given and given not in self._taken else ""
        name = mend_text(name) or next(made for made in self._made if made not in self._taken)
        self._taken.add(name)
        return name

    def reserve(self, given: Iterable[object]) -> None:
        """Reserve these ids, so that no other call gets one."""
        self._made = itertools.filterfalse({*given}.__contains__, self._made)


def mend_each(owner: JsonObject, name: str, mend: Callable[[Any], Any]) -> JsonObject:
    """Return an object with every entry of its list ``name`` corrected; the same object if nothing changed."""
    given = owner.get(name)
    if not isinstance(given, list):
        return owner
    mended = [mend(entry) for entry in given]
    if all(new is old for new, old in zip(mended, given, strict=True)):
        return owner
    return {**owner, name: mended}


def records(value: object) -> Sequence[JsonObject]:
    """Return the objects of a list; empty for any other value."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
