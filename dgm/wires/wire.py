"""The seam between the gateway and a protocol: its requests, its answers and the events of its streams.

All of it is pure: no clock, no connection, no vendor's package. An answer passes unchanged if the vendor's own client
can read it. Each protocol has one fold, which makes a whole answer of events, and one splitter, which makes events of
a whole answer; whatever is mended goes through both.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from dgm.domain import Usage
from dgm.messages import JsonObject, Message, Reply, Request, Stop, Tool, WireProtocol
from dgm.wires.neutral import as_texts, floating, tool_choice_of
from dgm.wires.values import dump_json, record, records

DONE = "[DONE]"
"""Data of the event that ends a stream of Chat Completions."""
Key = tuple[object, ...]
"""A part of an answer that is told in pieces, or at once."""
_UNKNOWN_DATE = "1970-01-01T00:00:00Z"
_TOLD = ("message", "detail", "msg", "error_msg", "error_message")
"""Keys of error messages in answers of no known form."""


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    data: JsonObject | str
    """A JSON object, or ``DONE``."""
    name: str = ""
    """The ``event:`` line; empty: none."""

    def render(self) -> bytes:
        """Return the event's bytes, blank line included; ASCII only, so that no reader splits a line wrongly."""
        data = self.data if isinstance(self.data, str) else json.dumps(self.data, separators=(",", ":"))
        name = f"event: {self.name}\n" if self.name else ""
        return f"{name}data: {data}\n\n".encode("utf-8", "backslashreplace")


class UnusableReply(Exception):
    """The error for an unusable answer: not JSON, cut off, or without a choice. The next try may succeed.

    Attributes:
        reply_whole: the answer to accept if the next try ends alike; None if nothing can be used.
    """

    def __init__(self, message: str, reply_whole: JsonObject | None = None) -> None:
        super().__init__(message)
        self.reply_whole = reply_whole


class ErrorInAnswer(Exception):
    """The error of a provider in a successful answer or in an event of a stream.

    Attributes:
        body: the error's JSON as it arrived, with the error itself under ``error`` if the provider nests it.
        status: the HTTP status that the error names; None if it names none.
    """

    def __init__(self, body: JsonObject, status: int | None = None) -> None:
        error = body.get("error", body)
        message = error.get("message") if isinstance(error, dict) else error
        super().__init__(str(message or "the provider answered with an error"))
        self.body = body
        self.status = status


def status_of(error: object) -> int | None:
    """Return the HTTP status that an error's ``code`` or ``status`` names, or None."""
    if not isinstance(error, dict):
        return None
    for name in ("status", "status_code", "code"):
        value = error.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) == 3:
            value = int(value)
        if isinstance(value, int) and 400 <= value <= 599:
            return value
    return None


class Sent:
    """What an agent has received of an answer, which can no longer be mended.

    Attributes:
        events: number of events.
    """

    def __init__(self) -> None:
        self.events = 0
        self._texts: dict[str, list[str]] = {}

    def add(self, key: Key, text: str = "") -> None:
        """Add a piece of text, or a part that is sent at once."""
        self._texts.setdefault(str(key), []).append(text)

    def lacks(self, key: Key) -> bool:
        """Return whether nothing of a part was sent."""
        return str(key) not in self._texts

    def rest(self, key: Key, text: str) -> str:
        """Return what is missing of a text."""
        sent = "".join(self._texts.get(str(key), ()))
        if not text.startswith(sent):
            sent = next(
                (sent[:at] for at, (a, b) in enumerate(zip(sent, text, strict=False)) if a != b), text
            )
        return text[len(sent) :]


class Fold(Protocol):
    """One answer, as far as it has arrived.

    Attributes:
        spoken: some of its content has arrived: a retry would be visible.
        text: the last piece of text.
        ending: an event has begun to tell how the answer ends.
        stopped: the model has stopped; only an end mark may be missing.
        complete: it has ended, and nothing that a client needs is missing.
    """

    spoken: bool
    text: str
    ending: bool
    stopped: bool
    complete: bool

    def take(self, event: JsonObject, name: str) -> bool:
        """Take the next event; return whether the vendor's client can read it as it is, behind those before it.

        The event is not changed, and parts of it are kept.

        Args:
            event: the event's data.
            name: the ``event:`` line; empty: none.

        Raises:
            ErrorInAnswer: the event holds an error.
        """
        ...

    def finish(self, *, done: bool) -> None:
        """Add what is missing at the end of a stream that has ended.

        Args:
            done: whether it ended as it should, or the caller accepts it as it is.

        Raises:
            UnusableReply: the answer cannot be whole.
        """
        ...

    def whole(self) -> JsonObject:
        """Return the answer so far in its form without streaming, mended."""
        ...


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """A reply with the additional fields that a protocol returns."""

    reply: Reply
    id: str
    model: str
    """The name that the caller used."""
    created: int
    """Unix time in whole seconds."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """What of the request the answer depends on or repeats."""


class Wire(ABC):
    """One protocol."""

    protocol: ClassVar[WireProtocol]
    path: ClassVar[str]
    """Path below ``/v1``."""
    turns: ClassVar[str]
    """Name of the request's list that grows with the conversation."""
    content: ClassVar[str]
    """Name of the answer's list of choices, blocks or items."""
    prefix: ClassVar[str]
    """The prefix of answer ids, including the separator before the numbers."""

    # Answers of a provider

    @abstractmethod
    def fold(self, request: JsonObject) -> Fold:
        """Return an empty answer to a request's body."""

    @abstractmethod
    def split(self, whole: JsonObject, sent: Sent | None = None) -> Iterator[Event]:
        """Yield a whole answer as the events of its stream, ``DONE`` included; without what was ``sent``."""

    @abstractmethod
    def pieces(self, event: JsonObject) -> Iterator[tuple[Key, str]]:
        """Yield the parts of an answer that an event tells, for ``Sent``."""

    @abstractmethod
    def raise_error(self, event: JsonObject, kind: str) -> None:
        """Raise the error in an event of a type, or in a whole answer (type empty), if there is one.

        Raises:
            ErrorInAnswer: it holds one.
        """

    def render(self, whole: JsonObject, *, stream: bool) -> bytes:
        """Return the body of a whole answer: JSON, or server-sent events."""
        return b"".join(event.render() for event in self.split(whole)) if stream else dump_json(whole)

    def accept(self, whole: JsonObject, request: JsonObject) -> JsonObject:
        """Return a whole answer in a form that the vendor's client can read; the same object if it can already.

        Raises:
            ErrorInAnswer: it is an error.
            UnusableReply: it is no answer, or a call that it promises is missing.
        """
        self.raise_error(whole, "")
        if not whole.get(self.content) and any(
            isinstance(whole.get(key), str) and whole[key] for key in _TOLD
        ):
            raise ErrorInAnswer(whole, status_of(whole))
        if not isinstance(whole.get(self.content), list | str):
            raise UnusableReply(f"the answer holds no {self.content}")
        fold = self.fold(request)
        sound = [
            fold.take(event.data, event.name) for event in self.split(whole) if isinstance(event.data, dict)
        ]
        untouched = all(sound) and fold.complete
        fold.finish(done=True)
        return whole if untouched else fold.whole()

    @abstractmethod
    def usage(self, whole: JsonObject, request: JsonObject) -> Usage:
        """Return the usage of a call, counted or else estimated; ``calls`` is 1."""

    @abstractmethod
    def stop(self, whole: JsonObject) -> Stop:
        """Return why a whole answer stopped."""

    @abstractmethod
    def read_reply(self, whole: JsonObject, request: JsonObject) -> Reply:
        """Return a whole answer in neutral form; never raises."""

    # Requests

    @abstractmethod
    def output_limit(self, body: JsonObject) -> int | None:
        """Return the largest output limit of a request's body, under any name."""

    @abstractmethod
    def limited(self, body: JsonObject, tokens: int) -> JsonObject:
        """Return a body with an output limit, under the names that it uses or else the usual one."""

    def choices(self, body: JsonObject) -> int:
        """Return the number of answers that a body asks for."""
        del body
        return 1

    @abstractmethod
    def mended_request(self, body: JsonObject) -> JsonObject:
        """Return a body whose earlier calls strict providers accept; the same object if nothing changed."""

    def read_request(self, body: JsonObject) -> Request:
        """Return a body in neutral form, for translations, people, evidence and replays; never raises."""
        choice = body.get("tool_choice")
        serial = body.get("parallel_tool_calls") is False or record(choice).get("disable_parallel_tool_use")
        return Request(
            messages=self.read_messages(body),
            tools=[self.read_tool(tool) for tool in records(body.get("tools"))],
            model=str(body.get("model") or ""),
            temperature=floating(body.get("temperature")),
            max_output_tokens=self.output_limit(body),
            top_p=floating(body.get("top_p")),
            stop=as_texts(body.get("stop", body.get("stop_sequences"))),
            tool_choice=tool_choice_of(choice),
            parallel=not serial,
            effort=self.read_effort(body),
        )

    @abstractmethod
    def read_messages(self, body: JsonObject) -> list[Message]:
        """Return the conversation of a body."""

    @abstractmethod
    def read_effort(self, body: JsonObject) -> str:
        """Return the reasoning effort of a body; empty: the model's default."""

    def read_tool(self, tool: JsonObject) -> Tool:
        """Return one of a body's tools."""
        inner = record(tool.get("function") or tool.get("custom")) or tool
        name, told = inner.get("name") or tool.get("type") or "", inner.get("description") or ""
        schema = record(inner.get("parameters") or inner.get("input_schema"))
        return Tool(str(name), str(told), schema)

    @abstractmethod
    def write_request(self, request: Request, model: str) -> JsonObject:
        """Return the body for a neutral request.

        Raises:
            RequestRefused: it asks for something that the protocol does not have.
        """

    # Answers to an agent

    @abstractmethod
    def write_answer(self, answer: WireAnswer) -> JsonObject:
        """Return a whole answer."""

    def render_error(self, status: int, code: str, message: str) -> bytes:
        """Return the body of a refusal; here in OpenAI's form."""
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return dump_json({"error": {"message": message, "type": kind, "param": None, "code": code}})


def describe_model(name: str) -> JsonObject:
    """Return what agents are told of a model, in one form for the clients of all vendors."""
    openai = {"id": name, "object": "model", "created": 0, "owned_by": "dgm"}
    return {
        **openai,
        "type": "model",
        "display_name": name,
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "active",
    }


def list_models(names: Sequence[str]) -> JsonObject:
    """Return the list of an agent's models, in one form for the clients of all vendors."""
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return {"object": "list", "data": [describe_model(name) for name in names], "has_more": False, **ends}
