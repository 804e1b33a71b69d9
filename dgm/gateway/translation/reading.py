"""Read requests that are to be translated into another protocol, after ``dgm.gateway.allowed`` has checked them.

What changes the question and has no counterpart elsewhere is refused; hints are left out and noted.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from dgm.gateway.allowed import TABLE
from dgm.gateway.leaving_out import describe_media, leave_out
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject, Request, Role, WireProtocol
from dgm.wires import WIRES
from dgm.wires.values import records

_TEXTS = (
    *("text", "input_text", "output_text", "refusal", "summary_text", "tool_reference", "tool_use"),
    *("thinking", "redacted_thinking"),
)
"""Types of content that are texts, or that have a counterpart in every protocol."""
_ITEMS = (
    *("message", "reasoning", "additional_tools", "function_call", "function_call_output"),
    *("custom_tool_call", "custom_tool_call_output"),
)
_KEEP_THINKING = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
"""The edit that the gateway always makes: it puts the thinking of every turn back."""
_CHANGES = ("tool_addition", "tool_removal")
"""Blocks that change the tools within a conversation; a tool that they name is offered from the start."""


def parse_document(body: bytes) -> dict[str, Any]:
    """Return the object in a body, its texts free of half surrogate pairs.

    Raises:
        BadRequest: it is no JSON object.
    """
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        data = _parse_leniently(body)
    if not isinstance(data, dict):
        raise BadRequest("the body must be an object")
    return data


def _parse_leniently(body: bytes) -> Any:  # noqa: ANN401  (any JSON)
    """Return a JSON value that may begin with a mark of its encoding or hold half surrogate pairs."""
    try:
        written = str(body, "utf-8-sig")
        data = json.loads(written, parse_constant=refuse_constant, parse_float=_parse_finite)
        if "\\ud" in written or "\\uD" in written:
            # JSON can spell half a surrogate pair, which cannot be written to a file or a socket.
            data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON", "invalid_json") from error
    return data


def read_request(protocol: WireProtocol, body: JsonObject, kinds: Collection[object]) -> Request:
    """Return a request in neutral form.

    Args:
        protocol: its protocol.
        body: its body.
        kinds: the types of tools that are functions.

    Raises:
        BadRequest: it holds something that cannot be translated; the message names it.
    """
    _check_keys(protocol, body)
    for place, turn in _turns(protocol, body):
        _check_turn(turn, place)
    functions = keep_functions(records(body.get("tools")), kinds)
    request = WIRES[protocol].read_request({**body, "tools": functions})
    last = request.messages[-1].role if request.messages else None
    if protocol is WireProtocol.MESSAGES and last is Role.ASSISTANT:
        raise BadRequest("the last message is the assistant's: to go on within it is not offered here")
    # The gateway's memory puts a vendor's own form of a turn back; agents cannot forge it.
    messages = tuple(replace(message, native=None) for message in request.messages)
    return replace(request, messages=messages, tools=tuple(request.tools), model=request.model or "default")


def keep_functions(tools: Sequence[JsonObject], kinds: Collection[object]) -> list[JsonObject]:
    """Return the tools of the given types, and note the others as left out.

    Raises:
        BadRequest: there are tools, and none has such a type.
    """
    kept = [tool for tool in tools if tool.get("type") in kinds]
    others = [str(tool.get("type"))[:60] for tool in tools if tool.get("type") not in kinds]
    if others and not kept:
        message = f"tools: {others[0]!r} is not offered here, only functions; no tools of a provider"
        raise BadRequest(message, "unsupported_tool")
    for kind in others:
        leave_out(f"tools of the type {kind!r}")
    return kept


def refuse_constant(written: str) -> None:
    """Raise ``ValueError`` for ``NaN`` or ``Infinity``, which Python's parser would accept."""
    raise ValueError(f"{written} is not JSON")


def _parse_finite(written: str) -> float:
    value = float(written)
    if not math.isfinite(value):
        raise ValueError(f"{written} is too large")
    return value


def _check_keys(protocol: WireProtocol, body: JsonObject) -> None:
    for key, value in body.items():
        if key in TABLE["carried"][protocol] or _asks_for_nothing(key, value):
            continue
        if key in TABLE["question"]["passed"]:
            raise _untranslatable(key)
        leave_out(key)
    for key, form in (("text", "format"), ("output_config", "format")):
        settings = body.get(key)
        if isinstance(settings, Mapping):
            if not _asks_for_nothing(form, settings.get(form)):
                raise _untranslatable(f"{key}.{form}")
            if settings.get("verbosity") not in (None, "medium"):
                leave_out(f"{key}.verbosity")


def _asks_for_nothing(key: str, value: object) -> bool:
    """Return whether a value is what a provider assumes without it."""
    if isinstance(value, Mapping) and value.get("type") == "text":
        return True
    return not value or value == _KEEP_THINKING or (key == "n" and value == 1 and value is not True)


def _untranslatable(place: str, code: str = "unsupported_parameter") -> BadRequest:
    return BadRequest(f"{place} has no counterpart in another protocol; leave it out", code)


def _turns(protocol: WireProtocol, body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    key = WIRES[protocol].turns
    yield "system", {"content": body.get("system")}
    for at, turn in enumerate(records(body.get(key))):
        place = f"{key}[{at}]"
        kind = turn.get("type") or "message"
        if protocol is WireProtocol.RESPONSES and kind not in _ITEMS:
            message = f"{place}: items of the type {str(kind)[:40]!r} cannot be translated"
            raise BadRequest(message, "unsupported_content")
        yield place, turn


def _check_turn(turn: JsonObject, place: str) -> None:
    if turn.get("output_config"):
        leave_out(f"{place}.output_config")
    is_result = turn.get("role") == "tool" or str(turn.get("type")).endswith("_output")
    for part in (*records(turn.get("content")), *records(turn.get("output"))):
        kind = part.get("type")
        if kind == "tool_result":
            _note_media(part.get("content"))
        elif kind in _CHANGES:
            tool = part.get("tool")
            if not isinstance(tool, Mapping) or tool.get("type") != "tool_reference":
                raise _untranslatable(f"{place}: the definition of a tool", "unsupported_content")
            leave_out("changes of tools within the conversation")
        elif is_result:
            _note_media([part])
        elif kind not in _TEXTS:
            raise BadRequest(
                f"{place}: only text is accepted, not {str(kind)[:40]!r}; files and media, by URL or inline, are not"
                " offered here",
                "unsupported_content",
            )


def _note_media(content: object) -> None:
    for part in records(content):
        if part.get("type") not in _TEXTS:
            describe_media(part)
