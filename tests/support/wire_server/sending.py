"""Puts answers on the wire: complete, in events, or spoilt in every way that a network and a provider know."""

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

from dgm.messages import Reply, Stop, ToolCall
from tests.support.wire_server.endpoints import Wire, chunks_of
from tests.support.wire_server.faults import Kind, Rule
from tests.support.wire_server.protocol import ANTHROPIC, EMPTY, REFUSED, Asked, Refused, sse

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
UNFINISHED = Reply(
    "THIS ANSWER IS NEVER FINISHED. Whoever takes it for one has overlooked a fault.",
    (ToolCall("call_unfinished", "bash", json.dumps({"command": "echo never to be run, never to be run"})),),
    Stop.TOOL_CALLS,
)
"""The beginning of an answer that breaks off: the brain is not asked."""
PAUSES = 200
"""In an answer that drips."""
STEP_S = 0.02
"""Lets what was sent arrive before the connection is reset."""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Gone(Exception):
    """The client has hung up."""


class Exchange:
    """One request's way back to its client; ``begun`` gets the status before the client does."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, request_id: str, begun: Callable[[int], None]
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self.request_id = request_id
        self._begun = begun

    async def start(self, kind: str, status: int = 200, more: Mapping[str, str] | None = None) -> None:
        """Send the head of the answer."""
        ids = {"x-request-id": self.request_id, "request-id": self.request_id}
        headers = {"content-type": kind, **ids, **(more or {})}
        self._begun(status)
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def part(self, data: bytes, *, last: bool = False) -> None:
        """Send some of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})

    async def whole(
        self, data: Mapping[str, Any] | bytes, status: int = 200, kind: str = JSON, **more: str
    ) -> None:
        """Send an answer at once."""
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        await self.start(kind, status, {"content-length": str(len(body)), **more})
        await self.part(body, last=True)

    async def error(self, vendor: str, error: Refused) -> None:
        """Send a provider's error."""
        await self.whole(error.body(vendor, self.request_id), error.status, **error.headers)

    async def wait(self, seconds: float) -> None:
        """Send nothing for a while, or until the client hangs up."""
        try:
            await asyncio.wait_for(self._hung_up(), seconds)
        except TimeoutError:
            return
        raise Gone

    async def end(self, *, reset: bool) -> None:
        """Break the connection, by RST or by FIN."""
        await asyncio.sleep(STEP_S)
        transport = self._scope["state"]["transport"]
        if reset:
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
        else:
            transport.close()
        await asyncio.wait_for(self._hung_up(), 5)

    async def _hung_up(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def read_body(receive: Receive) -> bytes:
    """Return a request's complete body."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def answer(
    call: Exchange, asked: Asked, chunks: Sequence[bytes], given: Callable[[], None], drip_s: float = 0.0
) -> None:
    """Send a reply, byte by byte where ``drip_s`` says over how long.

    ``given`` is called right before the last part goes out: a client that has the answer finds it counted.
    """
    if drip_s:
        await _drip(call, asked, b"".join(chunks), given, drip_s)
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


async def _drip(
    call: Exchange, asked: Asked, content: bytes, given: Callable[[], None], drip_s: float
) -> None:
    await call.start(EVENTS if asked.stream else JSON)
    step = max(1, len(content) // PAUSES)
    # The last event of a stream may be all that a client waits for, so the count comes with its first byte.
    last = content.rindex(b"data: ") if asked.stream else len(content) - 1
    try:
        for at in range(len(content)):
            if at == last:
                given()
            await call.part(content[at : at + 1])
            if at % step == 0:
                await call.wait(drip_s / PAUSES)
    except Gone:
        return
    await call.part(b"", last=True)


async def spoil(call: Exchange, wire: Wire, asked: Asked, rule: Rule, piece: int) -> None:
    """Send what the fault makes of an answer."""
    failure = Refused(529 if wire.vendor == ANTHROPIC else 500, "The server had a problem.")
    try:
        match rule.kind:
            case Kind.HANG:
                await call.wait(rule.seconds)
                await call.end(reset=True)
            case Kind.RESET:
                await call.end(reset=True)
            case Kind.HTML:
                await call.whole(PAGE, kind="text/html; charset=utf-8")
            case Kind.EMPTY | Kind.REFUSAL:
                reply = EMPTY if rule.kind is Kind.EMPTY else REFUSED
                content = b"".join(chunks_of(wire, asked, reply, piece))
                await call.whole(content, kind=EVENTS if asked.stream else JSON)
            case Kind.MALFORMED:
                await _send_malformed(call, wire, asked, piece)
            case Kind.ERROR_EVENT if not asked.stream:
                await call.error(wire.vendor, failure)
            case _:
                await _break_off(call, wire, asked, rule, piece, failure)
    except Gone:
        return


async def _break_off(
    call: Exchange, wire: Wire, asked: Asked, rule: Rule, piece: int, failure: Refused
) -> None:
    """Send half of an answer, and then what the fault says."""
    chunks = chunks_of(wire, asked, UNFINISHED, piece)
    content = b"".join(chunks)
    # Half of the events of a stream, so that the last one is complete, as when a provider's process dies.
    half = b"".join(chunks[: len(chunks) // 2]) if asked.stream else content[: len(content) // 2]
    cut = rule.kind is Kind.TRUNCATED
    length = {} if asked.stream else {"content-length": str(len(half if cut else content))}
    await call.start(EVENTS if asked.stream else JSON, more=length)
    await call.part(half, last=cut)
    match rule.kind:
        case Kind.ERROR_EVENT:
            await call.part(sse(*wire.error_event(failure)), last=True)
        case Kind.HANG_MIDWAY:
            await call.wait(rule.seconds)
            await call.end(reset=True)
        case Kind.RESET_MIDWAY:
            await call.end(reset=True)
        case Kind.DROPPED:
            await call.end(reset=False)


async def _send_malformed(call: Exchange, wire: Wire, asked: Asked, piece: int) -> None:
    chunks = chunks_of(wire, asked, UNFINISHED, piece)
    if not asked.stream:
        await call.whole(b"{'id': undefined, " + chunks[0][1:])
        return
    await call.start(EVENTS)
    at = len(chunks) // 2
    head, _, data = chunks[at].rpartition(b"data: ")
    chunks[at] = head + b"data: " + data.replace(b'"', b"'")
    await call.part(b"".join(chunks), last=True)
