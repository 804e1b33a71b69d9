"""Calls of agents whose model speaks another protocol: their requests in neutral form, and the answers in theirs.

``dgm.gateway.allowed`` has checked the requests before. What changes the question and has no counterpart elsewhere is
refused; hints are left out and noted.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from dgm.gateway.allowed import TABLE, BadRequest, describe_media, leave_out
from dgm.messages import CallKey, JsonObject, Message, Request, Role, WireProtocol
from dgm.wires import RESPONSES
from dgm.wires.responses import flatten_tools, with_plain_functions
from dgm.wires.values import record, records
from dgm.wires.wire import Wire

_FUNCTIONS: Mapping[WireProtocol, Collection[object]] = {
    WireProtocol.CHAT: ("function",),
    WireProtocol.RESPONSES: ("function", "custom"),
    WireProtocol.MESSAGES: (None, "custom"),
}
"""Types of tools that are functions, or become one."""
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


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A well-formed call: the request, and the form of its answer."""

    request: Request
    stream: bool = False
    previous: str = ""
    """The id of the answer that this call continues; empty: the request stands alone."""
    preface: int = 0
    """Number of leading messages that hold for this call only: a call that continues it does not inherit them."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """What of the request the answer depends on or repeats."""

    def after(self, earlier: Sequence[Message]) -> Request:
        """Return the whole request: this call's own preface, the earlier conversation, and the new messages."""
        own = self.request.messages
        return replace(self.request, messages=(*own[: self.preface], *earlier, *own[self.preface :]))

    def inherited(self, whole: Request) -> Sequence[Message]:
        """Return the messages that a continuing call starts from, without the reply; ``whole`` comes from ``after``."""
        return whole.messages[self.preface :]


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
        data = json.loads(written, parse_constant=_parse_finite, parse_float=_parse_finite)
        if "\\ud" in written or "\\uD" in written:
            # JSON can spell half a surrogate pair, which cannot be written to a file or a socket.
            data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON", "invalid_json") from error
    return data


def parse_call(wire: Wire, body: JsonObject) -> ParsedCall:
    """Return the call in a request's body.

    Raises:
        BadRequest: it cannot be translated; the message names what.
    """
    stream = bool(body.get("stream"))
    if wire is not RESPONSES:
        request = _read_request(wire, body, keep_functions(wire, records(body.get("tools"))))
        thinking, display = record(body.get("thinking")), ""
        if thinking and thinking.get("type") != "disabled":
            display = str(thinking.get("display") or "summarized")
        return ParsedCall(request, stream, echo={"thinking": display})
    items = records(body.get("input"))
    later = [tool for item in items if item.get("type") == "additional_tools" for tool in flatten_tools(item)]
    tools = keep_functions(wire, [*flatten_tools(body), *later])
    if not all(isinstance(tool.get("name"), str) for tool in tools):
        raise BadRequest("tools: a tool has no name", "unsupported_tool")
    plain = with_plain_functions(body, tools)
    request = _read_request(wire, plain, plain["tools"])
    word = request.tool_choice
    echo = {
        "instructions": body.get("instructions"),
        "max_output_tokens": request.max_output_tokens,
        "parallel_tool_calls": request.parallel,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": request.effort or None, "summary": None},
        "temperature": request.temperature,
        "tool_choice": {"type": "function", "name": word[5:]} if word.startswith("tool:") else word,
        "top_p": request.top_p,
        "tools": tools,
    }
    previous, preface = str(body.get("previous_response_id") or ""), int(bool(body.get("instructions")))
    return ParsedCall(request, stream, previous, preface, echo)


def answer_id(wire: Wire, key: CallKey) -> str:
    """Return the id of the answer to a call; no two calls of a run share one."""
    return f"{wire.prefix}{key.action}{wire.prefix[-1]}{key.number}"


def keep_functions(wire: Wire, tools: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the tools that are functions, and note the others as left out.

    Raises:
        BadRequest: there are tools, and none is a function.
    """
    kinds = _FUNCTIONS[wire.protocol]
    kept = [tool for tool in tools if tool.get("type") in kinds]
    others = [str(tool.get("type"))[:60] for tool in tools if tool.get("type") not in kinds]
    if others and not kept:
        message = f"tools: {others[0]!r} is not offered here, only functions; no tools of a provider"
        raise BadRequest(message, "unsupported_tool")
    for kind in others:
        leave_out(f"tools of the type {kind!r}")
    return kept


def _parse_finite(written: str) -> float:
    """Return a number; raise ``ValueError`` for those that Python's parser accepts, but JSON does not have."""
    value = float(written)
    if not math.isfinite(value):
        raise ValueError(f"{written} is no number of JSON")
    return value


def _read_request(wire: Wire, body: JsonObject, functions: Sequence[JsonObject]) -> Request:
    _check_keys(wire.protocol, body)
    for place, turn in _turns(wire, body):
        _check_turn(turn, place)
    request = wire.read_request({**body, "tools": functions})
    last = request.messages[-1].role if request.messages else None
    if wire.protocol is WireProtocol.MESSAGES and last is Role.ASSISTANT:
        raise BadRequest("the last message is the assistant's: to go on within it is not offered here")
    # The gateway's memory puts a vendor's own form of a turn back; agents cannot forge it.
    messages = tuple(replace(message, native=None) for message in request.messages)
    return replace(request, messages=messages, tools=tuple(request.tools), model=request.model or "default")


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


def _turns(wire: Wire, body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    key = wire.turns
    yield "system", {"content": body.get("system")}
    for at, turn in enumerate(records(body.get(key))):
        place = f"{key}[{at}]"
        kind = turn.get("type") or "message"
        if wire is RESPONSES and kind not in _ITEMS:
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
