"""Odd values in other programs' JSON: counts of tokens, half surrogate pairs, arguments that are no text, pieces."""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import orjson

from dgm.domain import Usage
from dgm.messages import JsonObject


def dump_json(value: object) -> bytes:
    """Return a value as JSON; half a surrogate pair, which has no UTF-8 form, becomes a question mark."""
    try:
        return orjson.dumps(value)
    except TypeError:  # also for numbers beyond 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


INVALID_JSON = "INVALID_JSON"
"""Key under which a model sees its own malformed arguments again: strict providers require an object."""
MAX_NESTING = 64
"""Maximum nesting of a call's arguments that are read as JSON: not every JSON library can write deeper nesting."""

_CHARACTERS_PER_TOKEN = 4
_NOT_READ = ("model", "stream", "stream_options", "metadata", "user")
"""Keys of a request that the model does not read."""
_HALF = re.compile("[\ud800-\udfff]")
_REPLACED = frozenset(("role", "id", "type", "name", "index", "format", "signature", "object", "expires_at"))
"""Fields whose later value replaces the earlier one."""


# Numbers of tokens


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
    given = record(whole.get("usage") or record(whole.get("x_groq")).get("usage"))
    details, thought = given.get(f"{read}_tokens_details"), given.get(f"{wrote}_tokens_details")
    into = count_of(given, f"{read}_tokens") or (
        # DeepSeek may give the input only as cached and uncached tokens.
        count_of(given, "prompt_cache_hit_tokens") + count_of(given, "prompt_cache_miss_tokens")
    )
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


# Texts


def records(value: object) -> Sequence[JsonObject]:
    """Return the objects of a list; empty for any other value."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def record(value: object) -> JsonObject:
    """Return an object; empty for any other value."""
    return value if isinstance(value, dict) else {}


def texts(parts: object, *keys: str) -> str:
    """Return all strings under ``keys`` of a list of records, joined; a string unchanged."""
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list | tuple):
        return ""
    records = [part for part in parts if isinstance(part, Mapping)]
    return "".join(part[key] for part in records for key in keys if isinstance(part.get(key), str))


def mend_text(text: str) -> str:
    """Return the text with the halves of surrogate pairs joined, and single halves replaced."""
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def map_texts(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401  (any JSON)
    """Return the value with every string changed; the same object if nothing changed."""
    match value:
        case str():
            return change(value)
        case dict():
            changed = {change(name): map_texts(inner, change) for name, inner in value.items()}
            same = changed.keys() == value.keys() and all(changed[name] is value[name] for name in value)
            if same:
                return value
            return Written(changed, change(value.text)) if isinstance(value, Written) else changed
        case list():
            entries = [map_texts(inner, change) for inner in value]
            return value if all(new is old for new, old in zip(entries, value, strict=True)) else entries
        case _:
            return value


def mend_halves(value: Any) -> Any:  # noqa: ANN401  (any JSON)
    """Return the value without half surrogate pairs; the same object if it holds none."""
    return map_texts(value, mend_text) if _has_half(value) else value


def _has_half(value: object) -> bool:
    """Return whether a string of the value holds half a surrogate pair; fast, because it checks every request."""
    if isinstance(value, str):
        return not value.isascii() and _HALF.search(value) is not None
    if isinstance(value, dict):
        return any(map(_has_half, value.values()))
    return isinstance(value, list) and any(map(_has_half, value))


def is_nested_deeper(value: object, limit: int) -> bool:
    """Return whether a JSON value is nested in more than ``limit`` levels."""
    level = [value]
    while level and limit >= 0:
        limit -= 1
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


# Arguments of calls


class Written(dict[str, Any]):
    """Arguments of a call, with the text that the model wrote."""

    def __init__(self, value: Mapping[str, Any], text: str) -> None:
        """Take the arguments and their text."""
        super().__init__(value)
        self.text = text


def is_json(text: str) -> bool:
    """Return whether the text is whole JSON that every program can read and write."""
    try:
        _parse_strictly(text)
    except ValueError:
        return False
    return True


def _parse_strictly(text: str) -> object:
    value = orjson.loads(text.encode("utf-8", "surrogatepass"))
    if is_nested_deeper(value, MAX_NESTING):
        raise ValueError("nested too deep")
    return value


def arguments_text(arguments: object) -> str:
    """Return a call's arguments as text; some servers send an object, or nothing instead of empty arguments."""
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, Written):
        return arguments.text
    return json.dumps(arguments if arguments is not None else {}, ensure_ascii=False)


def arguments_of(text: object) -> dict[str, Any]:
    """Return a call's arguments as an object, whatever the model wrote."""
    if isinstance(text, dict):
        return text
    if text is None or (isinstance(text, str) and not text.strip()):
        return {}
    try:
        value = _parse_strictly(text) if isinstance(text, str) else text
    except ValueError:
        value = INVALID_JSON
    if value is None:
        return {}
    value = value if isinstance(value, dict) else {INVALID_JSON: text}
    return Written(value, text) if isinstance(text, str) else value


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
        name = name or next(made for made in self._made if made not in self._taken)
        self._taken.add(name)
        return name


def mend_each(owner: JsonObject, name: str, mend: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Return an object with every record of its list ``name`` corrected; the same object if nothing changed."""
    given = owner.get(name)
    if not isinstance(given, list):
        return owner
    mended = [mend(entry) if isinstance(entry, dict) else entry for entry in given]
    if all(new is old for new, old in zip(mended, given, strict=True)):
        return owner
    return {**owner, name: mended}


# Pieces


class Growing:
    """The fields of a message that comes in pieces: texts and lists grow, records are merged, the rest is replaced."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[Any]] = {}

    def add(self, delta: JsonObject, leave: Sequence[str] = ()) -> None:
        """Add a delta's fields except those in ``leave``; null changes nothing."""
        for name, value in delta.items():
            if value is not None and name not in leave:
                self._pieces.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._pieces

    def fields(self) -> dict[str, Any]:
        """Return all fields so far."""
        return {name: _join(name, pieces) for name, pieces in self._pieces.items()}


def _join(name: str, pieces: Sequence[Any]) -> Any:  # noqa: ANN401  (any JSON)
    if name in _REPLACED:
        return pieces[-1]
    if all(type(piece) is str for piece in pieces):
        return "".join(pieces)
    return reduce(merge, pieces, [] if isinstance(pieces[0], list) else None)


def merge(old: Any, new: Any) -> Any:  # noqa: ANN401  (any JSON)
    """Return a value continued by a further piece."""
    match old, new:
        case str(), str():
            return old + new
        case list(), str():
            return merge(old, [{"type": "text", "text": new}])
        case str(), list():
            return merge([{"type": "text", "text": old}], new)
        case list(), list():
            entries = list(old)
            for entry in new:
                if entries and _continues(entries[-1], entry):
                    entries[-1] = merge(entries[-1], entry)
                else:
                    entries.append(entry)
            return entries
        case dict(), dict():
            more = {
                name: value if old.get(name) is None or name in _REPLACED else merge(old[name], value)
                for name, value in new.items()
                if value is not None
            }
            return {**old, **more}
        case _:
            return new


def _continues(last: object, entry: object) -> bool:
    """Return whether an entry of a list continues the last one: a part with the same index and type, or plain text."""
    if not (isinstance(last, dict) and isinstance(entry, dict)) or last.get("type") != entry.get("type"):
        return False
    kind = entry.get("type")
    if not isinstance(kind, str) or not kind:
        return False
    if "index" in entry or "index" in last:
        return bool(last.get("index") == entry.get("index"))
    if kind in ("text", "thinking"):
        return isinstance(entry.get(kind), str | list) and not entry.get("annotations")
    return kind in ("reasoning.text", "reasoning.summary")
