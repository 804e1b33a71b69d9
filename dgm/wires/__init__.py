"""The three protocols on the wire: JSON that passes as it came, mended only where no client could read it."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from dgm.messages import JsonObject, WireProtocol, WireReply
from dgm.wires.recorded import parsed_answer

if TYPE_CHECKING:
    from dgm.wires.wire import Wire


class _Wires(Mapping[WireProtocol, "Wire"]):
    """Loads a protocol's modules when it is first asked for."""

    def __getitem__(self, protocol: WireProtocol) -> "Wire":
        name = WireProtocol(protocol).value
        wire: Wire = getattr(import_module(f"dgm.wires.{name}"), name.upper())
        return wire

    def __iter__(self) -> Iterator[WireProtocol]:
        return iter(WireProtocol)

    def __len__(self) -> int:
        return len(WireProtocol)


WIRES: Mapping[WireProtocol, "Wire"] = _Wires()


def whole_of(reply: WireReply, request: JsonObject) -> JsonObject:
    """Return the whole answer that recorded bytes hold, streamed or not.

    Bytes that cannot be read, a refusal's among them, become as much of an answer as there is.
    """
    return parsed_answer(reply, WIRES[reply.protocol].reader(request))
