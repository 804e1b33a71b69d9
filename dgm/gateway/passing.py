"""Requests that pass as they are: read, held against the allow-list and made ready; replies in the form asked for."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dgm.gateway import parsing
from dgm.gateway.allowed import chat, headers, messages, responses
from dgm.gateway.lease import Lease
from dgm.gateway.memory import Memory
from dgm.gateway.wire import BadRequest
from dgm.messages import JsonObject, WireProtocol, WireReply, WireRequest
from dgm.wires import WIRES, whole_of

CHARACTERS_PER_TOKEN = 4
RULES = {WireProtocol.CHAT: chat, WireProtocol.RESPONSES: responses, WireProtocol.MESSAGES: messages}
"""Protocol → the allow-list of its requests."""


def read_body(raw: bytes) -> JsonObject:
    """Return the object that a request's body holds.

    Raises:
        BadRequest: it is no JSON object.
    """
    return parsing.document(raw)


def passed_request(
    protocol: WireProtocol, raw: bytes, given: Mapping[str, str], memory: Memory
) -> WireRequest:
    """Return a request as it is to be sent, but for the model's name and the limit of its output.

    Args:
        protocol: which one it is of.
        raw: its body.
        given: its headers.
        memory: what was said in the same job, where it goes on from an answer.

    Raises:
        BadRequest: it is malformed, or asks for what is not offered.
    """
    body = read_body(raw)
    if protocol is WireProtocol.RESPONSES:
        body = memory.continued(body)
    rules = RULES[protocol]
    rules.check(body)
    return WireRequest(protocol, rules.prepared(body), headers.passed(given, protocol))


@contextmanager
def mark_untranslatable(
    protocol: WireProtocol, raw: bytes, given: Mapping[str, str], lease: Lease
) -> Iterator[None]:
    """Tell what a translation between protocols cannot carry from what is not offered in any.

    Raises:
        BadRequest: as the context raised it; not the agent's fault where its provider's protocol would take it.
    """
    try:
        yield
    except BadRequest as refusal:
        if lease.protocol is None:
            raise
        # What is refused whichever provider there is raises here.
        passed_request(protocol, raw, given, lease.memory)
        message = (
            f"{refusal} (the model is asked in another protocol, {lease.protocol}, which cannot carry it; "
            f"where its provider speaks {protocol} too, set api = '{protocol}' in its settings)"
        )
        raise BadRequest(message, refusal.code, refusal.status, own=False) from refusal


def in_form(reply: WireReply, request: WireRequest) -> WireReply:
    """Return a reply streamed or not, as the request asks; a recorded one may have the other form."""
    wanted = bool(request.body.get("stream"))
    if reply.stream == wanted or reply.error:
        return reply
    whole = whole_of(reply, request.body)
    if not wanted:
        return replace(reply, content=json.dumps(whole).encode(), stream=False)
    events = b"".join(event.render() for event in WIRES[reply.protocol].split(whole))
    return replace(reply, content=events, stream=True)


def estimated_input(body: Mapping[str, Any]) -> int:
    """Return the input tokens of a request, about: a quarter of its characters."""
    return max(1, len(json.dumps(body, ensure_ascii=False)) // CHARACTERS_PER_TOKEN)
