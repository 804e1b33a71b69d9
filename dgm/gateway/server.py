"""The gateway of a run: one HTTP server through which every sandbox reaches the model that it was lent.

What a call costs is journaled before the agent sees the reply, and what the journal has is never asked again.
Wire protocols are ``Wire`` values, one action's limits belong to its ``Lease``, the run's to the ``Ledger``, the
socket to ``sockets``.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dgm.domain import ActionId, Usage
from dgm.errors import BudgetExhausted, Infrastructure, ProviderRefuses
from dgm.gateway import anthropic_messages, openai_chat, openai_responses
from dgm.gateway.http import EVENTS, JSON, body_of, no_key, refusal_of, spoken, streamed, token_of
from dgm.gateway.lease import CallLimits, Lease
from dgm.gateway.ledger import Ledger
from dgm.gateway.sockets import SocketServer
from dgm.gateway.wire import Answer, BadRequest, Call, Wire
from dgm.messages import CUT_SHORT, CallKey, PaidCall, Reply, Request, RequestRefused, Stop
from dgm.protocols import Journal, Model

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

WIRES = (openai_chat.WIRE, openai_responses.WIRE, anthropic_messages.WIRE)
CONTINUED = (openai_responses.WIRE,)
"""Protocols in which a call may name the answer that it goes on from."""
DRY_RUN = "dry-run"
"""The role of rehearsals: calls cost nothing and are not journaled, so no number clashes with a paid one."""
DRAIN_S = 60.0
"""How long the end of a session waits for calls that may be billed; at most a short while when it ends at once."""
DRAIN_AT_ONCE_S = 3.0

log = logging.getLogger(__name__)


class Gateway:
    """Lends the models of a run, one per role, over ``folder / socket_name``.

    Used with ``async with``; all of it happens in the event loop that entered it, the journal's writing too.

    Attributes:
        limits: of one lease, unless it is given its own.
        down: why a model did not answer last; empty once one has answered since.
        refused: set, to a line for people, once a provider takes nothing from us any more.
    """

    socket_name = "gateway.sock"

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        models: Mapping[str, Model],
        ledger: Ledger,
        limits: CallLimits | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            folder: for the socket; made if missing.
            journal: where replies that were paid for are found and left.
            models: role (``solve``, ``improve``, ``diagnose``, ``probe``, ``dry-run``) → the model that is lent for it.
            ledger: what the run may still spend; knows the price of every model.
            limits: of one lease, unless it is given its own.
        """
        self.folder = folder
        self.ledger = ledger
        self.down = ""
        self.refused = ""
        self._journal = journal
        self.models = models
        self.limits = limits or CallLimits()
        self._leases: dict[str, Lease] = {}
        self._numbers: dict[ActionId, int] = {}
        self._ending: set[asyncio.Task[Any]] = set()
        self._server: SocketServer | None = None

    async def __aenter__(self) -> Self:
        self._server = SocketServer(self._app(), self.folder, self.socket_name)
        await self._server.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for lease in self._leases.values():
            self._ending.update(lease.end())
        self._leases.clear()
        if self._ending:
            await asyncio.wait(self._ending, timeout=DRAIN_AT_ONCE_S if kind else DRAIN_S)
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)
        if self._server:
            await self._server.__aexit__(None, None, None)

    @contextmanager
    def lend(
        self,
        action: ActionId,
        role: str,
        limits: CallLimits | None = None,
        heard: set[int] | None = None,
    ) -> Iterator[Lease]:
        """Lends the role's model for an action.

        Afterwards its token is dead; calls that may be billed are let end, and are recorded.

        Args:
            action: whose calls they are.
            role: ``solve``, ``improve`` …
            limits: other than the gateway's own.
            heard: numbers of calls that an earlier lease of the same performance was answered, not served again;
                this lease adds its own.

        Raises:
            ArchiveCorrupt: a reply that was paid for is damaged.
        """
        paid = () if role == DRY_RUN else self._journal.exchanges(action)
        last = max((exchange.number for exchange in paid), default=0)
        self._numbers[action] = max(self._numbers.get(action, 0), last)
        known: set[int] = set() if heard is None else heard
        fresh = [exchange for exchange in paid if exchange.number not in known]
        lease = Lease(action, role, self.models[role], limits or self.limits, fresh)
        lease.heard = known
        self._leases[lease.token] = lease
        try:
            yield lease
        finally:
            self._leases.pop(lease.token, None)
            for task in lease.end():
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    async def ask(self, lease: Lease, request: Request) -> Reply:
        """One call by the host itself: limited, reserved, priced, journaled and served again like an agent's.

        Raises:
            RequestRefused: the request can never be answered, or the lease's limits are reached
                (``action_limit_exceeded``).
            Infrastructure: the model failed, or the run's budget has no room for the call.
        """
        try:
            lent = self._lent(Call(replace(request, model=lease.model.name)), lease)
            ordinal = lease.admit()
            task = asyncio.create_task(
                self._turn(lease, ordinal, lent), name=f"call {lease.action}.{ordinal}"
            )
            lease.keep(task)
            _, reply = await asyncio.shield(task)
        except RequestRefused as refusal:
            self._note(lease, BadRequest(str(refusal), refusal.code))
            raise
        except BadRequest as refusal:
            self._note(lease, refusal)
            raise RequestRefused(refusal.code, str(refusal)) from refusal
        return reply

    def _app(self) -> "Starlette":
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [Route("/v1" + wire.path, self._endpoint(wire), methods=["POST"]) for wire in WIRES]
        everything = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return Starlette(
            routes=[
                *routes,
                Route("/v1/models", self._list_models, methods=["GET"]),
                Route("/{path:path}", self._nothing_here, methods=everything),
            ]
        )

    def _endpoint(self, wire: Wire) -> Callable[["HttpRequest"], "asyncio.Future[Response]"]:
        async def endpoint(http: "HttpRequest") -> "Response":
            lease = self._leases.get(token_of(http))
            if lease is None:
                return no_key(wire)
            try:
                with lease.request():
                    return await self._completion(wire, lease, http)
            except BadRequest as refusal:
                return self._refuse(wire, lease, refusal)

        return endpoint  # type: ignore[return-value]

    def _refuse(self, wire: Wire, lease: Lease, refusal: BadRequest) -> "Response":
        self._note(lease, refusal)
        return refusal_of(wire, refusal.status, refusal.code, str(refusal))

    def _note(self, lease: Lease, refusal: BadRequest) -> None:
        lease.refuse(refusal.code)
        if lease.role != DRY_RUN and lease.refusals <= lease.limits.refusals:
            self._journal.refuse(lease.action, lease.role, refusal.status, refusal.code, str(refusal))

    async def _completion(self, wire: Wire, lease: Lease, http: "HttpRequest") -> "Response":
        from starlette.responses import Response, StreamingResponse

        call = wire.parse(await body_of(http, lease.limits.body_bytes))
        request = self._lent(call, lease)
        ordinal = lease.admit()
        task = asyncio.create_task(
            self._reply(lease, ordinal, request, (wire, call)), name=f"call {lease.action}.{ordinal}"
        )
        lease.keep(task)
        try:
            # The reply is awaited to its end, and journaled, even if the agent hangs up meanwhile.
            answer = await asyncio.shield(task)
        except RequestRefused as refusal:
            raise BadRequest(str(refusal), refusal.code) from refusal
        except Infrastructure:
            return refusal_of(wire, 503, "model_unavailable", "the model cannot be reached now")
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise BadRequest("the job of this key has ended", "invalid_api_key", 401) from None
        if call.stream:
            return StreamingResponse(
                streamed(wire.render_stream(answer, call.stream_usage)), media_type=EVENTS
            )
        return Response(wire.render(answer), media_type=JSON)

    def _lent(self, call: Call, lease: Lease) -> Request:
        """The request as the lent model is asked: its name, all that was said, no longer reply than is allowed."""
        asked = call.request
        name = lease.model.name
        if asked.model not in ("default", name):
            shown = asked.model[:80]
            message = f"the model {shown!r} is not offered; use 'default' or {name!r}"
            raise BadRequest(message, "model_not_found", 404)
        whole = call.after(lease.memory.conversation(call.previous)) if call.previous else asked
        most = lease.limits.output_tokens
        if lease.role != DRY_RUN:
            most = min(most, self.ledger.price(name).max_output or most)
        output = min(whole.max_output_tokens or most, most)
        return lease.memory.with_natives(replace(whole, model=name, max_output_tokens=output))

    async def _reply(self, lease: Lease, ordinal: int, request: Request, how: tuple[Wire, Call]) -> Answer:
        wire, call = how
        key, reply = await self._turn(lease, ordinal, request)
        answer_id = wire.answer_id(key)
        lease.memory.remember(answer_id, call.inherited(request), reply, goes_on=wire in CONTINUED)
        return Answer(reply, answer_id, call.request.model, int(time.time()), call.echo)

    async def _turn(self, lease: Lease, ordinal: int, request: Request) -> tuple[CallKey, Reply]:
        """One answered and accounted call, when its turn has come."""
        async with lease.turns:
            if lease.failure is not None:
                raise lease.failure
            lease.check_tokens()
            key, reply = await self._answered(lease, ordinal, request)
            lease.heard.add(key.number)
            if reply.error:
                log.info("action %d, call %d: refused: %s", lease.action, ordinal, reply.text)
                raise RequestRefused(reply.error, reply.text)
            lease.account(request, reply)
            return key, reply

    async def _answered(self, lease: Lease, ordinal: int, request: Request) -> tuple[CallKey, Reply]:
        """What was said to the call; a provider's refusal is a reply with an error."""
        try:
            return await self._paid(lease, ordinal, request)
        except (RequestRefused, BadRequest) as refusal:
            log.info("action %d, call %d: refused: %s", lease.action, ordinal, refusal)
            raise
        except ProviderRefuses as error:
            self.refused = self.refused or str(error)
            failure: Infrastructure = error
        except (Infrastructure, BudgetExhausted) as error:
            # An action that the run's budget cuts short is not graded: it goes on when there is budget again.
            failure = Infrastructure(str(error))
            failure.__cause__ = error
        except Exception as error:
            # A fault of a model or of the journal must never be scored as the agent's.
            log.exception("action %d, call %d failed", lease.action, ordinal)
            failure = Infrastructure(f"{type(error).__name__}: {error}")
        failure = Infrastructure(f"action {lease.action}, call {ordinal}: {failure}")
        lease.fail(failure)
        raise failure

    async def _paid(self, lease: Lease, ordinal: int, request: Request) -> tuple[CallKey, Reply]:
        if lease.role == DRY_RUN:
            return CallKey(lease.action, ordinal), await lease.model.reply(request)
        recorded = lease.memory.take(request, ordinal)
        if recorded is not None:
            return CallKey(lease.action, recorded.number), recorded.reply
        difference = lease.memory.difference(request, ordinal)
        if difference:
            log.warning("action %d, call %d is not the recorded one: %s", lease.action, ordinal, difference)
        most = self.ledger.most(request, lease.weighed)
        with lease.hold(most):
            async with self.ledger.hold(request, lease.weighed) as allowed:
                key, reply = await self._buy(lease, allowed, difference, cut=allowed is not request)
        return key, reply

    async def _buy(
        self, lease: Lease, request: Request, difference: str | None, *, cut: bool
    ) -> tuple[CallKey, Reply]:
        with lease.paying():
            began = time.monotonic()
            try:
                said = await lease.model.reply(request)
            except RequestRefused as refusal:
                # Kept as a reply: whoever repeats this action must hear the same.
                said = Reply(str(refusal), error=refusal.code, usage=Usage(calls=1))
            except ProviderRefuses:
                raise
            except Infrastructure as error:
                self.down = str(error)
                raise Infrastructure(f"{error} ({difference})" if difference else str(error)) from error
            self.down = ""
            lease.lost_s += said.lost_s
            reply = self.ledger.priced(request.model, said)
            if cut and reply.stop is Stop.LENGTH:
                reply = replace(reply, error=CUT_SHORT)
            self._numbers[lease.action] += 1
            key = CallKey(lease.action, self._numbers[lease.action])
            seconds = time.monotonic() - began
            await self._journal.record(PaidCall(key, request.model, lease.role, request, reply, seconds))
        if reply.error == CUT_SHORT:
            raise self.ledger.exhaust(
                f"a reply of {request.max_output_tokens} tokens was all that the rest allows"
            )
        return key, reply

    async def _list_models(self, http: "HttpRequest") -> "Response":
        from starlette.responses import Response

        wire = spoken(http)
        lease = self._leases.get(token_of(http))
        if lease is None:
            return no_key(wire)
        names = list(dict.fromkeys(("default", lease.model.name)))
        return Response(wire.models(names), media_type=JSON)

    async def _nothing_here(self, http: "HttpRequest") -> "Response":
        wire = spoken(http)
        lease = self._leases.get(token_of(http))
        if lease is None:
            return no_key(wire)
        offered = ", ".join(f"/v1{wire.path}" for wire in WIRES)
        place = f"{http.method} {http.url.path[:80]}"
        refusal = BadRequest(f"{place} is not offered here; there are {offered}", "unknown_endpoint", 404)
        return self._refuse(wire, lease, refusal)
