"""The gateway of a run: one HTTP server through which every sandbox reaches the model that it was lent.

Where agent and provider use the same protocol, request and reply pass through as JSON. Different protocols are
translated through ``dgm.messages``. One action's limits belong to its ``Lease``, the run's to the ``Ledger``, buying
calls to the ``ModelCaller``, the socket to ``sockets``.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dgm.domain import ActionId, FindingKind
from dgm.errors import ArchiveCorrupt, Infrastructure
from dgm.gateway.allowed import LEFT_OUT, BadRequest, collect_left_out
from dgm.gateway.answering import JSON, CompletionHandler
from dgm.gateway.bodies import Pace
from dgm.gateway.call import ModelCaller
from dgm.gateway.lease import DRY_RUN, CallLimits, JobEnded, Lease, ModelNames
from dgm.gateway.ledger import Ledger
from dgm.gateway.sockets import SocketServer
from dgm.messages import Reply, Request, RequestRefused
from dgm.models.choose import Drawing
from dgm.protocols import Checked, Journal, LentModel
from dgm.wires import CHAT, MESSAGES, RESPONSES
from dgm.wires.values import dump_json
from dgm.wires.wire import Wire, describe_model, list_models

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response
    from starlette.types import ASGIApp

log = logging.getLogger(__name__)

KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key")
"""Headers with the key of Anthropic's, Azure's and Google's clients."""
SPOKEN = (CHAT, RESPONSES, MESSAGES)
FINAL = {"x-should-retry": "false"}
"""Headers of refusals: vendors' clients retry after a 503 unless they are told not to."""
AWAY = ("model_unavailable", "the model cannot be reached now")
SOCKETS_BYTES = 4000
"""Maximum bytes of a list of open sockets."""
MOST_LEFT_OUT = 50
"""Maximum number of names of parts left out that are noted for one job; an agent can make up many."""
MOST_LOST_S = 1800.0
"""Maximum seconds given to an agent for time that it lost by waiting."""
DRAIN_S = 60.0
"""Maximum seconds to wait, at the end of a session, for calls that may be billed; shorter when it ends at once."""
DRAIN_AT_ONCE_S = 3.0
INSTEAD_OF_GEMINI = "Gemini CLI speaks nothing else; Qwen Code, which is made from it, speaks Chat"


@dataclass(frozen=True, slots=True)
class LendingRules:
    """Rules that select the model of an action, and the names by which an agent may ask for it."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    """Map of names that agents ask for to model names; ``default`` is the lent one."""
    drawing: Drawing = field(default_factory=Drawing)
    """The draw of an action's model where its role has several."""
    any_name: bool = False
    """Whether an agent may ask for its model by every name."""

    def names_of(self, model: LentModel) -> ModelNames:
        """Return the names of a lent model."""
        return ModelNames(model.name, self.aliases, self.any_name)


class Gateway:
    """The gateway that lends the models of a run, one per role, over ``folder / socket_name``.

    Use it with ``async with``; all work happens in the event loop that entered it, writing the journal included.

    Attributes:
        limits: of one lease, unless it is given its own.
        caller: asks the models; knows whether they answer.
    """

    socket_name = "gateway.sock"

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        models: Mapping[str, LentModel],
        ledger: Ledger,
        limits: CallLimits | None = None,
        rules: LendingRules | None = None,
    ) -> None:
        """Create a gateway that is not open.

        Args:
            folder: for the socket; made if missing.
            journal: where paid replies are found and stored.
            models: role (``solve``, ``improve``, ``diagnose``, ``probe``, ``dry-run``) → the model that is lent for it.
            ledger: the run's remaining budget; knows the price of every model.
            limits: of one lease, unless it is given its own.
            rules: select the model of an action, and the names by which an agent may ask for it.
        """
        self._rules = rules or LendingRules()
        self.folder = folder
        self.ledger = ledger
        self.caller = ModelCaller(journal, ledger)
        self._journal = journal
        self.models = models
        self.limits = limits or CallLimits()
        self._answering = CompletionHandler(self.caller, ledger)
        self._leases: dict[str, Lease] = {}
        self._strangers = Pace()
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
        kind: str = "",
    ) -> Iterator[Lease]:
        """Lend the role's model for an action.

        Afterwards its token is dead; calls that may be billed continue to their end, and are recorded.

        Args:
            action: the action that makes the calls.
            role: ``solve``, ``improve`` …
            limits: other than the gateway's own.
            heard: numbers of calls that an earlier lease of the same attempt was answered; they are not served again,
                and this lease adds its own.
            kind: role of the model whose names a dry run has; those of the lent one if there is none.
        """
        last, answered = (0, ()) if role == DRY_RUN else self._journal.numbers(action)
        known: set[int] = set() if heard is None else heard
        recorded = partial(self._journal.recall, action, set(answered) - known)
        model = self.models[self._rules.drawing.model_for(action, role)]
        named = (
            self.models.get(self._rules.drawing.model_for(action, kind), model) if role == DRY_RUN else model
        )
        names = self._rules.names_of(named)
        lease = Lease(
            action, role, model, limits or self.limits, names, None if role == DRY_RUN else recorded
        )
        lease.heard = known
        self.caller.enter(lease, last)
        self._leases[lease.token] = lease
        try:
            yield lease
        finally:
            self._leases.pop(lease.token, None)
            self.caller.leave(lease)
            for task in lease.end():
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    async def ask(self, lease: Lease, request: Request) -> Reply:
        """Make one call by the host itself: limited, reserved, priced, journaled and served again like an agent's.

        Raises:
            RequestRefused: the request can never be answered, or the lease's limits are reached
                (``action_limit_exceeded``).
            Infrastructure: the model failed, or the run's budget has no room for the call.
        """
        await lease.recall()
        try:
            return await self._answering.ask(lease, request)
        except (RequestRefused, BadRequest) as refusal:
            self._note(lease, refusal)
            if isinstance(refusal, RequestRefused):
                raise
            raise RequestRefused(refusal.code, str(refusal)) from refusal

    async def check_models(self) -> None:
        """Make a small real call to every model that is lent; journal its usage.

        Raises:
            UserError: a person must act.
            Infrastructure: one does not answer now.
        """
        for model in dict.fromkeys(self.models.values()):
            try:
                checked = await model.check()
            except Infrastructure as error:
                self.caller.trouble[model.name] = error
                raise
            self.caller.trouble.pop(model.name, None)
            if checked is not None:
                self.note_check(checked)

    def note_check(self, checked: Checked) -> None:
        """Journal the usage and the findings of a model check."""
        usage = self.ledger.priced(checked.model, checked.usage)
        self._journal.learned(checked.model, checked.abilities, "; ".join(checked.words), usage)
        self.caller.answered.add(checked.model)

    # HTTP

    def _app(self) -> "Starlette":
        from starlette.applications import Starlette
        from starlette.routing import Route

        completions = [
            Route(place, self._endpoint(self._answering.complete, wire), methods=["POST"])
            for wire in SPOKEN
            for place in places_of(wire)
        ]
        count = self._endpoint(self._count, MESSAGES)
        everything = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return Starlette(
            routes=[
                *completions,
                *(Route(path, self._greet, methods=["GET"]) for path in ("/", "/api/hello")),
                Route("/v1/messages/count_tokens", count, methods=["POST"]),
                Route("/v1/dgm/clock", self._clock, methods=["GET"]),
                Route("/v1/dgm/sockets", self._endpoint(self._note_sockets), methods=["POST"]),
                Route("/v1/models", self._endpoint(self._list_models), methods=["GET"]),
                Route("/v1/models/{name:path}", self._endpoint(self._describe_model), methods=["GET"]),
                Route("/{path:path}", self._endpoint(self._refuse_path), methods=everything),
            ]
        )

    def _endpoint(
        self, answer: Callable[[Wire, Lease, "HttpRequest"], Awaitable["ASGIApp"]], only: Wire | None = None
    ) -> Callable[["HttpRequest"], Awaitable["ASGIApp"]]:
        """Return an endpoint in one protocol; None: in that of the client."""

        async def endpoint(http: "HttpRequest") -> "ASGIApp":
            wire = only or (MESSAGES if "anthropic-version" in http.headers else CHAT)
            lease = self._find_lease(http)
            if lease is None:
                return await self._refuse_key(wire)
            try:
                with lease.request(), collect_left_out() as names:
                    await lease.recall()
                    try:
                        return await answer(wire, lease, http)
                    finally:
                        self._note_left_out(lease, names)
            except (BadRequest, RequestRefused) as refusal:
                return await self._refuse(wire, lease, refusal)
            except (Infrastructure, ArchiveCorrupt):
                return refusal_response(wire, 503, *AWAY)
            except JobEnded:
                return refusal_response(wire, 401, "invalid_api_key", "the job of this key has ended")
            except Exception as error:
                # A fault of dgm's own says nothing about the agent, whose job fails by it.
                log.exception("action %d: the gateway failed at a request", lease.action)
                fault = f"the gateway failed at a request: {type(error).__name__}: {error}"
                lease.fail(Infrastructure(fault))
                return refusal_response(wire, 503, *AWAY)

        return endpoint

    def _find_lease(self, http: "HttpRequest") -> Lease | None:
        lease = self._leases.get(token_of(http))
        if lease is not None:
            lease.reached = True
        return lease

    async def _refuse_key(self, wire: Wire) -> "Response":
        await self._strangers.slow_down()
        message = "no such key: it was never given out, or its job has ended"
        return refusal_response(wire, 401, "invalid_api_key", message)

    async def _refuse(self, wire: Wire, lease: Lease, refusal: BadRequest | RequestRefused) -> "Response":
        """Hand on a refusal: a provider's unchanged where the agent speaks its protocol."""
        from starlette.responses import Response

        self._note(lease, refusal)
        if lease.refusals > lease.limits.refusals:
            await lease.pace.slow_down()
        if isinstance(refusal, BadRequest):
            return refusal_response(wire, refusal.status, refusal.code, str(refusal))
        if refusal.content and lease.passes(wire.protocol):
            return Response(refusal.content, refusal.status, FINAL, JSON)
        return refusal_response(wire, 400, refusal.code, str(refusal))

    def _note(self, lease: Lease, refusal: BadRequest | RequestRefused) -> None:
        lease.refuse(refusal.code, str(refusal), own=refusal.own)
        if isinstance(refusal, BadRequest) and refusal.kind:
            lease.blame(refusal.kind, str(refusal))
        if lease.role != DRY_RUN and lease.refusals <= lease.limits.refusals:
            self._journal.refuse(lease.action, lease.role, refusal.status, refusal.code, str(refusal))

    def _note_left_out(self, lease: Lease, names: Iterable[str]) -> None:
        new = [name for name in names if name not in lease.left_out]
        lease.left_out.update(dict.fromkeys(new))
        if new and lease.role != DRY_RUN and len(lease.left_out) <= MOST_LEFT_OUT:
            self._journal.refuse(lease.action, lease.role, 200, LEFT_OUT, ", ".join(new))

    # Other endpoints

    async def _count(self, wire: Wire, lease: Lease, http: "HttpRequest") -> "Response":
        from starlette.responses import JSONResponse

        raw = await lease.pace.read(http, lease.limits.body_bytes)
        async with lease.pace.handle():
            estimate = self._answering.count_input(wire, lease, raw)
        return JSONResponse({"input_tokens": estimate}, headers={"x-dgm-estimated": "true"})

    async def _greet(self, _http: "HttpRequest") -> "Response":
        """Answer the look of a client, without a key, whether anything is here."""
        from starlette.responses import Response

        await self._strangers.slow_down()
        return Response()

    async def _clock(self, http: "HttpRequest") -> "Response":
        """Tell the launcher how much time the agent lost by waiting for its model's provider."""
        from starlette.responses import JSONResponse

        lease = self._find_lease(http)
        if lease is None:
            return await self._refuse_key(CHAT)
        return JSONResponse({"lost_s": min(lease.lost_s, MOST_LOST_S)})

    async def _note_sockets(self, _wire: Wire, lease: Lease, http: "HttpRequest") -> "Response":
        """Take the launcher's list of sockets that the agent left open."""
        from starlette.responses import Response

        addresses = (await lease.pace.read(http, SOCKETS_BYTES)).decode("ascii", "replace").split()
        if addresses:
            lease.blame(FindingKind.SOCKET, f"left listening: {', '.join(addresses)}")
        return Response()

    async def _list_models(self, _wire: Wire, lease: Lease, _http: "HttpRequest") -> "Response":
        from starlette.responses import Response

        await lease.pace.slow_down()
        return Response(dump_json(list_models(lease.names.listed)), media_type=JSON)

    async def _describe_model(self, _wire: Wire, lease: Lease, http: "HttpRequest") -> "Response":
        from starlette.responses import Response

        name = http.path_params["name"]
        self._answering.check_model(name, lease)
        await lease.pace.slow_down()
        return Response(dump_json(describe_model(name)), media_type=JSON)

    async def _refuse_path(self, _wire: Wire, _lease: Lease, http: "HttpRequest") -> "Response":
        offered = ", ".join(f"/v1{wire.path}" for wire in SPOKEN)
        place = f"{http.method} {http.url.path[:80]}"
        message = f"{place} is not offered here; there are {offered}"
        if http.url.path.startswith("/v1beta/"):
            message = f"Google's protocol is not offered ({place}); there are {offered}. {INSTEAD_OF_GEMINI}"
        raise BadRequest(message, "unknown_endpoint", 404)


def token_of(http: "HttpRequest") -> str:
    """Return the key that a client sends, in any provider's header; empty if it sends none."""
    scheme, _, token = http.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return next((http.headers[name] for name in KEY_HEADERS if http.headers.get(name)), "")


def places_of(wire: Wire) -> Sequence[str]:
    """Return the paths at which clients of a protocol ask: the provider's own, and those of OpenAI's on Azure.

    What the path calls a deployment is not looked at: the model is the one in the body.
    """
    own = "/v1" + wire.path
    if wire is CHAT:
        return own, "/openai" + own, "/openai/deployments/{deployment}" + wire.path
    return (own, "/openai" + own, "/openai" + wire.path) if wire is RESPONSES else (own,)


def refusal_response(wire: Wire, status: int, code: str, message: str) -> "Response":
    """Return an error response in the words of the protocol."""
    from starlette.responses import Response

    return Response(wire.render_error(status, code, message), status, FINAL, JSON)
