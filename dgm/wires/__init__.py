"""The three protocols on the wire: JSON that passes unchanged, and is corrected only where no client could read it."""

from collections.abc import Mapping
from types import MappingProxyType

from dgm.messages import JsonObject, WireProtocol, WireReply
from dgm.wires.chat import CHAT
from dgm.wires.messages import MESSAGES
from dgm.wires.recorded import parse_answer
from dgm.wires.responses import RESPONSES
from dgm.wires.wire import Wire

WIRES: Mapping[WireProtocol, Wire] = MappingProxyType(
    {wire.protocol: wire for wire in (CHAT, RESPONSES, MESSAGES)}
)


def whole_of(reply: WireReply, request: JsonObject) -> JsonObject:
    """Return the whole answer in recorded bytes, streamed or not.

    Unreadable bytes, a refusal's among them, become as much of an answer as they hold.
    """
    return parse_answer(reply, WIRES[reply.protocol].reader(request))
