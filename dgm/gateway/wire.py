"""What the gateway needs of a wire protocol, so that a further one is one more module and one more route."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dgm.messages import CallKey, Message, Reply, Request, WireProtocol


class BadRequest(Exception):
    """The agent's request is no request of the protocol, or asks for something that is not offered.

    Attributes:
        code: the protocol's word for it.
        status: the HTTP status to answer with.
        own: whether the agent is at fault; as in ``RequestRefused``.
    """

    def __init__(
        self, message: str, code: str = "invalid_request", status: int = 400, *, own: bool = True
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.own = own


@dataclass(frozen=True, slots=True)
class Call:
    """A well-formed call: what is asked, and how the answer is to be told."""

    request: Request
    stream: bool = False
    stream_usage: bool = False
    previous: str = ""
    """The id of the answer that this call continues; empty: the request stands alone."""
    preface: int = 0
    """How many messages at the start hold for this call only: a call that continues it does not inherit them."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """What the protocol repeats of a request in its answer."""

    def after(self, earlier: Sequence[Message]) -> Request:
        """The whole request: this call's own preface, what was said before it, and what it adds."""
        own = self.request.messages
        return replace(self.request, messages=(*own[: self.preface], *earlier, *own[self.preface :]))

    def inherited(self, whole: Request) -> Sequence[Message]:
        """What a call that continues this one starts from, the reply excepted; ``whole`` is what ``after`` gave."""
        return whole.messages[self.preface :]


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply with what a wire protocol tells beside it."""

    reply: Reply
    id: str
    model: str
    """The name that the caller used."""
    created: int
    """Unix time in whole seconds."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """The call's."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One protocol: a path below ``/v1`` and the translation between its JSON and our messages."""

    protocol: WireProtocol
    path: str
    parse: Callable[[bytes], Call]
    """Raises ``BadRequest`` on whatever is not a request of this protocol."""
    render: Callable[[Answer], bytes]
    render_stream: Callable[[Answer, bool], Iterator[bytes]]
    """Server-sent events; the flag asks for the usage too."""
    render_error: Callable[[int, str, str], bytes]
    """The body for a status, a code and a message."""
    models: Callable[[Sequence[str]], bytes]
    """The body of a list of model names."""
    one_model: Callable[[str], bytes]
    """The body that describes one model by its name."""
    prefix: str
    """What the ids of this protocol's answers begin with, the mark before the numbers included."""

    def rehearsed(self, request: Request, body: Mapping[str, Any]) -> Call:
        """Return the call of a rehearsal, of whose request hardly anything matters."""
        named = replace(request, model=str(body.get("model") or "default"))
        options = body.get("stream_options")
        usage = self.protocol is not WireProtocol.CHAT or (
            isinstance(options, dict) and bool(options.get("include_usage"))
        )
        return Call(named, bool(body.get("stream")), usage)

    def answer_id(self, key: CallKey) -> str:
        """The id of the answer to a call; no two calls of a run share one."""
        return f"{self.prefix}{key.action}{self.prefix[-1]}{key.number}"
