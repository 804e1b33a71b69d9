"""The seam between the gateway and a protocol: what reads, mends and counts its requests and answers.

All of it is pure: no clock, no connection, no vendor's package. JSON is passed on as it came wherever the vendor's own
client can read it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dgm.domain import Usage
from dgm.messages import JsonObject, Reply, Request, Stop, WireProtocol
from dgm.wires.events import Event


class StreamReader(Protocol):
    """Reads one streamed answer and says what is to be mended in it."""

    def take(self, event: JsonObject, name: str, *, plain: bool = False) -> Sequence[Event] | None:
        """Take the next event; every event with JSON data is given here, in order.

        Args:
            event: the event's data. It is not changed, and parts of it are kept.
            name: the ``event:`` line; empty: none.
            plain: no string of it can hold half a surrogate pair, so none is looked for.

        Returns:
            None: the event passes as it came. Otherwise what is sent in its place, which may be nothing.

        Raises:
            ErrorInAnswer: the event tells an error.
        """
        ...

    def finish(self, *, done: bool) -> Sequence[Event]:
        """Return what is missing at the end; to be called once the stream has ended by itself.

        Args:
            done: a ``[DONE]`` came. To send it on, or to add it, is left to the caller.

        Raises:
            Unreadable: the answer cannot be whole. Where its ``reply_whole`` is set and the caller accepts it all the
                same, ``finish(done=True)`` gives the events that close it.
        """
        ...

    @property
    def spoken(self) -> bool:
        """Whether some of the answer's content came: it cannot be asked for again unseen."""
        ...

    def whole(self) -> JsonObject:
        """Return what came so far as the answer would be without streaming, mended."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """One protocol."""

    protocol: WireProtocol
    path: str
    """Below ``/v1``."""
    turns: str
    """The list of a request that grows with the conversation."""
    reader: Callable[[JsonObject], StreamReader]
    """Request's body → a reader of its streamed answer."""
    mended: Callable[[JsonObject, JsonObject], JsonObject]
    """Whole answer, request's body → the answer mended; the same object where nothing was to be mended."""
    check: Callable[[JsonObject], None]
    """Takes a whole answer; raises ``ErrorInAnswer`` or ``Unreadable`` where it is none."""
    split: Callable[[JsonObject], Sequence[Event]]
    """Whole answer → all events of a stream that tells it, ``[DONE]`` included where the protocol has one."""
    usage: Callable[[JsonObject, JsonObject], Usage]
    """Whole answer, request's body → tokens as the provider counted them, else estimated. ``calls`` is 1."""
    stop: Callable[[JsonObject], Stop]
    """Whole answer → why it stopped."""
    output_limit: Callable[[JsonObject], int | None]
    """Request's body → the largest output limit that it asks for, under any name."""
    limited: Callable[[JsonObject, int], JsonObject]
    """Request's body, tokens → the body with that output limit, under the names that it uses or else the usual one."""
    choices: Callable[[JsonObject], int]
    """Request's body → how many answers it asks for."""
    mended_request: Callable[[JsonObject], JsonObject]
    """Request's body → the body that a strict provider takes; the same object where nothing was to be mended."""
    read_request: Callable[[JsonObject], Request]
    """Request's body → neutral request for people, evidence and replays; never raises."""
    read_reply: Callable[[JsonObject, JsonObject], Reply]
    """Whole answer, request's body → neutral reply; never raises."""
    write_request: Callable[[Request, str], JsonObject]
    """Neutral request, the model's own name → body. Raises ``RequestRefused`` for what the protocol cannot say."""
