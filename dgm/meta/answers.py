"""The host's own questions to a model, and a parser of JSON in the prose and fences of its answers.

Answers are parsed leniently in form and strictly in content. The model is told what is wrong with an answer, so that it
may correct it. The meaning of the keys is left to the caller.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol, TypeVar

from dgm.errors import AgentFault
from dgm.messages import Message, Reply, Request, RequestRefused, Role, Stop

MAX_CHARS = 4_000_000
"""Maximum characters of an answer that are examined: as many as an agent may have of source."""
MAX_DEPTH = 100
"""Maximum nesting depth of objects and lists."""
_TRIES = 3
"""Average number of times that a character is read again in the search for an object that parses."""
_PATIENCE = 1_000_000
"""Additional characters to read, so that a short text may contain any number of false starts."""
_BEGINS = re.compile(r"\{\s*[\"}]")
_QUOTED = 4_000
"""Characters of an answer that are shown again to the model that gave it."""

T = TypeVar("T")


class MalformedAnswer(ValueError):
    """The error for an answer in the wrong form; the message is one line for the model."""


class CanAsk(Protocol):
    """The interface for a single question to a model, such as a workbench."""

    async def ask(self, request: Request, role: str) -> Reply:
        """Return one reply.

        Raises:
            RequestRefused: this request can never be answered, or nothing more may be spent on it.
            Infrastructure: the model failed.
        """
        ...


async def ask_until_readable(
    bench: CanAsk, request: Request, read: Callable[[str], T], retries: int, role: str
) -> T:
    """Ask until ``read`` accepts the answer; each new question says what was wrong before.

    Args:
        bench: sends the question.
        request: the question; it offers no tools.
        read: converts the reply's text to the result, or raises ``MalformedAnswer``.
        retries: further questions after the first, 0 or more.
        role: the role that is charged, as ``Workbench.ask`` knows it.

    Raises:
        AgentFault: stage ``answer``: no answer was readable, or the request was refused.
        Infrastructure: the model failed.
    """
    messages, fault = tuple(request.messages), ""
    for _ in range(retries + 1):
        try:
            reply = await bench.ask(replace(request, messages=messages), role)
        except RequestRefused as error:
            raise AgentFault(
                "answer", f"the model was refused the question: {error.code}: {error}"
            ) from error
        if reply.error:
            raise AgentFault("answer", f"the model was refused the question: {reply.error}: {reply.text}")
        try:
            return read(reply.text)
        except MalformedAnswer as error:
            fault = _describe_fault(reply, error)
        # Omit the reply's calls: a provider wants each one answered, and no such tool exists.
        said = Message(Role.ASSISTANT, _shorten(reply.text) or "(nothing)")
        complaint = f"That cannot be used: {fault}. Answer again, in full, in the form that was asked for."
        messages = (*messages, said, Message(Role.USER, complaint))
    raise AgentFault("answer", f"no usable answer in {retries + 1} tries: {fault}")


def read_object(text: str, keys: Sequence[str]) -> Mapping[str, object]:
    """Return the last JSON object in a text that has all of ``keys``.

    Objects inside other JSON objects are not examined. Prose and fences around objects are skipped, and line breaks
    inside strings are allowed.

    Raises:
        Unreadable: there is none; or it is nested deeper than ``MAX_DEPTH``, or holds ``NaN``, an infinite number, half
            a surrogate pair, or a key twice; or the text is longer than ``MAX_CHARS``.
    """
    if len(text) > MAX_CHARS:
        raise MalformedAnswer(f"the answer has {len(text)} characters; {MAX_CHARS} are allowed")
    pieces = list(_pieces(text))
    complete = [
        one.value for one in pieces if one.value is not None and all(key in one.value for key in keys)
    ]
    if complete:
        _check(complete[-1])
        return complete[-1]
    if not pieces:
        raise MalformedAnswer(
            "there is no JSON object in it, with its keys in double quotes"
            if text.strip()
            else "the answer is empty"
        )
    longest = max(pieces, key=lambda piece: piece.chars)
    if longest.value is None:
        raise MalformedAnswer(longest.fault)
    missing = ", ".join(repr(key) for key in keys if key not in longest.value)
    raise MalformedAnswer(f"the JSON object has no {missing}")


def read_text(answer: Mapping[str, object], key: str) -> str:
    """Return a string that is more than white space, stripped.

    Raises:
        Unreadable: it is anything else, or missing.
    """
    value = answer.get(key)
    if not isinstance(value, str) or not value.strip():
        raise MalformedAnswer(f"{key!r} must be a string that is not empty")
    return value.strip()


def read_flag(answer: Mapping[str, object], key: str) -> bool:
    """Return a boolean.

    Raises:
        Unreadable: it is anything else, or missing.
    """
    value = answer.get(key)
    if not isinstance(value, bool):
        raise MalformedAnswer(f"{key!r} must be true or false")
    return value


def read_texts(answer: Mapping[str, object], key: str) -> dict[str, str]:
    """Return an object whose values are all strings, such as files by path; ``{}`` if the key is missing.

    Raises:
        Unreadable: it is anything else.
    """
    value = answer.get(key, {})
    if not isinstance(value, dict):
        raise MalformedAnswer(f"{key!r} must be an object")
    return _strings(value, f"in {key!r}")


def read_records(answer: Mapping[str, object], key: str, fields: Sequence[str]) -> list[dict[str, str]]:
    """Return a list of objects that each have the named fields, all strings; ``[]`` if the key is missing.

    Raises:
        Unreadable: it is anything else.
    """
    value = answer.get(key, [])
    if not isinstance(value, list):
        raise MalformedAnswer(f"{key!r} must be a list")
    rows = []
    for n, row in enumerate(value, 1):
        place = f"in number {n} of {key!r}"
        if not isinstance(row, dict):
            raise MalformedAnswer(f"number {n} of {key!r} must be an object")
        for field in fields:
            if field not in row:
                raise MalformedAnswer(f"{place}, {field!r} is missing")
        rows.append(_strings({field: row[field] for field in fields}, place))
    return rows


def _strings(value: Mapping[str, object], place: str) -> dict[str, str]:
    strings = {}
    for key, text in value.items():
        if not isinstance(text, str):
            raise MalformedAnswer(f"{place}, {key[:100]!r} must be a string")
        strings[key] = text
    return strings


@dataclass(frozen=True, slots=True)
class _Piece:
    """The result of parsing at one brace: an object, or the fault in it."""

    chars: int
    value: Mapping[str, object] | None
    fault: str = ""


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield the top-level pieces of a text within a bounded effort, because a hostile text may be slow to parse."""
    left = _PATIENCE + _TRIES * len(text)
    begin = _BEGINS.search(text)
    while begin and left > 0:
        at = begin.start()
        piece = _piece(text, at)
        yield piece
        if piece.value is None:
            # Python counts the lines before a fault, from the beginning of the text.
            left -= piece.chars + at // 20
        begin = _BEGINS.search(text, at + (1 if piece.value is None else piece.chars))


def _piece(text: str, at: int) -> _Piece:
    rest = len(text) - at
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        # For a string without an end, Python reports the position of its beginning.
        chars = rest if error.msg.startswith("Unterminated") else error.pos - at
        return _Piece(chars, None, f"the JSON is wrong: {error}")
    except MalformedAnswer as error:
        return _Piece(rest, None, str(error))
    except RecursionError:
        raise MalformedAnswer(f"the JSON is nested deeper than {MAX_DEPTH}") from None
    return _Piece(end - at, value)


def _reject_duplicate_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, value in pairs:
        if key in made:
            raise MalformedAnswer(f"the JSON has the key {key[:100]!r} twice in one object")
        made[key] = value
    return made


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise MalformedAnswer(f"the JSON holds a number of {len(digits)} digits") from None


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise MalformedAnswer(f"the JSON holds {digits[:40]}, which is no finite number")
    return value


def _reject_constant(word: str) -> NoReturn:
    raise MalformedAnswer(f"the JSON holds {word}, which JSON does not know")


_DECODER = json.JSONDecoder(
    strict=False,
    object_pairs_hook=_reject_duplicate_keys,
    parse_int=_integer,
    parse_float=_number,
    parse_constant=_reject_constant,
)


def _check(answer: Mapping[str, object]) -> None:
    waiting: list[tuple[object, int]] = [(answer, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            _check_text(value)
        elif isinstance(value, dict | list):
            if depth > MAX_DEPTH:
                raise MalformedAnswer(f"the JSON is nested deeper than {MAX_DEPTH}")
            inside = [*value, *value.values()] if isinstance(value, dict) else value
            waiting += [(item, depth + 1) for item in inside]


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MalformedAnswer(
            f"a string holds half a surrogate pair (\\u{ord(text[error.start]):04x})"
        ) from error


def _describe_fault(reply: Reply, error: MalformedAnswer) -> str:
    """Return the message to the model: the probable cause, if it is visible, and then the fault."""
    if reply.calls:
        return f"there is no tool {reply.calls[0].name[:100]!r}, answer in text ({error})"
    if reply.stop is Stop.LENGTH:
        return f"the answer was cut off at the limit of its length ({error})"
    if reply.stop is Stop.REFUSAL:
        return f"the question was declined ({error})"
    return str(error)


def _shorten(text: str) -> str:
    plain = text.encode(errors="replace").decode()
    return plain if len(plain) <= _QUOTED else plain[:_QUOTED] + "\n[...]"
