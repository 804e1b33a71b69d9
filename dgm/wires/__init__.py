"""The three protocols on the wire: JSON that passes unchanged, and is corrected only where no client could read it."""

from collections.abc import Mapping
from types import MappingProxyType

from dgm.messages import JsonObject, WireProtocol, WireReply
from dgm.wires.chat import CHAT
from dgm.wires.messages import MESSAGES
from dgm.wires.responses import RESPONSES
from dgm.wires.stream import parse_event, read_events
from dgm.wires.values import mend_halves
from dgm.wires.wire import ErrorInAnswer, UnusableReply, Wire

__all__ = ("CHAT", "MESSAGES", "RESPONSES", "WIRES", "whole_of")

WIRES: Mapping[WireProtocol, Wire] = MappingProxyType(
    {wire.protocol: wire for wire in (CHAT, RESPONSES, MESSAGES)}
)


def whole_of(reply: WireReply, request: JsonObject) -> JsonObject:
    """Return the whole answer in recorded bytes, streamed or not.

    Unreadable bytes, a refusal's among them, become as much of an answer as they hold: of a stream that holds an error
    or is cut off, the part before.
    """
    if reply.whole is not None:
        return reply.whole
    content = reply.content
    if not reply.stream or reply.error or content.lstrip().startswith(b"{"):
        try:
            return parse_event(content)[0]
        except UnusableReply:
            return {}
    fold = WIRES[reply.protocol].fold(request)
    try:
        for event, name in read_events(content):
            fold.take(event, name)
    except ErrorInAnswer:
        pass
    whole: JsonObject = mend_halves(fold.whole())
    return whole
