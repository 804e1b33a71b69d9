"""What the three wires share: a call as it was understood, how it is counted, and what a wire must do."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dgm.messages import Reply, Request, Role
from tests.support.wire_server.errors import Refused

SECRET = b"only this server signs with it"
CREATED = 1_760_000_000
"""The Unix time of every answer: nothing here depends on a clock."""
LEAST_CACHED = 1024
"""Tokens below which providers do not cache."""

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A well-formed call."""

    request: Request
    model: str
    digest: str
    stream: bool = False
    stream_usage: bool = False
    encrypted: bool = False
    """Of Responses: the encrypted reasoning is wanted."""
    marked: int | None = None
    """Of Messages: characters up to the last cache mark; ``None`` where the provider caches unasked."""
    reasoned: bool = False
    """Whether the last of the assistant's turns came back with its reasoning."""
    echo: JsonObject = field(default_factory=dict)
    """What the answer repeats of the request."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Of OpenAI's endpoints: types of the tools that are no functions, by name."""
    schema: JsonObject | None = None
    """What the answer has to be JSON of; ``{}``: any object."""
    namespaces: Mapping[str, str] = field(default_factory=dict)
    """Of Responses: the namespaces of tools, by name."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens as a provider counts them: cached, written and reasoning ones are parts of input and output."""

    input: int
    output: int
    cached: int = 0
    written: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Style:
    """How an answer is cut into events, and how it is spoilt."""

    piece: int = 24
    """Characters of a delta."""
    reasoning_key: str = "reasoning_content"
    """Of Chat: where reasoning is put, as servers of open models do."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One endpoint."""

    vendor: str
    parse: Callable[[JsonObject, str], Asked]
    """Raises ``Refused``. The text is the request's digest."""
    render: Callable[[Asked, Reply, Style], dict[str, Any]]
    events: Callable[[Asked, Reply, Style], Iterator[tuple[str, JsonObject | str]]]
    """Name (empty: none) and data of each server-sent event."""
    refusal: Callable[[Asked, Style], dict[str, Any]]
    refusal_events: Callable[[Asked, Style], Iterator[tuple[str, JsonObject | str]]]
    empty: Callable[[Asked, Style], dict[str, Any]]
    """An answer with nothing in it."""
    empty_events: Callable[[Asked, Style], Iterator[tuple[str, JsonObject | str]]]
    error_event: Callable[[Refused], tuple[str, JsonObject]]


def digest_of(path: str, body: bytes) -> str:
    """Names a request by its content."""
    return hashlib.sha256(path.encode() + b"\0" + body).hexdigest()


def sign(*parts: str) -> str:
    """A signature that no client can make."""
    text = json.dumps(parts).encode()
    return hmac.new(SECRET, text, hashlib.sha256).hexdigest()


def signed(signature: object, *parts: str) -> bool:
    """Whether ``sign`` made it."""
    return isinstance(signature, str) and hmac.compare_digest(signature, sign(*parts))


def sse(name: str, data: JsonObject | str) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    text = data if isinstance(data, str) else json.dumps(data)
    return f"{head}data: {text}\n\n".encode()


def pieces(text: str, size: int) -> Iterator[str]:
    """A text cut into parts of ``size`` characters."""
    for at in range(0, len(text), size):
        yield text[at : at + size]


def size(request: Request, upto: int | None = None) -> int:
    """Characters of the messages before ``upto`` and of the tools."""
    said = sum(
        len(m.text) + sum(len(c.arguments) + len(c.name) for c in m.calls) for m in request.messages[:upto]
    )
    return said + sum(len(tool.name) + len(tool.description) for tool in request.tools)


def counts(asked: Asked, reply: Reply) -> Counts:
    """What the call takes, from the brain's count where it made one, and from the request alone."""
    used = reply.usage
    given = used.input_tokens or max(1, size(asked.request) // 4)
    said = len(reply.text) + len(reply.reasoning) + sum(len(call.arguments) for call in reply.calls)
    output = used.output_tokens or max(1, said // 4)
    reasoning = min(output, used.reasoning_tokens or len(reply.reasoning) // 4)
    if used.cached_tokens or used.written_tokens:
        return Counts(given, output, used.cached_tokens, used.written_tokens, reasoning)
    cached, written = _cache(asked, given)
    return Counts(given, output, cached, written, reasoning)


def _cache(asked: Asked, given: int) -> tuple[int, int]:
    """Read and written: as if the request before this one in its conversation had been asked a moment ago."""
    turns = [at for at, m in enumerate(asked.request.messages) if m.role is Role.ASSISTANT]
    before = size(asked.request, turns[-1]) // 4 if turns else 0
    if asked.marked is None:
        cached = min(before, given) // 128 * 128
        return (cached if cached >= LEAST_CACHED else 0), 0
    marked = min(asked.marked // 4, given)
    if marked < LEAST_CACHED:
        return 0, 0
    read = min(before, marked)
    read = read if read >= LEAST_CACHED else 0
    return read, marked - read
