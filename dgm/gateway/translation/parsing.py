"""Strict parsing of untrusted JSON, for all protocols: anything not understood is refused, and nothing is guessed."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dgm.gateway.leaving_out import describe_media, leave_out
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject, Tool
from dgm.wires.json_scan import measure_nesting

MAX_MESSAGES = 10_000
MAX_TOOLS = 200
MAX_DEPTH = 40
"""Maximum depth of a schema or a call's input: not every JSON library can write deeper nesting."""
UNSUPPORTED_TOOL = "unsupported_tool"
"""Code of the refusal of a tool's type."""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class RequestKeys:
    """The allowed keys of a request object; a key whose value is null asks for nothing and is always allowed."""

    read: frozenset[str]
    """Keys that are read and carried to the model."""
    ignored: frozenset[str] = frozenset()
    """Keys accepted without effect: the answer would be of the same kind without them."""
    neutral: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Keys accepted only with a value that asks for nothing beyond the default behaviour."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Known keys of the protocol that are not offered here: map of key to reason."""
    hints: frozenset[str] = frozenset()
    """Keys of ``neutral`` that are left out with another value: they are no part of the question."""


def make_keys(
    read: str,
    ignored: Iterable[str] = (),
    neutral: Mapping[str, tuple[Any, ...]] | None = None,
    refused: Mapping[str, str] | None = None,
    hints: Iterable[str] = (),
) -> RequestKeys:
    """Return ``RequestKeys`` from blank-separated names."""
    return RequestKeys(
        frozenset(read.split()), frozenset(ignored), neutral or {}, refused or {}, frozenset(hints)
    )


def parse_document(body: bytes) -> dict[str, Any]:
    """Return the object in a body, its texts free of half surrogate pairs.

    Raises:
        BadRequest: it is no JSON object.
    """
    try:
        written = str(body, "utf-8-sig")
        data = json.loads(written, parse_constant=refuse_constant, parse_float=_parse_finite)
        if "\\ud" in written or "\\uD" in written:
            # JSON can spell half a surrogate pair, which cannot be written to a file or a socket.
            data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON", "invalid_json") from error
    if not isinstance(data, dict):
        raise BadRequest("the body must be an object")
    return data


def check_keys(given: JsonObject, allowed: RequestKeys, place: str = "") -> None:
    """Raise ``BadRequest`` for the first key that changes the question; name unknown keys as left out.

    Raises:
        BadRequest: a key is refused, or has a value that is not offered; the message names it and the reason.
    """
    if given.keys() <= allowed.read:
        return
    for key, value in given.items():
        if value is None or key in allowed.read or key in allowed.ignored:
            continue
        accepted = allowed.neutral.get(key, ())
        # ``True`` equals 1 in Python.
        if any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in accepted):
            continue
        written = json.dumps(key[:60])[1:-1]
        told = f"{place}.{written}" if place else written
        if key in allowed.refused:
            raise BadRequest(f"{told} is not offered here: {allowed.refused[key]}", "unsupported_parameter")
        if not accepted or key in allowed.hints:
            leave_out(told)
            continue
        words = " or ".join(json.dumps(one) for one in accepted)
        raise BadRequest(f"{told} must be {words} or left out", "unsupported_parameter")


def read_text(value: Any, place: str) -> str:  # noqa: ANN401  (what a stranger's JSON holds)
    """Return a text; it may be empty."""
    if not isinstance(value, str):
        raise BadRequest(f"{place} must be a text")
    return value


def read_arguments(value: Any, place: str) -> str:  # noqa: ANN401
    """Return the text of a call's arguments: JSON, or what the model wrote instead, of bounded nesting."""
    text = read_text(value, place)
    if measure_nesting(text) > MAX_DEPTH:
        raise BadRequest(f"{place} is nested deeper than {MAX_DEPTH}")
    return text


def read_name(value: Any, place: str) -> str:  # noqa: ANN401
    """Return a non-empty text: a name or an id."""
    if not read_text(value, place):
        raise BadRequest(f"{place} must not be empty")
    return str(value)


def read_record(value: Any, place: str) -> JsonObject:  # noqa: ANN401
    """Return an object."""
    if not isinstance(value, dict):
        raise BadRequest(f"{place} must be an object")
    return value


def read_entries(value: Any, place: str, most: int) -> Sequence[Any]:  # noqa: ANN401
    """Return a list of bounded length."""
    if not isinstance(value, list):
        raise BadRequest(f"{place} must be a list")
    if len(value) > most:
        raise BadRequest(f"{place} has {len(value)} entries; at most {most} are accepted")
    return value


def read_flag(value: Any, place: str, missing: bool = False) -> bool:  # noqa: ANN401
    """Return a boolean; ``missing`` for null."""
    if value is None:
        return missing
    if not isinstance(value, bool):
        raise BadRequest(f"{place} must be true or false")
    return value


def read_number(value: Any, place: str, most: float) -> float | None:  # noqa: ANN401
    """Return a number from 0 to ``most``, or None for null."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise BadRequest(f"{place} must be a number from 0 to {most:g}")
    return float(value)


def read_whole(value: Any, place: str) -> int | None:  # noqa: ANN401
    """Return a whole number above 0, or None for null."""
    if value is None:
        return None
    if type(value) is not int or value < 1:
        raise BadRequest(f"{place} must be a whole number above 0")
    return value


def read_one_of(value: Any, place: str, allowed: Collection[str]) -> str:  # noqa: ANN401
    """Return one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise BadRequest(f"{place} must be one of {', '.join(allowed)}")
    return value


def read_effort(value: Any, place: str) -> str:  # noqa: ANN401
    """Return the reasoning effort; empty for null."""
    return "" if value is None else read_one_of(value, place, EFFORTS)


def read_stops(value: Any, place: str, most: int) -> tuple[str, ...]:  # noqa: ANN401
    """Return stop sequences from a list, or from one text."""
    if value is None:
        return ()
    given = [value] if isinstance(value, str) else read_entries(value, place, most)
    return tuple(read_name(one, f"{place}[{at}]") for at, one in enumerate(given))


def read_parts(value: Any, place: str, read: Callable[[JsonObject, str], str], gap: str = "") -> str:  # noqa: ANN401
    """Return the text of content: a text, or a list of parts that ``read`` converts to texts."""
    if isinstance(value, str):
        return value
    told = (
        read(read_record(part, f"{place}[{at}]"), f"{place}[{at}]")
        for at, part in enumerate(read_entries(value, place, MAX_MESSAGES))
    )
    return gap.join(told)


def refuse_media(kind: object, place: str) -> BadRequest:
    """Return the refusal of a content part that holds no text."""
    shown = str(kind)[:40]
    return BadRequest(
        f"{place}: only text is accepted, not {shown!r}; files and media, by URL or inline, are not offered here",
        "unsupported_content",
    )


def result_reader(
    texts: Collection[str], read: Callable[[JsonObject, str], str]
) -> Callable[[JsonObject, str], str]:
    """Return a reader of the parts of a tool's result: parts of other types than ``texts`` become a short text."""
    return lambda part, place: read(part, place) if part.get("type") in texts else describe_media(part)


def read_schema(value: Any, place: str) -> JsonObject:  # noqa: ANN401
    """Return an object that any JSON library can write."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _child_values(parent)]
        if not level:
            return read_record(value, place)
    raise BadRequest(f"{place} is nested deeper than {MAX_DEPTH}")


def read_tools(value: Any, read: Callable[[JsonObject, str], Tool]) -> tuple[Tool, ...]:  # noqa: ANN401
    """Return the tools of a request, no two with the same name; those of other types are left out beside them."""
    if value is None:
        return ()
    found: dict[str, Tool] = {}
    unknown: list[str] = []
    refusal: BadRequest | None = None
    for at, given in enumerate(read_entries(value, "tools", MAX_TOOLS)):
        try:
            tool = read(read_record(given, f"tools[{at}]"), f"tools[{at}]")
        except BadRequest as error:
            if error.code != UNSUPPORTED_TOOL:
                raise
            refusal = refusal or error
            unknown.append(str(given.get("type"))[:60])
            continue
        if tool.name in found:
            raise BadRequest(f"tools[{at}]: there is another tool of the name {tool.name[:80]!r}")
        found[tool.name] = tool
    if refusal is not None and not found:
        raise refusal
    for kind in unknown:
        leave_out(f"tools of the type {kind!r}")
    return tuple(found.values())


def read_function(given: JsonObject, place: str) -> Tool:
    """Return a function of OpenAI's protocols as a tool; it has a name, and may have a description and parameters."""
    described, parameters = given.get("description"), given.get("parameters")
    return Tool(
        read_name(given.get("name"), f"{place}.name"),
        "" if described is None else read_text(described, f"{place}.description"),
        {} if parameters is None else read_schema(parameters, f"{place}.parameters"),
    )


def read_function_choice(value: Any, within: str = "") -> str:  # noqa: ANN401
    """Return a tool choice of OpenAI's protocols; ``within`` is the key of the object with a function's name."""
    if value is None:
        return "auto"
    if isinstance(value, str):
        return read_one_of(value, "tool_choice", ("auto", "none", "required"))
    given, place = read_record(value, "tool_choice"), "tool_choice"
    if given.get("type") != "function":
        raise BadRequest("tool_choice can only name a function", "unsupported_parameter")
    if within:
        given, place = read_record(given.get(within), f"{place}.{within}"), f"{place}.{within}"
    return "tool:" + read_name(given.get("name"), f"{place}.name")


def read_choice(word: str, offered: Sequence[Tool]) -> str:
    """Return a choice ``auto``, ``none``, ``required`` or ``tool:NAME`` that the offered tools can satisfy."""
    if word == "required" and not offered:
        raise BadRequest("tool_choice demands a call, but there are no tools")
    if word.startswith("tool:") and word[5:] not in {tool.name for tool in offered}:
        raise BadRequest(f"tool_choice names {word[5:85]!r}, which is not among the tools")
    return word


def _child_values(value: Any) -> Sequence[Any]:  # noqa: ANN401
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()


def refuse_constant(written: str) -> None:
    """Raise ``ValueError`` for ``NaN`` or ``Infinity``, which Python's parser would accept."""
    raise ValueError(f"{written} is not JSON")


def _parse_finite(written: str) -> float:
    value = float(written)
    if not math.isfinite(value):
        raise ValueError(f"{written} is too large")
    return value
