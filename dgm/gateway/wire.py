"""What the gateway needs of a wire protocol, so that a further one is one more module and one more route."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dgm.messages import Reply, Request


class BadRequest(Exception):
    """The agent's request is no request of the protocol, or asks for something that is not offered.

    Attributes:
        code: the protocol's word for it.
        status: the HTTP status to answer with.
    """

    def __init__(self, message: str, code: str = "invalid_request", status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


@dataclass(frozen=True, slots=True)
class Call:
    """A well-formed call: what is asked, and how the answer is to be told."""

    request: Request
    stream: bool = False
    stream_usage: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply with what a wire protocol tells beside it."""

    reply: Reply
    id: str
    model: str
    """The name that the caller used."""
    created: int
    """Unix time in whole seconds."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One protocol: a path below ``/v1`` and the translation between its JSON and our messages."""

    path: str
    parse: Callable[[bytes], Call]
    """Raises ``BadRequest`` on whatever is not a request of this protocol."""
    render: Callable[[Answer], bytes]
    render_stream: Callable[[Answer, bool], Iterator[bytes]]
    """Server-sent events; the flag asks for the usage too."""
    render_error: Callable[[int, str, str], bytes]
    """The body for a status, a code and a message."""
