"""The gateway's interface to a wire protocol, so that a further one is one more module and one more route."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dgm.messages import CallKey, JsonObject, Message, Reply, Request, WireProtocol
from dgm.wires import WIRES
from dgm.wires.events import Event

NO_THREADS = "thread_unsupported_request"
"""The one code that Anthropic's client looks for: the provider cannot keep this conversation."""


class BadRequest(Exception):
    """The error for a request that breaks the protocol, or that asks for something not offered.

    Attributes:
        code: the protocol's error code.
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
class ParsedCall:
    """A well-formed call: the request, and the form of its answer."""

    request: Request
    stream: bool = False
    stream_usage: bool = False
    previous: str = ""
    """The id of the answer that this call continues; empty: the request stands alone."""
    preface: int = 0
    """Number of leading messages that hold for this call only: a call that continues it does not inherit them."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that the protocol repeats in its answer."""

    def after(self, earlier: Sequence[Message]) -> Request:
        """Return the whole request: this call's own preface, the earlier conversation, and the new messages."""
        own = self.request.messages
        return replace(self.request, messages=(*own[: self.preface], *earlier, *own[self.preface :]))

    def inherited(self, whole: Request) -> Sequence[Message]:
        """Return the messages that a continuing call starts from, without the reply; ``whole`` comes from ``after``."""
        return whole.messages[self.preface :]


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """A reply with the additional fields that a wire protocol returns."""

    reply: Reply
    id: str
    model: str
    """The name that the caller used."""
    created: int
    """Unix time in whole seconds."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """The ``echo`` of the call."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One protocol: a path below ``/v1`` and the translation between its JSON and our messages."""

    protocol: WireProtocol
    path: str
    parse: Callable[[JsonObject], ParsedCall]
    """Parser of a request body; raises ``BadRequest`` for anything that is no request of this protocol."""
    write_answer: Callable[[WireAnswer], JsonObject]
    """Writer of a whole answer."""
    render_error: Callable[[int, str, str], bytes]
    """Renderer of the error body for a status, a code and a message."""
    models: Callable[[Sequence[str]], bytes]
    """Renderer of the list of model names."""
    one_model: Callable[[str], bytes]
    """Renderer of the body that describes one model by its name."""
    prefix: str
    """The prefix of answer ids in this protocol, including the separator before the numbers."""

    def render(self, answer: WireAnswer) -> bytes:
        """Return the body of a whole answer."""
        return json.dumps(self.write_answer(answer)).encode()

    def render_stream(self, answer: WireAnswer, with_usage: bool) -> Iterator[bytes]:
        """Yield the answer as server-sent events; ``with_usage`` asks for the usage too."""
        whole = dict(self.write_answer(answer))
        used = whole.pop("usage") if self.protocol is WireProtocol.CHAT else None
        *events, last = WIRES[self.protocol].split(whole)
        if used and with_usage:
            # OpenAI tells the usage in a chunk of its own, without a choice.
            head = {name: whole[name] for name in ("id", "created", "model")}
            events.append(Event({**head, "object": "chat.completion.chunk", "choices": [], "usage": used}))
        return (event.render() for event in (*events, last))

    def rehearsed(self, request: Request, body: Mapping[str, Any]) -> ParsedCall:
        """Return the call of a rehearsal, which uses almost nothing of its request."""
        named = replace(request, model=str(body.get("model") or "default"))
        options = body.get("stream_options")
        usage = self.protocol is not WireProtocol.CHAT or (
            isinstance(options, dict) and bool(options.get("include_usage"))
        )
        return ParsedCall(named, bool(body.get("stream")), usage)

    def answer_id(self, key: CallKey) -> str:
        """Return the id of the answer to a call; no two calls of a run share one."""
        return f"{self.prefix}{key.action}{self.prefix[-1]}{key.number}"
