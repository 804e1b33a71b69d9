"""Requests that are recorded by digest and size alone: large ones that have no answer, or were refused, cost nothing.

Such a record still tells whether a request is the same, so that a repetition of the action hears the same refusal.
"""

import hashlib
import json
from dataclasses import replace

from dgm.archive.exchange import encode_request
from dgm.messages import Message, Request, Role, WireRequest

KEY = "dgm_withheld"
"""Key, or beginning of the text, of a request that stands for another one; no agent may send this key."""
SET_HERE = frozenset(
    (
        *("model", "max_tokens", "max_completion_tokens", "max_output_tokens", "stream", "stream_options"),
        *("store", "include", "metadata", "client_metadata", "user", "safety_identifier", "seed"),
        *("prompt_cache_key", "prompt_cache_retention"),
        *("id", "call_id", "tool_call_id", "tool_use_id"),
    )
)
"""Keys that the gateway sets, that identify the caller, or that hold a provider's ids."""

AnyRequest = Request | WireRequest


def withhold(request: AnyRequest) -> AnyRequest:
    """Return the request that stands for another one in the record."""
    mark = _mark_of(request)
    if isinstance(request, WireRequest):
        return WireRequest(request.protocol, {KEY: mark})
    return Request((Message(Role.USER, f"{KEY} {mark}"),))


def is_withheld(request: AnyRequest) -> bool:
    """Return whether a request only stands for another one."""
    return bool(_mark_in(request))


def stands_for(recorded: AnyRequest, request: AnyRequest) -> bool:
    """Return whether a recorded request stands for this one."""
    return type(recorded) is type(request) and _mark_in(recorded) == _mark_of(request)


def _mark_in(request: AnyRequest) -> str:
    if isinstance(request, WireRequest):
        return str(request.body.get(KEY, ""))
    text = request.messages[0].text if len(request.messages) == 1 else ""
    return text.removeprefix(f"{KEY} ") if text.startswith(f"{KEY} ") else ""


def _mark_of(request: AnyRequest) -> str:
    if isinstance(request, WireRequest):
        body = {
            key: value for key, value in request.body.items() if key not in SET_HERE and value is not None
        }
        data = json.dumps(body, sort_keys=True).encode()
    else:
        data = encode_request(replace(request, model="", max_output_tokens=None))
    return f"sha256 {hashlib.sha256(data).hexdigest()}, {len(data)} bytes"
