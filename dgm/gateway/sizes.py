"""Bounds on the size of a request and on its output, for every form of request."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dgm.archive.wire_exchange import TURNS
from dgm.messages import Message, Request, WireRequest
from dgm.wires import WIRES

CALL_TOKENS = 1_000
"""Input tokens that providers may add to a request, such as an instruction for tools; a generous bound."""
MESSAGE_TOKENS = 16
"""Input tokens that providers may add to one message, such as marks between turns."""
MEDIA_TOKENS = 20_000
"""Bound on the tokens of one picture or sound, however many bytes it has."""
_MEDIA = re.compile(r"[A-Za-z0-9+/]{8000,}={0,2}")
"""Pattern that matches only encoded media."""

AnyRequest = Request | WireRequest


@dataclass(frozen=True, slots=True)
class MeasuredRequest:
    """A request that was answered, and the input tokens that the provider counted in it."""

    request: AnyRequest
    input_tokens: int


def output_limit(request: AnyRequest) -> int | None:
    """Return the maximum output tokens that a request asks for, for each of its answers."""
    if isinstance(request, Request):
        return request.max_output_tokens
    return WIRES[request.protocol].output_limit(request.body)


def with_output_limit(request: AnyRequest, tokens: int) -> AnyRequest:
    """Return the request with another output limit."""
    if isinstance(request, Request):
        return replace(request, max_output_tokens=tokens)
    return replace(request, body=WIRES[request.protocol].limited(request.body, tokens))


def output_bound(request: AnyRequest) -> int:
    """Return the maximum output tokens that a request can cost; 0 if it sets no limit."""
    answers = 1 if isinstance(request, Request) else WIRES[request.protocol].choices(request.body)
    return (output_limit(request) or 0) * answers


def input_bound(request: AnyRequest, before: MeasuredRequest | None = None) -> int:
    """Return the maximum input tokens of the request.

    No tokenizer makes more than one token of a byte. For English that bound is four times too high, so the part that an
    answered request already contains counts as the provider counted it.
    """
    if isinstance(request, WireRequest):
        return _wire_input_bound(request, before)
    messages = tuple(request.messages)
    if before and isinstance(before.request, Request) and _is_continuation(request, before.request):
        new = messages[len(before.request.messages) :]
        return before.input_tokens + CALL_TOKENS + sum(map(_message_bound, new))
    tools = sum(len(f"{tool.name}{tool.description}{tool.parameters}".encode()) for tool in request.tools)
    return CALL_TOKENS + tools + sum(map(_message_bound, messages))


def _wire_input_bound(request: WireRequest, before: MeasuredRequest | None) -> int:
    key = TURNS[request.protocol]
    turns = request.body.get(key)
    if before and isinstance(before.request, WireRequest) and isinstance(turns, list):
        known = before.request.body.get(key)
        if (
            isinstance(known, list)
            and turns[: len(known)] == known
            and _is_same_setup(request, before.request, key)
        ):
            return before.input_tokens + CALL_TOKENS + _json_bound(turns[len(known) :])
    return CALL_TOKENS + _json_bound(request.body)


def _is_same_setup(request: WireRequest, before: WireRequest, turns: str) -> bool:
    """Return whether everything but the turns that carry input is the same."""
    return all(
        request.body.get(key) == before.body.get(key)
        for key in ("tools", "system", "instructions", "functions", "response_format", "text")
        if key != turns
    )


def _json_bound(value: Mapping[str, Any] | Sequence[Any]) -> int:
    text = json.dumps(value, ensure_ascii=False)
    media = [len(found[0]) for found in _MEDIA.finditer(text)] if len(text) > MEDIA_TOKENS else []
    size = len(text.encode("utf-8", "replace"))
    return size - sum(media) + sum(min(MEDIA_TOKENS, length) for length in media)


def _is_continuation(request: Request, before: Request) -> bool:
    known = len(before.messages)
    return tuple(request.tools) == tuple(before.tools) and tuple(request.messages[:known]) == tuple(
        before.messages
    )


def _message_bound(message: Message) -> int:
    calls = sum(len(f"{call.id}{call.name}{call.arguments}".encode()) for call in message.calls)
    native = len(message.native.data.encode()) if message.native else 0
    text = len(f"{message.text}{message.call_id}".encode("utf-8", "replace"))
    return MESSAGE_TOKENS + text + calls + native
