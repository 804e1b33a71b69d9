"""The server: keys, models, the three endpoints, a record of everything; served over real HTTP in a thread."""

import asyncio
import contextlib
import hashlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dgm.messages import Reply, RequestRefused
from dgm.models.check import QUESTION
from tests.support.wire_server import sending
from tests.support.wire_server.brain import Brain, Echo
from tests.support.wire_server.endpoints import WIRES, Wire, chunks_of
from tests.support.wire_server.faults import (
    CALLS,
    Call,
    Kind,
    Rule,
    Script,
    too_long,
    unknown_model,
    wrong_key,
)
from tests.support.wire_server.protocol import (
    ANTHROPIC,
    CREATED,
    OPENAI,
    Asked,
    BrainFault,
    Refused,
    counts,
    digest_of,
)

START_S = 300.0


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Config:
    """What the server offers and to whom."""

    key: str = "test-key"
    models: tuple[str, ...] = ("gpt-test", "claude-test")
    brain: Brain = field(default_factory=Echo)
    script: Script = field(default_factory=Script)
    prices: Mapping[str, Price] = field(default_factory=dict)
    piece: int = 24
    """Characters of a delta."""
    latency_s: float = 0.0
    """Before each answer."""
    keep_reasoning: bool = False
    """Refuse a turn that called tools and comes back without its reasoning, as reasoning models do; for a brain that
    is ``Thinking``. Chat has no reasoning to send back."""


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
    """The brain's reply, where the client was given all of it."""
    usd: float = 0.0
    fault: Kind | None = None
    error: str = ""
    """The message of the error that was sent."""

    @property
    def check(self) -> bool:
        """Whether dgm asks only to see whether the model answers."""
        return isinstance(self.body, dict) and QUESTION in json.dumps(self.body)


class WireApp:
    """The ASGI application; ``config`` may be replaced while it runs."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._records: list[Record] = []

    @property
    def requests(self) -> list[Record]:
        """Every request so far, in order of arrival."""
        with self._lock:
            return list(self._records)

    async def __call__(self, scope: sending.Scope, receive: sending.Receive, send: sending.Send) -> None:
        """Serve one request."""
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        path = "/v1" + scope["path"].removeprefix("/v1")
        with self._lock:
            record = Record(len(self._records) + 1, scope["method"], path, headers)
            self._records.append(record)
        raw = await sending.read_body(receive)
        record.body = _read(raw)
        # The number tells the tries of one request apart.
        name = f"req_{hashlib.sha256(raw).hexdigest()[:18]}{record.number:06d}"
        call = sending.Exchange(scope, receive, send, name, lambda status: setattr(record, "status", status))
        vendor = ANTHROPIC if path.startswith("/v1/messages") or "anthropic-version" in headers else OPENAI
        try:
            await self._serve(record, raw, call, vendor)
        except Refused as error:
            record.error = error.message
            await call.error(vendor, error)
        except BrainFault as error:
            record.error = str(error)
            await call.error(vendor, Refused(500, f"the test's brain: {error}"))

    async def _serve(self, record: Record, raw: bytes, call: sending.Exchange, vendor: str) -> None:
        self._let_in(record.headers, vendor)
        digest = digest_of(record.path, raw)
        rule = self.config.script.choose(Call(record.path, digest, record.check))
        refused = rule.refused(vendor, record.path) if rule else None
        is_list = record.path.startswith("/v1/models")
        if rule and (refused or is_list):
            record.fault = rule.kinds[0]
            raise refused or Refused(503, "The server had a problem.")
        if is_list:
            await call.whole(self._models(record.path, vendor))
            return
        if record.path not in CALLS or record.method != "POST" or not isinstance(record.body, dict):
            raise Refused(404, f"Not found: {record.method} {record.path}", type="invalid_request_error")
        await self._ask(record, call, WIRES[record.path], digest, rule)

    async def _ask(
        self, record: Record, call: sending.Exchange, wire: Wire, digest: str, rule: Rule | None
    ) -> None:
        try:
            asked = wire.parse(record.body, digest)
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            # A field whose type no check looks at; a 500 would be tried again.
            raise Refused(400, f"The request is malformed: {error!r}") from error
        self._check_model(asked.model, wire.vendor)
        if self.config.keep_reasoning and wire is not WIRES[CALLS[0]] and not asked.reasoned:
            raise Refused(400, "A turn with tool calls was provided without its required reasoning.")
        await asyncio.sleep(self.config.latency_s)
        piece, drip_s = self.config.piece, 0.0
        if rule:
            record.fault = rule.kinds[0]
            match rule.kind:
                case Kind.DRIP:
                    drip_s = rule.seconds
                case Kind.SPLIT_ARGUMENTS:
                    piece = 2
                case _:
                    await sending.spoil(call, wire, asked, rule, piece)
                    return
        try:
            reply = await self.config.brain.answer(asked.request)
        except RequestRefused as error:
            if error.code == "context_length_exceeded":
                raise too_long(record.path) from error
            raise Refused(400, str(error), error.code) from error
        usd = self._price(asked, reply)

        def given() -> None:
            record.usd = usd
            record.reply = reply

        await sending.answer(call, asked, chunks_of(wire, asked, reply, piece), given, drip_s)

    def _let_in(self, headers: Mapping[str, str], vendor: str) -> None:
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if vendor == ANTHROPIC:
            given = headers.get("x-api-key", given)
        if given != self.config.key:
            raise wrong_key(vendor, given)
        if vendor == ANTHROPIC and "anthropic-version" not in headers:
            raise Refused(400, "anthropic-version: header is required")

    def _check_model(self, model: str, vendor: str) -> None:
        if model not in self.config.models:
            raise unknown_model(vendor, model)

    def _models(self, path: str, vendor: str) -> Mapping[str, Any]:
        name = path.removeprefix("/v1/models").removeprefix("/")
        if name:
            self._check_model(name, vendor)
            return _describe(name, vendor)
        data = [_describe(model, vendor) for model in self.config.models]
        if vendor == ANTHROPIC:
            ends = {"first_id": self.config.models[0], "last_id": self.config.models[-1]}
            return {"data": data, "has_more": False, **ends}
        return {"object": "list", "data": data}

    def _price(self, asked: Asked, reply: Reply) -> float:
        price = self.config.prices.get(asked.model)
        if price is None:
            return 0.0
        used = counts(asked, reply)
        return (used.input * price.input + used.output * price.output) / 1_000_000


def _describe(name: str, vendor: str) -> Mapping[str, Any]:
    if vendor == ANTHROPIC:
        return {"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T08:53:20Z"}
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "wire-server"}


def _read(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw


class Reachable(H11Protocol):
    """Shows the application its connection, which must be had to reset it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.app_state = {**self.app_state, "transport": transport}
        super().connection_made(transport)


class Unsignalled(uvicorn.Server):
    """Leaves signals to the program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WireServer:
    """A running server on a free port of 127.0.0.1, for a ``with``.

    Args:
        config: what it offers; default: everything by default.
        around: makes what is served of the application, such as a copy of all that goes in and out.
        options: fields of ``Config``, instead of ``config``.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        around: Callable[[WireApp], Any] | None = None,
        **options: Any,
    ) -> None:
        self.app = WireApp(config or Config(**options))
        settings = uvicorn.Config(
            around(self.app) if around else self.app,
            http=Reachable,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=600,
            timeout_graceful_shutdown=1,
            backlog=512,
        )
        self._server = Unsignalled(settings)
        self._thread = threading.Thread(target=self._run, name="wire-server", daemon=True)

    def __enter__(self) -> Self:
        # asyncio turns Nagle's algorithm off only where the protocol is named: else each answer waits 40 ms.
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._listener.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        """Without a path: an Anthropic client's base URL; an OpenAI client's is ``openai_url``."""
        self.openai_url = self.url + "/v1"
        self._thread.start()
        waiting = threading.Event()
        for _ in range(int(START_S / 0.005)):
            if self._server.started:
                return self
            if not self._thread.is_alive():
                break
            waiting.wait(0.005)
        raise RuntimeError("the wire server did not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(START_S)

    @property
    def requests(self) -> list[Record]:
        """Every request so far, in order of arrival."""
        return self.app.requests

    @property
    def answered(self) -> int:
        """Calls whose client was given the brain's complete reply."""
        return sum(record.reply is not None for record in self.requests)

    @property
    def faults(self) -> Mapping[Kind, int]:
        """Calls by the fault that they got."""
        return Counter(record.fault for record in self.requests if record.fault)

    @property
    def spent_usd(self) -> float:
        """Price of all answered calls by the configured prices."""
        return sum(record.usd for record in self.requests)

    def outage(self, down: bool, kind: Kind = Kind.ERROR_503, seconds: float = 1.0) -> None:
        """Let every call fail with ``kind`` until the opposite is set."""
        self.app.config.script.outage(kind if down else None, seconds)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listener]))
