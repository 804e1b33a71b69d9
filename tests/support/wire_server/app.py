"""The server as an ASGI application: keys, models, the three endpoints, and a log of everything.

It knows nothing of sockets but for one thing: what serves it may put the connection's transport into the scope
(``serving`` does), which is needed to reset it.
"""

import asyncio
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dgm.messages import Reply, RequestRefused, Role
from dgm.models.check import QUESTION
from tests.support.wire_server import (
    anthropic_messages,
    anthropic_requests,
    errors,
    openai_chat,
    openai_responses,
    sending,
    structured,
)
from tests.support.wire_server.brain import Brain, Echo
from tests.support.wire_server.errors import ANTHROPIC, OPENAI, BrainFault, Refused
from tests.support.wire_server.faults import CALLS, Call, Fault, Kind, Rule, Script
from tests.support.wire_server.protocol import CREATED, Asked, Style, Wire, counts, digest_of, size

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

WIRES: Mapping[str, Wire] = {
    "/v1/chat/completions": openai_chat.WIRE,
    "/v1/responses": openai_responses.WIRE,
    "/v1/messages": anthropic_messages.WIRE,
}
COUNT = "/v1/messages/count_tokens"
MOST_BYTES = 32_000_000
CONTEXT = 200_000
_NOW = Rule(Kind.RATE_LIMIT)


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Default: as ``input``."""
    written: float | None = None
    """Default: as ``input``."""


@dataclass(frozen=True, slots=True)
class Config:
    """What the server offers and to whom."""

    key: str = "test-key"
    models: tuple[str, ...] = ("gpt-test", "claude-test")
    brain: Brain = field(default_factory=Echo)
    script: Script = field(default_factory=Script)
    prices: Mapping[str, Price] = field(default_factory=dict)
    style: Style = field(default_factory=Style)
    latency_s: float = 0.0
    """Before each answer."""
    keep_reasoning: bool = False
    """Refuse a turn that called tools and comes back without its reasoning, as reasoning models do; for a brain that
    is ``Thinking``. Chat has no reasoning to send back."""
    concurrency: int | None = None
    """Calls at once; one more gets 429."""
    log: Callable[["Record"], None] | None = None
    """Told of each request when it is over."""


@dataclass(slots=True)
class Record:
    """One request and what became of it."""

    number: int
    """From 1, in order of arrival."""
    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case; keys as they came."""
    body: Any = None
    """As JSON where it is JSON, else bytes."""
    status: int = 0
    """0 where nothing was sent."""
    reply: Reply | None = None
    """What the brain said, where the client was given all of it."""
    usd: float = 0.0
    fault: Kind | None = None
    error: str = ""
    """The message of the error that was sent."""

    @property
    def check(self) -> bool:
        """Whether dgm asks only to see whether the model answers."""
        return isinstance(self.body, dict) and QUESTION in json.dumps(self.body)


class WireApp:
    """Speaks both providers' wires; ``config`` may be replaced while it runs."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._records: list[Record] = []
        self._faults: Counter[Kind] = Counter()
        self._busy = 0
        self._most = 0

    @property
    def requests(self) -> list[Record]:
        """Every request so far, in order of arrival."""
        with self._lock:
            return list(self._records)

    @property
    def answered(self) -> int:
        """Calls whose client was given the brain's whole reply."""
        return sum(record.reply is not None for record in self.requests)

    @property
    def faults(self) -> Mapping[Kind, int]:
        """How many calls got which fault."""
        with self._lock:
            return dict(self._faults)

    @property
    def spent_usd(self) -> float:
        """What all answered calls cost by the configured prices."""
        return sum(record.usd for record in self.requests)

    @property
    def most_at_once(self) -> int:
        """The most calls that were under way at the same time."""
        return self._most

    def outage(self, down: bool, kind: Kind = Kind.ERROR_503, seconds: float = 1.0) -> None:
        """Every call fails with ``kind`` until told otherwise."""
        self.config.script.outage(kind if down else None, seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is spoken here, not {scope['type']}")
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        path = "/v1" + scope["path"].removeprefix("/v1")
        with self._lock:
            record = Record(len(self._records) + 1, scope["method"], path, headers)
            self._records.append(record)
        raw = await sending.body(receive)
        record.body = _read(raw)
        call = sending.Exchange(
            scope, receive, send, _request_id(record, raw), lambda status: setattr(record, "status", status)
        )
        vendor = ANTHROPIC if path.startswith("/v1/messages") or "anthropic-version" in headers else OPENAI
        try:
            await self._serve(record, raw, call, vendor)
        except Refused as error:
            record.error = error.message
            await call.error(vendor, error)
        except BrainFault as error:
            record.error = str(error)
            await call.error(vendor, Refused(500, f"the test's brain: {error}"))
        finally:
            if self.config.log:
                self.config.log(record)

    async def _serve(self, record: Record, raw: bytes, call: sending.Exchange, vendor: str) -> None:
        self._let_in(record.headers, vendor)
        if record.path == "/v1/models" or record.path.startswith("/v1/models/"):
            self._strike_refused(record, raw, vendor)
            await call.whole(self._models(record.path, vendor))
            return
        if record.path not in (*CALLS, COUNT):
            raise Refused(
                404, f"Not found: {record.path}", type="invalid_request_error" if vendor == OPENAI else ""
            )
        if record.method != "POST":
            raise Refused(405, f"Not allowed to {record.method} {record.path}.", type="invalid_request_error")
        if len(raw) > MOST_BYTES:
            raise Refused(413, "Request exceeds the maximum size")
        if not isinstance(record.body, dict):
            raise Refused(400, "We could not parse the JSON body of your request.")
        if record.path == COUNT:
            self._strike_refused(record, raw, vendor)
            asked = _parsed(partial(anthropic_requests.parse, counting=True), record.body, "")
            self._known(asked.model, vendor)
            await call.whole({"input_tokens": max(1, size(asked.request) // 4)})
            return
        with self._lock:
            self._busy += 1
            self._most = max(self._most, self._busy)
            busy = self._busy
        try:
            if self.config.concurrency is not None and busy > self.config.concurrency:
                raise self._counted(record, Fault(Kind.RATE_LIMIT, _NOW), vendor)
            await self._ask(record, raw, call, WIRES[record.path])
        finally:
            with self._lock:
                self._busy -= 1

    async def _ask(self, record: Record, raw: bytes, call: sending.Exchange, wire: Wire) -> None:
        digest = digest_of(record.path, raw)
        fault = self._chosen(record, digest)
        if fault:
            refused = fault.refused(wire.vendor, record.path)
            if refused:
                raise self._counted(record, fault, wire.vendor)
        asked = _parsed(wire.parse, record.body, digest)
        self._known(asked.model, wire.vendor)
        if self.config.keep_reasoning and wire is not openai_chat.WIRE and not _whole(asked):
            raise errors.unreasoned(wire.vendor)
        if self.config.latency_s:
            await asyncio.sleep(self.config.latency_s)
        if fault:
            self._count(record, fault)
            if not sending.gives_answer(fault):
                await sending.spoil(call, wire, asked, fault, self.config.style)
                return
        reply = await self._answer(asked, record.path)
        structured.check(asked.schema, reply)
        style = (
            replace(self.config.style, piece=2)
            if fault and fault.kind is Kind.SPLIT_ARGUMENTS
            else self.config.style
        )
        drip_s = fault.rule.seconds if fault and fault.kind is Kind.DRIP else 0.0
        chunks = list(sending.chunks_of(wire, asked, reply, style))
        usd = self._price(asked, reply)

        def given() -> None:
            record.usd = usd
            record.reply = reply

        await sending.answer(call, asked, chunks, given, drip_s)

    async def _answer(self, asked: Asked, path: str) -> Reply:
        try:
            return await self.config.brain.answer(asked.request)
        except RequestRefused as error:
            if error.code == "context_length_exceeded":
                raise errors.too_long(path, max(CONTEXT + 1, size(asked.request) // 4), CONTEXT) from error
            raise Refused(400, str(error), error.code) from error

    def _chosen(self, record: Record, digest: str) -> Fault | None:
        body = record.body if isinstance(record.body, dict) else {}
        streaming = body.get("stream") is True
        age = time.monotonic() - self._began
        call = Call(record.path, digest, str(body.get("model")), streaming, age, record.check)
        return self.config.script.choose(call)

    def _strike_refused(self, record: Record, raw: bytes, vendor: str) -> None:
        """Only faults that are an error's answer strike where no model is asked."""
        fault = self._chosen(record, digest_of(record.path, raw))
        if fault:
            raise self._counted(record, fault, vendor)

    def _counted(self, record: Record, fault: Fault, vendor: str) -> Refused:
        self._count(record, fault)
        return fault.refused(vendor, record.path) or errors.failing(vendor, 503)

    def _count(self, record: Record, fault: Fault) -> None:
        record.fault = fault.kind
        with self._lock:
            self._faults[fault.kind] += 1

    def _let_in(self, headers: Mapping[str, str], vendor: str) -> None:
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if vendor == ANTHROPIC:
            given = headers.get("x-api-key", given)
        if given != self.config.key:
            raise errors.wrong_key(vendor, given)
        if vendor == ANTHROPIC and "anthropic-version" not in headers:
            raise Refused(400, "anthropic-version: header is required")

    def _known(self, model: str, vendor: str) -> None:
        if model not in self.config.models:
            raise errors.unknown_model(vendor, model)

    def _models(self, path: str, vendor: str) -> Mapping[str, Any]:
        name = path.removeprefix("/v1/models").removeprefix("/")
        if name:
            self._known(name, vendor)
            return _model(name, vendor)
        found = [_model(each, vendor) for each in self.config.models]
        if vendor == ANTHROPIC:
            ends = {"first_id": self.config.models[0], "last_id": self.config.models[-1]}
            return {"data": found, "has_more": False, **ends}
        return {"object": "list", "data": found}

    def _price(self, asked: Asked, reply: Reply) -> float:
        price = self.config.prices.get(asked.model)
        if price is None:
            return 0.0
        used = counts(asked, reply)
        cached = price.input if price.cached is None else price.cached
        written = price.input if price.written is None else price.written
        plain = used.input - used.cached - used.written
        total = (
            plain * price.input + used.cached * cached + used.written * written + used.output * price.output
        )
        return total / 1_000_000


def wire_app(config: Config | None = None) -> WireApp:
    """The application, to be served by whatever serves ASGI."""
    return WireApp(config or Config())


def _parsed(parse: Callable[[Mapping[str, Any], str], Asked], body: Mapping[str, Any], digest: str) -> Asked:
    """Makes a 400 of a field whose type no check looks at: a 500 would be tried again."""
    try:
        return parse(body, digest)
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise Refused(400, f"The request is malformed: {error!r}") from error


def _whole(asked: Asked) -> bool:
    last = next((m for m in reversed(asked.request.messages) if m.role is Role.ASSISTANT), None)
    return asked.reasoned or last is None or not last.calls


def _model(name: str, vendor: str) -> Mapping[str, Any]:
    if vendor == ANTHROPIC:
        told = {"display_name": name, "created_at": "2025-10-09T08:53:20Z", "lifecycle": "active"}
        return {"type": "model", "id": name, **told}
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "wire-server"}


def _read(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def _request_id(record: Record, raw: bytes) -> str:
    """Tells the tries of one request apart by their place in the log."""
    return "req_" + hashlib.sha256(raw).hexdigest()[:18] + f"{record.number:06d}"
