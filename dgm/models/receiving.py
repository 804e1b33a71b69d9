"""Read one answer of a provider: hand it on as it arrives, corrected where a vendor's own client could not read it."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dgm.messages import JsonObject, WireProtocol
from dgm.models.connections import read_pieces
from dgm.protocols import Delivery
from dgm.wires.events import Event, UnusableReply
from dgm.wires.sse import ServerSentEvent, read_events
from dgm.wires.wire import StreamReader, Wire

if TYPE_CHECKING:
    import aiohttp

DONE = "[DONE]"
EVENTS = "text/event-stream"
RENEWAL_S = 0.2
"""Granularity in seconds at which the time without a record is measured."""
ENDING_S = 0.1
"""Seconds that a stream may take to end after its answer is whole, so that its connection serves the next call."""
_LAST = frozenset(("message_stop", "response.completed", "response.incomplete"))
_ENDING = _LAST | {"message_delta"}


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """A whole answer."""

    content: bytes
    """The answer's bytes for the agent."""
    stream: bool
    whole: JsonObject
    """The answer in the form without streaming."""


@dataclass(slots=True)
class AnswerReceiver:
    """Parameters and state for reading an answer."""

    wire: Wire
    body: JsonObject
    """The request's body, as it was sent."""
    asked: JsonObject
    """The request's body, as the agent made it."""
    delivery: Delivery
    idle_s: float
    """Seconds without a record, comments not counted, after which the answer counts as stuck."""
    secrets: tuple[bytes, ...] = ()
    wanted_stream: bool = field(init=False)
    """Whether the agent wants a stream, regardless of the request to the provider."""
    reader: StreamReader | None = None
    """Reader of a stream that has begun."""
    _spoken: bool = False
    _ending: bool = False
    """Whether the model has stopped; the rest only tells how."""
    _held: bytearray = field(default_factory=bytearray)
    _all: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        """Derive whether the agent wants a stream."""
        self.wanted_stream = bool(self.asked.get("stream"))

    async def take(self, response: "aiohttp.ClientResponse") -> ReceivedAnswer:
        """Return the answer of a response with status 200, streamed or whole.

        Raises:
            ErrorInAnswer: the answer tells an error.
            Unreadable: it is no answer, or was cut off.
            TimeoutError: nothing arrived for too long.
            Exception: the connection's own errors.
        """
        kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
        if kind == EVENTS:
            return await self._stream(response)
        content = await response.read()
        whole = self._parsed(content, kind)
        self.wire.check(whole)
        mended = self.wire.mended(whole, self.body)
        if self.wanted_stream or mended is not whole:
            told = render_whole(self.wire, mended, stream=self.wanted_stream)
            return ReceivedAnswer(self._clean(told.content), told.stream, mended)
        return ReceivedAnswer(self._clean(content), False, whole)

    def _parsed(self, content: bytes, kind: str) -> JsonObject:
        try:
            whole = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise UnusableReply(
                f"the answer is no JSON ({kind or 'of no type'}, {len(content)} bytes)"
            ) from error
        if not isinstance(whole, dict):
            raise UnusableReply(f"the answer is JSON but no object: {str(whole)[:80]!r}")
        return whole

    async def _stream(self, response: "aiohttp.ClientResponse") -> ReceivedAnswer:
        reader = self.reader = self.wire.reader(self.asked)
        done, ended = await self._read_records(response, reader)
        tail = reader.finish(done=bool(done) or ended)
        for event in tail:
            self._held += event.render()
        if self.wire.protocol is WireProtocol.CHAT:
            self._held += done or Event(DONE).render()
        self._all += self._clean(bytes(self._held))
        whole = reader.whole()
        if not self.wanted_stream:
            return ReceivedAnswer(self._clean(json.dumps(whole).encode()), False, whole)
        return ReceivedAnswer(bytes(self._all), True, whole)

    async def _read_records(
        self, response: "aiohttp.ClientResponse", reader: StreamReader
    ) -> tuple[bytes, bool]:
        """Return the bytes of a chat's last record, and whether the stream came to its end."""
        stream = read_events(read_pieces(response))
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.idle_s) as patience:
                renewed = loop.time()
                async for record in stream:
                    now = loop.time()
                    if now - renewed > RENEWAL_S:
                        renewed = now
                        patience.reschedule(now + self.idle_s)
                    if record.data == DONE:
                        break
                    if self._take(record, reader):
                        break
                else:
                    return b"", self._ending
        except Exception:
            # Only the end mark is missing then; a retry would pay again.
            if self._ending:
                return b"", True
            raise
        await _drain_stream(stream)
        return record.raw if record.data == DONE else b"", True

    def _take(self, record: ServerSentEvent, reader: StreamReader) -> bool:
        """Read one record, and hand on its visible part for the agent; return whether it is the last one."""
        data = record.data
        event = self._event(data)
        # Only an escape can spell half a surrogate pair.
        given = reader.take(event, record.name, plain="\\ud" not in data and "\\uD" not in data)
        if given is None and self._only_usage(event):
            given = ()
        self._held += record.raw if given is None else b"".join(one.render() for one in given)
        self._ending = self._ending or _is_ending(event)
        if self.wanted_stream and not self._ending and (self._spoken or reader.spoken):
            self._spoken = True
            self._flush()
        return event.get("type") in _LAST

    def _only_usage(self, event: JsonObject) -> bool:
        """Return whether a chunk exists only because dgm asked for the usage."""
        if "usage" not in event:
            return False
        options = self.asked.get("stream_options")
        wants = isinstance(options, dict) and options.get("include_usage")
        return not wants and event.get("choices") == [] and bool(event.get("usage"))

    def _event(self, data: str) -> JsonObject:
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise UnusableReply(f"an event of the stream is not JSON: {data[:80]!r}") from error
        if not isinstance(event, dict):
            raise UnusableReply(f"an event of the stream is no JSON object but {data[:80]!r}")
        return event

    def _flush(self) -> None:
        news = self._clean(bytes(self._held))
        self._held.clear()
        self._all += news
        self.delivery.pass_on(news)

    def _clean(self, content: bytes) -> bytes:
        for secret in self.secrets:
            content = content.replace(secret, b"***")
        return content


def render_whole(wire: Wire, whole: JsonObject, *, stream: bool) -> ReceivedAnswer:
    """Return a whole answer in the form that the agent wants, streamed or not."""
    if not stream:
        return ReceivedAnswer(json.dumps(whole).encode(), False, whole)
    return ReceivedAnswer(b"".join(event.render() for event in wire.split(whole)), True, whole)


def _is_ending(event: Mapping[str, Any]) -> bool:
    """Return whether an event tells that the model has stopped; the rest only tells how."""
    if event.get("type") in _ENDING:
        return True
    choices = event.get("choices")
    if not isinstance(choices, list):
        return False
    return any(isinstance(one, dict) and one.get("finish_reason") for one in choices)


async def _drain_stream(stream: Any) -> None:  # noqa: ANN401  (an async generator of records)
    try:
        async with asyncio.timeout(ENDING_S):
            async for _ in stream:
                pass
    except Exception:  # noqa: BLE001  (what goes wrong behind a whole answer is of no matter)
        return
