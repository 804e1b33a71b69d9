"""Read one answer of a provider: hand it on as it arrives, mended where the vendor's own client could not read it.

Everything from the first event that the client could not read is held back. At the end, the mended answer is split into
events anew, and those that the agent lacks follow.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dgm.messages import JsonObject, WireProtocol
from dgm.models.connections import read_pieces
from dgm.protocols import Delivery
from dgm.wires.stream import DONE_DATA, cut_blocks, is_whole, parse_event, read_block, read_events
from dgm.wires.values import map_texts, mend_halves
from dgm.wires.wire import DONE, Event, Sent, UnusableReply, Wire

if TYPE_CHECKING:
    import aiohttp

EVENTS = "text/event-stream"
ENDING_S = 0.1
"""Seconds that a stream may take to end after its answer is whole, so that its connection serves the next call."""
MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Maximum bytes of an answer; the last event of Responses repeats it all, images included."""
_MARK = 12
"""Characters of a key at whose sight the rest of an answer is held back until the whole key can be masked."""
_LAST = ("message_stop", "response.completed", "response.incomplete")


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """A whole answer."""

    content: bytes
    """The answer's bytes for the agent; they begin with those that were handed on."""
    stream: bool
    whole: JsonObject
    """The answer in the form without streaming."""


class AnswerReader:
    """A reader of one answer, in pieces as the network brings them; it depends on no HTTP library.

    Attributes:
        events: number of events with data, or pieces of a whole answer, so far; a comment is no progress.
        over: the last event has arrived; what follows is of no matter.
    """

    def __init__(
        self,
        wire: Wire,
        body: JsonObject,
        asked: JsonObject,
        secrets: tuple[bytes, ...] = (),
        *,
        streamed: bool = True,
    ) -> None:
        """Begin to read.

        Args:
            wire: the protocol.
            body: the request's body, as it was sent.
            asked: the request's body, as the agent made it.
            secrets: texts that must not reach the agent, each of 8 characters or more.
            streamed: whether the provider answers with a stream.
        """
        self.events, self.over = 0, False
        self._wire, self._body, self._asked = wire, body, asked
        self._streamed, self._wanted = streamed, bool(asked.get("stream"))
        options = asked.get("stream_options")
        self._shows_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        self._secrets, self._marks = secrets, tuple(secret[:_MARK] for secret in secrets)
        self._fold = wire.fold(asked)
        self._came, self._size = bytearray(), 0
        self._passed, self._held = bytearray(), bytearray()
        self._odd = self._halved = self._masked = self._done = False
        self._last_text = ""

    @property
    def stopped(self) -> bool:
        """Whether the model has stopped, so that the answer is whole even if the connection breaks now."""
        return self._streamed and (self._done or self._fold.stopped)

    @property
    def spoken(self) -> JsonObject:
        """The answer so far, if some of its content has arrived; else empty."""
        return self._fold.whole() if self._fold.spoken else {}

    def feed(self, data: bytes) -> bytes:
        """Take what one network read brought; return the bytes to hand on now.

        Raises:
            ErrorInAnswer: the answer tells an error.
            UnusableReply: it is no answer, or too long.
        """
        self._size += len(data)
        if self._size > MAX_ANSWER_BYTES:
            raise UnusableReply(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
        self._came += data
        if not self._streamed:
            self.events += 1
            return b""
        blocks, used = cut_blocks(self._came, len(data))
        del self._came[:used]
        passed = len(self._passed)
        for block in blocks:
            self._passed += self._take_block(block)
        return bytes(self._passed[passed:])

    def end(self) -> ReceivedAnswer:
        """Return the answer, whose connection has ended.

        Raises:
            ErrorInAnswer: the answer tells an error.
            UnusableReply: it is no answer, or was cut off.
        """
        rest = bytes(self._came)
        if not self._streamed:
            return self._end_whole(rest)
        if rest and is_whole(rest):
            self._passed += self._take_block(rest + b"\n\n")
        fold, done = self._fold, self.stopped
        sound = fold.complete and not self._odd
        fold.finish(done=done)
        whole = self._clean(fold.whole())
        if not self._wanted:
            return ReceivedAnswer(self._wire.render(whole, stream=False), False, whole)
        if not sound:
            self._held[:] = self._render_rest(whole)
        elif self._wire.protocol is WireProtocol.CHAT and not self._done:
            self._held += Event(DONE).render()
        return ReceivedAnswer(bytes(self._passed + self._held), True, whole)

    def _take_block(self, block: bytes) -> bytes:
        """Take an event, and return the bytes to hand on."""
        name, data = read_block(block)
        if not data or self.over:
            return b""
        self.events += 1
        if data == DONE_DATA:
            self._done = self.over = True
            self._held += block if self._wire.protocol is WireProtocol.CHAT else b""
            return b""
        event, clean = parse_event(data)
        fold, self._halved = self._fold, self._halved or not clean
        sound = fold.take(event, name) and clean
        if self._marks:
            self._watch_for_keys(block, fold.text)
        self._odd = self._odd or self._masked or not sound
        self.over = event.get("type") in _LAST
        if self._odd or not self._wanted:
            return b""
        # A chunk that exists only because dgm asked for the usage is not handed on.
        if self._shows_usage or not event.get("usage") or event.get("choices") != []:
            self._held += block
        if fold.ending or not fold.spoken:
            return b""
        news = bytes(self._held)
        self._held.clear()
        return news

    def _watch_for_keys(self, block: bytes, text: str) -> None:
        """Note whether a key, or one that is cut between two texts, may begin here."""
        self._last_text = self._last_text[-2 * _MARK :] + text
        seen = self._last_text.encode("utf-8", "replace")
        self._masked = self._masked or any(mark in block or mark in seen for mark in self._marks)

    def _clean(self, whole: JsonObject) -> JsonObject:
        if self._halved:
            whole = mend_halves(whole)
        if self._masked:
            whole = map_texts(whole, lambda text: self._mask(text.encode("utf-8", "replace")).decode())
        return whole

    def _mask(self, content: bytes) -> bytes:
        for secret in self._secrets:
            content = content.replace(secret, b"***")
        return content

    def _render_rest(self, whole: JsonObject) -> bytes:
        """Return the events of an answer that the agent has not received."""
        sent = Sent()
        for event, _ in read_events(bytes(self._passed)):
            sent.events += 1
            for key, text in self._wire.pieces(event):
                sent.add(key, text)
        return b"".join(event.render() for event in self._wire.split(whole, sent))

    def _end_whole(self, content: bytes) -> ReceivedAnswer:
        masked = self._mask(content)
        whole, clean = parse_event(masked)
        accepted = self._wire.accept(whole, self._body)
        if self._wanted or not clean or accepted is not whole:
            accepted = mend_halves(accepted)
            content = self._wire.render(accepted, stream=self._wanted)
            return ReceivedAnswer(content, self._wanted, accepted)
        return ReceivedAnswer(masked, False, whole)


async def receive(
    response: "aiohttp.ClientResponse", reader: AnswerReader, delivery: Delivery, idle_s: float
) -> ReceivedAnswer:
    """Return the answer of a response with status 200, and hand it on meanwhile.

    Args:
        response: the response; the caller closes it.
        reader: its reader.
        delivery: receives what can be handed on.
        idle_s: seconds without an event after which the answer counts as stuck.

    Raises:
        ErrorInAnswer: the answer tells an error.
        UnusableReply: it is no answer, or was cut off.
        TimeoutError: nothing arrived for too long.
        Exception: the connection's own errors.
    """
    loop, pieces = asyncio.get_running_loop(), read_pieces(response)
    try:
        async with asyncio.timeout(idle_s) as patience:
            async for data in pieces:
                events = reader.events
                if news := reader.feed(data):
                    delivery.pass_on(news)
                if reader.events > events:
                    patience.reschedule(loop.time() + idle_s)
                if reader.over:
                    break
    except Exception:
        # Only the end mark is missing where the model has stopped; a retry would pay again.
        if not reader.stopped:
            raise
    else:
        if reader.over:
            await _drain(pieces)
    return reader.end()


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(ENDING_S):
            async for _ in pieces:
                pass
    except Exception:  # noqa: BLE001  (what goes wrong behind a whole answer is of no matter)
        return
