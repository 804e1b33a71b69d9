"""The seam between the gateway and a protocol: reading, correcting and counting its requests and answers.

All of it is pure: no clock, no connection, no vendor's package. JSON passes unchanged if the vendor's own client can
read it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dgm.domain import Usage
from dgm.messages import JsonObject, Reply, Request, Stop, WireProtocol
from dgm.wires.events import Event


class StreamReader(Protocol):
    """A reader of one streamed answer that determines the corrections."""

    def take(self, event: JsonObject, name: str, *, plain: bool = False) -> Sequence[Event] | None:
        """Take the next event; every event with JSON data is given here, in order.

        Args:
            event: the event's data. It is not changed, and parts of it are kept.
            name: the ``event:`` line; empty: none.
            plain: no string of it can hold half a surrogate pair, so the search for one is skipped.

        Returns:
            None: the event passes unchanged. Otherwise the events to send in its place, possibly none.

        Raises:
            ErrorInAnswer: the event holds an error.
        """
        ...

    def finish(self, *, done: bool) -> Sequence[Event]:
        """Return the missing events at the end; call it once the stream has ended by itself.

        Args:
            done: whether a ``[DONE]`` arrived. The caller sends it on, or adds it.

        Raises:
            Unreadable: the answer cannot be whole. If its ``reply_whole`` is set and the caller accepts it all the
                same, ``finish(done=True)`` gives the events that close it.
        """
        ...

    @property
    def spoken(self) -> bool:
        """Whether some of the answer's content has arrived: a retry would be visible."""
        ...

    def whole(self) -> JsonObject:
        """Return the answer so far in its form without streaming, corrected."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """One protocol."""

    protocol: WireProtocol
    path: str
    """Path below ``/v1``."""
    turns: str
    """Name of the request's list that grows with the conversation."""
    reader: Callable[[JsonObject], StreamReader]
    """Function from a request's body to a reader of its streamed answer."""
    mended: Callable[[JsonObject, JsonObject], JsonObject]
    """Function from a whole answer and the request's body to the corrected answer; the same object if unchanged."""
    check: Callable[[JsonObject], None]
    """Check of a whole answer; raises ``ErrorInAnswer`` or ``Unreadable`` if it is invalid."""
    split: Callable[[JsonObject], Sequence[Event]]
    """Function from a whole answer to all events of its stream, ``[DONE]`` included if the protocol has one."""
    usage: Callable[[JsonObject, JsonObject], Usage]
    """Function from a whole answer and the request's body to the usage, counted or else estimated; ``calls`` is 1."""
    stop: Callable[[JsonObject], Stop]
    """Function from a whole answer to why it stopped."""
    output_limit: Callable[[JsonObject], int | None]
    """Function from a request's body to its largest output limit, under any name."""
    limited: Callable[[JsonObject, int], JsonObject]
    """Function that sets a body's output limit in tokens, under the names that it uses or else the usual one."""
    choices: Callable[[JsonObject], int]
    """Function from a request's body to its number of answers."""
    mended_request: Callable[[JsonObject], JsonObject]
    """Function from a request's body to one that strict providers accept; the same object if nothing changed."""
    read_request: Callable[[JsonObject], Request]
    """Function from a request's body to a neutral request for people, evidence and replays; never raises."""
    read_reply: Callable[[JsonObject, JsonObject], Reply]
    """Function from a whole answer and the request's body to a neutral reply; never raises."""
    write_request: Callable[[Request, str], JsonObject]
    """Function from a neutral request and the model's own name to a body.

    It raises ``RequestRefused`` for features that the protocol does not have.
    """
