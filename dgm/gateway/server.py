"""The gateway of a run: one HTTP server through which every sandbox reaches the model that it was lent.

What a call costs is journaled before the agent sees the reply, and what the journal has is never asked again.
Wire protocols are ``Wire`` values, limits belong to the ``Lease``, the socket to ``sockets``.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dgm.domain import ActionId
from dgm.errors import BudgetExhausted, Infrastructure
from dgm.gateway import openai_chat
from dgm.gateway.lease import CallLimits, Lease
from dgm.gateway.masking import first_difference
from dgm.gateway.sockets import SocketServer
from dgm.gateway.wire import Answer, BadRequest, Call, Wire
from dgm.messages import CallKey, Reply, Request, RequestRefused
from dgm.protocols import Journal, Model

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

WIRES = (openai_chat.WIRE,)
DRY_RUN = "dry-run"
"""The role of rehearsals: calls cost nothing and are not journaled, so no number clashes with a paid one."""
DRAINED_BYTES = 200_000_000
"""Read of a body that is too large, so that its sender can read the refusal."""

Asked = Callable[[CallKey], Request | None]

log = logging.getLogger(__name__)


def nothing_kept(_: CallKey) -> Request | None:
    """For a journal that does not give requests back."""
    return None


class Gateway:
    """Lends the models of a run, one per role, over ``folder / socket_name``.

    Used with ``async with``; all of it happens in the event loop that entered it, the journal's writing too.
    """

    socket_name = "gateway.sock"

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        models: Mapping[str, Model],
        limits: CallLimits | None = None,
        asked: Asked = nothing_kept,
    ) -> None:
        """Opens nothing yet.

        Args:
            folder: for the socket; made if missing.
            journal: where replies that were paid for are found and left.
            models: role (``solve``, ``improve``, ``dry-run``) → the model that is lent for it.
            limits: of one lease, unless it is given its own.
            asked: the request of a journaled call, to tell when a repeated action asks something else.
        """
        self.folder = folder
        self._journal = journal
        self._models = models
        self._limits = limits or CallLimits()
        self._asked = asked
        self._leases: dict[str, Lease] = {}
        self._ending: set[asyncio.Task[Reply]] = set()
        self._server: SocketServer | None = None

    async def __aenter__(self) -> Self:
        self._server = SocketServer(self._app(), self.folder, self.socket_name)
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for lease in self._leases.values():
            self._ending.update(lease.end())
        self._leases.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)
        if self._server:
            await self._server.__aexit__(None, None, None)

    @contextmanager
    def lend(self, action: ActionId, role: str, limits: CallLimits | None = None) -> Iterator[Lease]:
        """Lends the role's model for an action; afterwards its token is dead and open calls are cancelled."""
        lease = Lease(action, role, self._models[role], limits or self._limits)
        self._leases[lease.token] = lease
        try:
            yield lease
        finally:
            self._leases.pop(lease.token, None)
            for task in lease.end():
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    def _app(self) -> "Starlette":
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [Route("/v1" + wire.path, self._endpoint(wire), methods=["POST"]) for wire in WIRES]
        return Starlette(routes=[*routes, Route("/v1/models", self._list_models, methods=["GET"])])

    def _endpoint(self, wire: Wire) -> Callable[["HttpRequest"], "asyncio.Future[Response]"]:
        async def endpoint(http: "HttpRequest") -> "Response":
            lease = self._leases.get(_token(http))
            if lease is None:
                return _no_key(wire)
            try:
                with lease.request():
                    return await self._completion(wire, lease, http)
            except BadRequest as refusal:
                lease.refusals += 1
                return _refusal(wire, refusal.status, refusal.code, str(refusal))

        return endpoint  # type: ignore[return-value]

    async def _completion(self, wire: Wire, lease: Lease, http: "HttpRequest") -> "Response":
        from starlette.responses import Response, StreamingResponse

        call = wire.parse(await _body(http, lease.limits.body_bytes))
        request = _lent(call, lease)
        key = lease.admit()
        task = asyncio.create_task(self._reply(lease, key, request), name=f"call {key.action}.{key.number}")
        lease.keep(task)
        try:
            # The reply is awaited to its end, and journaled, even if the agent hangs up meanwhile.
            reply = await asyncio.shield(task)
        except RequestRefused as refusal:
            raise BadRequest(str(refusal), refusal.code) from refusal
        except Infrastructure:
            return _refusal(wire, 503, "model_unavailable", "the model cannot be reached now")
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise BadRequest("the job of this key has ended", "invalid_api_key", 401) from None
        answer = Answer(reply, f"chatcmpl-{key.action}-{key.number}", call.request.model, int(time.time()))
        if call.stream:
            return StreamingResponse(_async(wire.render_stream(answer, call.stream_usage)), media_type=EVENTS)
        return Response(wire.render(answer), media_type=JSON)

    async def _reply(self, lease: Lease, key: CallKey, request: Request) -> Reply:
        async with lease.turns:
            if lease.failure is not None:
                raise lease.failure
            try:
                reply = await self._paid(lease, key, request)
            except RequestRefused as refusal:
                log.info("action %d, call %d: refused: %s", key.action, key.number, refusal)
                raise
            except (Infrastructure, BudgetExhausted) as error:
                # An action that the run's budget cuts short is not graded: it goes on when there is budget again.
                failure = Infrastructure(f"action {key.action}, call {key.number}: {error}")
                lease.fail(failure)
                raise failure from error
            except Exception as error:
                # A fault of a model or of the journal must never be scored as the agent's.
                log.exception("action %d, call %d failed", key.action, key.number)
                failure = Infrastructure(
                    f"action {key.action}, call {key.number}: {type(error).__name__}: {error}"
                )
                lease.fail(failure)
                raise failure from error
            lease.account(request, reply)
            return reply

    async def _paid(self, lease: Lease, key: CallKey, request: Request) -> Reply:
        if lease.role == DRY_RUN:
            return await lease.model.reply(request)
        recorded = self._journal.recorded(key)
        if recorded is not None:
            self._compare(key, request)
            return recorded
        self._journal.afford(key)
        began = time.monotonic()
        reply = await lease.model.reply(request)
        self._journal.record(key, lease.role, request, reply, time.monotonic() - began)
        return reply

    def _compare(self, key: CallKey, request: Request) -> None:
        before = self._asked(key)
        difference = first_difference(before, request) if before else None
        if difference:
            log.warning(
                "action %d, call %d asks something else than before: %s", key.action, key.number, difference
            )

    async def _list_models(self, http: "HttpRequest") -> "Response":
        from starlette.responses import Response

        lease = self._leases.get(_token(http))
        if lease is None:
            return _no_key(WIRES[0])
        names = dict.fromkeys(("default", lease.model.name))
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "dgm"} for name in names]
        return Response(json.dumps({"object": "list", "data": data}), media_type=JSON)


JSON = "application/json"
EVENTS = "text/event-stream"


def _lent(call: Call, lease: Lease) -> Request:
    """The request as the lent model is asked: its name, and no longer reply than the lease allows."""
    asked = call.request
    if asked.model not in ("default", lease.model.name):
        shown = asked.model[:80]
        raise BadRequest(
            f"the model {shown!r} is not offered; use 'default' or {lease.model.name!r}",
            "model_not_found",
            404,
        )
    most = lease.limits.output_tokens
    output = None if asked.max_output_tokens is None else min(asked.max_output_tokens, most)
    return Request(asked.messages, asked.tools, lease.model.name, asked.temperature, output)


async def _body(http: "HttpRequest", limit: int) -> bytes:
    from starlette.requests import ClientDisconnect

    data = bytearray()
    size = 0
    try:
        async for chunk in http.stream():
            size += len(chunk)
            if size <= limit:
                data += chunk
            elif size > DRAINED_BYTES:
                break
    except ClientDisconnect:
        raise BadRequest("the connection ended within the body", "incomplete_body") from None
    if size > limit:
        raise BadRequest(f"the body is larger than {limit} bytes", "request_too_large")
    return bytes(data)


def _token(http: "HttpRequest") -> str:
    scheme, _, token = http.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else http.headers.get("x-api-key", "")


def _refusal(wire: Wire, status: int, code: str, message: str) -> "Response":
    from starlette.responses import Response

    # Clients of the vendors ask again after a 503 unless they are told not to.
    headers = {"x-should-retry": "false"}
    return Response(wire.render_error(status, code, message), status, headers, JSON)


def _no_key(wire: Wire) -> "Response":
    return _refusal(wire, 401, "invalid_api_key", "no such key: it was never given out, or its job has ended")


async def _async(events: Iterator[bytes]) -> AsyncIterator[bytes]:
    for event in events:
        yield event
