"""Requests that pass unchanged: parse and prepare them by the allow-list; convert replies to the asked form."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dgm.gateway import allowed
from dgm.gateway.allowed import BadRequest
from dgm.gateway.lease import Lease
from dgm.gateway.leaving_out import leave_out
from dgm.gateway.memory import LeaseMemory
from dgm.gateway.translation import ParsedCall, parse_call, parse_document
from dgm.messages import JsonObject, WireProtocol, WireReply, WireRequest
from dgm.wires import WIRES, whole_of
from dgm.wires.wire import Wire

LONG_NAME = "[1m]"
"""End of a model's name by which Claude Code asks for inputs of up to a million tokens."""
CHARACTERS_PER_TOKEN = 4


def build_request(
    protocol: WireProtocol,
    raw: bytes,
    given: Mapping[str, str],
    memory: LeaseMemory,
    *,
    one_price: bool = True,
) -> WireRequest:
    """Return a request in the form to send, except the model's name and the output limit.

    Args:
        protocol: the request's protocol.
        raw: its body.
        given: its headers.
        memory: the memory of the same job, for a request that continues an answer.
        one_price: as for ``select_headers``.

    Raises:
        BadRequest: it is malformed, or it asks for something that is not offered.
    """
    body = parse_document(raw)
    if protocol is WireProtocol.RESPONSES:
        body = dict(memory.continued(body))
    allowed.check(protocol, body)
    sent = without_long_name(allowed.prepare(protocol, body), one_price=one_price)
    return WireRequest(protocol, sent, allowed.select_headers(given, protocol, one_price=one_price))


def read_document(wire: Wire, raw: bytes, *, one_price: bool = True) -> JsonObject:
    """Return a body of which only what may pass is left.

    Raises:
        BadRequest: it is malformed, or asks for something that is not offered.
    """
    body = parse_document(raw)
    previous = body.pop("previous_response_id", None) if wire.protocol is WireProtocol.RESPONSES else None
    allowed.check(wire.protocol, body)
    body = without_long_name(body, one_price=one_price)
    return body if previous is None else {**body, "previous_response_id": previous}


def read_call(wire: Wire, raw: bytes, lease: Lease, *, one_price: bool) -> ParsedCall:
    """Return a call that is to be translated into another protocol.

    Raises:
        BadRequest: it is malformed, or asks for something that is not offered; not the agent's fault if its provider
            would accept it in the same protocol.
    """
    body = read_document(wire, raw, one_price=one_price)
    try:
        return parse_call(wire, body)
    except BadRequest as refusal:
        if lease.protocol is None:
            raise
        message = (
            f"{refusal} (the model is asked in another protocol, {lease.protocol}, which cannot carry it; "
            f"where its provider speaks {wire.protocol} too, set api = '{wire.protocol}' in its settings)"
        )
        raise BadRequest(message, refusal.code, refusal.status, own=False) from refusal


def without_long_name(body: JsonObject, *, one_price: bool) -> dict[str, Any]:
    """Return the body without the end of the model's name that asks for long inputs, where they cost no more."""
    name = body.get("model")
    if not (one_price and isinstance(name, str) and name.endswith(LONG_NAME)):
        return dict(body)
    leave_out(f"the end {LONG_NAME} of the model's name")
    return {**body, "model": name.removesuffix(LONG_NAME)}


def convert_reply(reply: WireReply, request: WireRequest) -> WireReply:
    """Return a reply streamed or whole, as the request asks; a recorded one may have the other form."""
    wanted = bool(request.body.get("stream"))
    if reply.stream == wanted or reply.error:
        return reply
    whole = whole_of(reply, request.body)
    if not wanted:
        return replace(reply, content=json.dumps(whole).encode(), stream=False)
    events = b"".join(event.render() for event in WIRES[reply.protocol].split(whole))
    return replace(reply, content=events, stream=True)


def estimate_input(body: Mapping[str, Any]) -> int:
    """Return the estimated input tokens of a request: a quarter of its characters."""
    return max(1, len(json.dumps(body, ensure_ascii=False)) // CHARACTERS_PER_TOKEN)
