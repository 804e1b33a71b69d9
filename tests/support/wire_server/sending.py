"""Puts answers on the wire, whole, in events, or spoilt in every way that a network and a provider know."""

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from dgm.messages import Reply, Stop, ToolCall
from tests.support.wire_server.errors import Refused
from tests.support.wire_server.faults import ANSWERING, Fault, Kind
from tests.support.wire_server.protocol import Asked, Style, Wire, sse

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
UNFINISHED = Reply(
    "THIS ANSWER IS NEVER FINISHED. Whoever takes it for one has overlooked a fault.",
    (ToolCall("call_unfinished", "bash", json.dumps({"command": "echo never to be run, never to be run"})),),
    Stop.TOOL_CALLS,
)
"""What a call begins to hear whose answer breaks off: the brain is not asked."""
PAUSES = 200
"""In an answer that drips."""
STEP_S = 0.02
"""Lets what was sent arrive before the connection is reset."""


class Gone(Exception):
    """The client has hung up."""


class Exchange:
    """One request's way back to its client; ``begun`` is told the status before the client is."""

    def __init__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
        request_id: str,
        begun: Callable[[int], None],
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self.request_id = request_id
        self._begun = begun

    async def start(self, kind: str, status: int = 200, more: Mapping[str, str] | None = None) -> None:
        """The head of the answer."""
        told = {
            "content-type": kind,
            "x-request-id": self.request_id,
            "request-id": self.request_id,
            **(more or {}),
        }
        headers = [(name.encode(), value.encode()) for name, value in told.items()]
        self._begun(status)
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def part(self, data: bytes, *, last: bool = False) -> None:
        """Some of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})

    async def whole(self, data: Mapping[str, Any] | bytes, status: int = 200, kind: str = JSON) -> None:
        """An answer at once."""
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        await self.start(kind, status, {"content-length": str(len(body))})
        await self.part(body, last=True)

    async def error(self, vendor: str, error: Refused) -> None:
        """A provider's error."""
        raw = error.body(vendor, self.request_id)
        await self.start(JSON, error.status, {"content-length": str(len(raw)), **error.headers})
        await self.part(raw, last=True)

    async def wait(self, seconds: float) -> None:
        """Says nothing for a while, or until the client hangs up."""
        try:
            await asyncio.wait_for(self._hung_up(), seconds)
        except TimeoutError:
            return
        raise Gone

    async def end(self, *, reset: bool) -> None:
        """Breaks the connection, by RST or by FIN."""
        await asyncio.sleep(STEP_S)
        transport = self._scope.get("state", {}).get("transport")
        if transport is None:
            raise ConnectionResetError(
                "broken off by the script; serve the application with `serving` to reset"
            )
        if reset:
            connection = transport.get_extra_info("socket")
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
        else:
            transport.close()
        await asyncio.wait_for(self._hung_up(), 5)

    async def _hung_up(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def body(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> bytes:
    """A request's whole body."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def gives_answer(fault: Fault) -> bool:
    """Whether the client gets the brain's answer all the same."""
    return fault.kind in ANSWERING


async def answer(
    call: Exchange, asked: Asked, chunks: Sequence[bytes], given: Callable[[], None], drip_s: float = 0.0
) -> None:
    """Gives a reply, byte by byte where ``drip_s`` says over how long.

    ``given`` is called right before the last part goes out: who has the answer finds it counted.
    """
    if drip_s:
        await _dripped(call, asked, b"".join(chunks), given, drip_s)
        return
    if not asked.stream:
        given()
        await call.whole(chunks[0])
        return
    await call.start(EVENTS)
    for chunk in chunks[:-1]:
        await call.part(chunk)
    given()
    await call.part(chunks[-1], last=True)


async def _dripped(
    call: Exchange, asked: Asked, whole: bytes, given: Callable[[], None], drip_s: float
) -> None:
    await call.start(EVENTS if asked.stream else JSON)
    step = max(1, len(whole) // PAUSES)
    # The last event of a stream may be all that a client waits for, so the count comes with its first byte.
    last = whole.rindex(b"data: ") if asked.stream else len(whole) - 1
    try:
        for at in range(len(whole)):
            if at == last:
                given()
            await call.part(whole[at : at + 1])
            if at % step == 0:
                await call.wait(drip_s / PAUSES)
    except Gone:
        return
    await call.part(b"", last=True)


async def spoil(call: Exchange, wire: Wire, asked: Asked, fault: Fault, style: Style) -> None:
    """Gives what the fault makes of an answer."""
    try:
        await _spoil(call, wire, asked, fault, style)
    except Gone:
        return


async def _spoil(call: Exchange, wire: Wire, asked: Asked, fault: Fault, style: Style) -> None:
    match fault.kind:
        case Kind.HANG:
            await call.wait(fault.rule.seconds)
            await call.end(reset=True)
        case Kind.RESET:
            await call.end(reset=True)
        case Kind.HTML:
            await call.whole(PAGE, kind="text/html; charset=utf-8")
        case Kind.EMPTY:
            await _told(call, asked, wire.empty(asked, style), wire.empty_events(asked, style))
        case Kind.REFUSAL:
            await _told(call, asked, wire.refusal(asked, style), wire.refusal_events(asked, style))
        case Kind.MALFORMED:
            await _malformed(call, wire, asked, style)
        case Kind.ERROR_EVENT if not asked.stream:
            await call.error(wire.vendor, fault.event(wire.vendor))
        case _:
            await _broken_off(call, wire, asked, fault, style)


async def _broken_off(call: Exchange, wire: Wire, asked: Asked, fault: Fault, style: Style) -> None:
    """Half of an answer, and then what the fault says."""
    chunks = list(chunks_of(wire, asked, UNFINISHED, style))
    whole = b"".join(chunks)
    # Half of the events of a stream, so that the last one is whole, as when a provider's process dies.
    half = b"".join(chunks[: len(chunks) // 2]) if asked.stream else whole[: len(whole) // 2]
    cut = fault.kind is Kind.TRUNCATED
    length = {} if asked.stream else {"content-length": str(len(half if cut else whole))}
    await call.start(EVENTS if asked.stream else JSON, more=length)
    await call.part(half, last=cut)
    match fault.kind:
        case Kind.ERROR_EVENT:
            await call.part(sse(*wire.error_event(fault.event(wire.vendor))), last=True)
        case Kind.HANG_MIDWAY:
            await call.wait(fault.rule.seconds)
            await call.end(reset=True)
        case Kind.RESET_MIDWAY:
            await call.end(reset=True)
        case Kind.DROPPED:
            await call.end(reset=False)


async def _malformed(call: Exchange, wire: Wire, asked: Asked, style: Style) -> None:
    chunks = list(chunks_of(wire, asked, UNFINISHED, style))
    if not asked.stream:
        await call.whole(b"{'id': undefined, " + chunks[0][1:])
        return
    await call.start(EVENTS)
    at = len(chunks) // 2
    head, _, data = chunks[at].rpartition(b"data: ")
    chunks[at] = head + b"data: " + data.replace(b'"', b"'")
    await call.part(b"".join(chunks), last=True)


async def _told(
    call: Exchange, asked: Asked, whole: Mapping[str, Any], events: Iterator[tuple[str, Any]]
) -> None:
    if not asked.stream:
        await call.whole(whole)
        return
    await call.start(EVENTS)
    for name, data in events:
        await call.part(sse(name, data))
    await call.part(b"", last=True)


def chunks_of(wire: Wire, asked: Asked, reply: Reply, style: Style) -> Iterator[bytes]:
    """A reply as bytes: its events, or its one body."""
    if asked.stream:
        for name, data in wire.events(asked, reply, style):
            yield sse(name, data)
    else:
        yield json.dumps(wire.render(asked, reply, style)).encode()
