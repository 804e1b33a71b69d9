"""Requests that pass unchanged: parse and prepare them by the allow-list; convert replies to the asked form."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dgm.gateway.allowed import chat, headers, messages, responses
from dgm.gateway.lease import Lease
from dgm.gateway.memory import LeaseMemory
from dgm.gateway.translation import parsing
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import WireProtocol, WireReply, WireRequest
from dgm.wires import WIRES, whole_of

CHARACTERS_PER_TOKEN = 4
RULES = {WireProtocol.CHAT: chat, WireProtocol.RESPONSES: responses, WireProtocol.MESSAGES: messages}
"""Map of protocol to the allow-list of its requests."""


def build_request(
    protocol: WireProtocol, raw: bytes, given: Mapping[str, str], memory: LeaseMemory
) -> WireRequest:
    """Return a request in the form to send, except the model's name and the output limit.

    Args:
        protocol: the request's protocol.
        raw: its body.
        given: its headers.
        memory: the memory of the same job, for a request that continues an answer.

    Raises:
        BadRequest: it is malformed, or it asks for something that is not offered.
    """
    body = parsing.parse_document(raw)
    if protocol is WireProtocol.RESPONSES:
        body = memory.continued(body)
    rules = RULES[protocol]
    rules.check(body)
    return WireRequest(protocol, rules.prepared(body), headers.select_headers(given, protocol))


@contextmanager
def mark_untranslatable(
    protocol: WireProtocol, raw: bytes, given: Mapping[str, str], lease: Lease
) -> Iterator[None]:
    """Distinguish requests that a translation cannot carry from those that no protocol offers.

    Raises:
        BadRequest: as the context raised it; not the agent's fault if its provider would accept it in the same
            protocol.
    """
    try:
        yield
    except BadRequest as refusal:
        if lease.protocol is None:
            raise
        # This raises for requests that are refused with every provider.
        build_request(protocol, raw, given, lease.memory)
        message = (
            f"{refusal} (the model is asked in another protocol, {lease.protocol}, which cannot carry it; "
            f"where its provider speaks {protocol} too, set api = '{protocol}' in its settings)"
        )
        raise BadRequest(message, refusal.code, refusal.status, own=False) from refusal


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
