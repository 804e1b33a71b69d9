"""The calls of a run's leases: paid replies are served, calls in flight are joined, and the rest is bought.

The cost of a call is journaled before the agent sees its end, and a journaled call is never bought again.
"""

import asyncio
import logging
import time
from dataclasses import replace

from dgm.domain import ActionId, Usage
from dgm.errors import (
    ArchiveHeld,
    BudgetExhausted,
    Infrastructure,
    PluginFault,
    ProviderRefuses,
    ProviderWaits,
)
from dgm.gateway import blame
from dgm.gateway.allowed import BadRequest
from dgm.gateway.calls import JobEnded, ProviderCall
from dgm.gateway.calls_under_way import CallsUnderWay, hear
from dgm.gateway.cut_calls import book_unanswered, settle_cut_calls
from dgm.gateway.lease import Lease
from dgm.gateway.ledger import AnyRequest, Ledger, WorstCase, output_limit
from dgm.gateway.open_calls import OpenCalls
from dgm.messages import (
    CUT_SHORT,
    LEFT_OPEN,
    BegunCall,
    CallKey,
    Exchange,
    PaidCall,
    Reply,
    Request,
    RequestRefused,
    Stop,
    WireReply,
    WireRequest,
)
from dgm.models.builtin import RecordedModel
from dgm.plugins import check_answer
from dgm.protocols import Journal, Model, WireModel

log = logging.getLogger(__name__)

DRY_RUN = "dry-run"
"""The role of rehearsals: calls cost nothing and are not journaled, so no number clashes with a paid one."""
AnyReply = Reply | WireReply


class ModelCaller:
    """The client that asks the models of a run for its leases.

    Attributes:
        trouble: map of model to its last failure; without models that have answered since.
        answered: models that have answered in this session.
        open_calls: the calls that are not answered yet.
    """

    def __init__(self, journal: Journal, ledger: Ledger) -> None:
        self.trouble: dict[str, Infrastructure] = {}
        self.answered: set[str] = set()
        self.open_calls = OpenCalls()
        self._journal = journal
        self._ledger = ledger
        self._numbers: dict[ActionId, int] = {}
        self._under_way = CallsUnderWay()
        self._leases: dict[ActionId, list[Lease]] = {}

    @property
    def refused(self) -> str:
        """The reason why a provider accepts no request from us, in a line for people; empty while all accept."""
        return next((str(one) for one in self.trouble.values() if isinstance(one, ProviderRefuses)), "")

    @property
    def waits(self) -> ProviderWaits | None:
        """The last long wait that a provider asked for, over or not; None if there was none."""
        return next((one for one in self.trouble.values() if isinstance(one, ProviderWaits)), None)

    def enter(self, lease: Lease, last: int) -> None:
        """Register a lease; ``last`` is the highest number of its action's calls that are in the journal."""
        self._numbers[lease.action] = max(self._numbers.get(lease.action, 0), last)
        self._leases.setdefault(lease.action, []).append(lease)

    def leave(self, lease: Lease) -> None:
        """Forget a lease."""
        others = self._leases.get(lease.action, [])
        others.remove(lease)
        if not others:
            del self._leases[lease.action]

    def call(self, lease: Lease, request: WireRequest) -> ProviderCall:
        """Return the call that answers a raw request: one under way not heard by its performance, or a new one."""
        call = self._under_way.find(lease, request)
        if call is not None:
            log.info("action %d: joins %s, which is under way", lease.action, call.key)
            return call
        return ProviderCall(request, lambda begun: self._begin(lease, begun))

    async def answer(
        self, lease: Lease, ordinal: int, request: AnyRequest, call: ProviderCall | None = None
    ) -> tuple[CallKey, AnyReply]:
        """Return the answer to one call and its key, accounted, when its turn has come.

        Args:
            lease: the lease of the call.
            ordinal: the number of the call in the lease.
            request: the request.
            call: of a raw request, from ``call``.

        Raises:
            RequestRefused, BadRequest: the agent gets this as an error.
            Infrastructure: the model failed, or the budget has no room; the lease has failed.
        """
        joined = call is not None and call.key is not None
        try:
            async with lease.turns:
                lease.check()
                if call is not None and not joined:
                    call.enter()
                    self.open_calls.track(call)
                with lease.tie_task(call):
                    key, reply = await self._answered(lease, ordinal, request, call, joined=joined)
                lease.heard.add(key.number)
                log.debug(
                    "action %d, performance %d: has call %d", lease.action, lease.performance, key.number
                )
                blame.raise_refusal(reply)
                lease.account(request, reply)
        except BaseException as error:
            if call is not None and not joined:
                call.end(error)
            raise
        if call is not None and isinstance(reply, WireReply):
            call.end(reply)
        return key, reply

    async def _answered(
        self, lease: Lease, ordinal: int, request: AnyRequest, call: ProviderCall | None, *, joined: bool
    ) -> tuple[CallKey, AnyReply]:
        try:
            if joined and call is not None and call.key is not None:
                return call.key, await hear(lease, call)
            return await self._tried(lease, ordinal, request, call)
        except JobEnded:
            raise
        except (RequestRefused, BadRequest) as refusal:
            log.info("action %d, call %d: refused: %s", lease.action, ordinal, refusal)
            raise
        except (Infrastructure, BudgetExhausted) as error:
            # An action that the run's budget cuts short is not graded: it continues when there is budget again.
            failure = Infrastructure(str(error))
            failure.__cause__ = error
        except Exception as error:
            # A fault of a model or of the journal must never be scored as the agent's.
            failure = blame.as_infrastructure(error)
            if not isinstance(failure.__cause__, PluginFault):
                log.exception("action %d, call %d failed", lease.action, ordinal)
        failure = Infrastructure(f"action {lease.action}, call {ordinal}: {failure}")
        lease.fail(failure)
        raise failure

    async def _tried(
        self, lease: Lease, ordinal: int, request: AnyRequest, call: ProviderCall | None
    ) -> tuple[CallKey, AnyReply]:
        """Return the answer, or the refusal of a request that fails again and again while its model answers others."""
        if lease.role == DRY_RUN or isinstance(lease.model, RecordedModel):
            # A recording has no reply to what was not asked then, which says nothing about the request.
            return await self._paid(lease, ordinal, request, call)
        for _ in range(blame.TRIES):
            try:
                return await self._paid(lease, ordinal, request, call)
            except (JobEnded, RequestRefused, BadRequest, BudgetExhausted, ArchiveHeld):
                raise
            except Exception as error:
                if (call is not None and call.abandoned) or not await self.answers(lease):
                    self._note_trouble(lease.model.name, error)
                    raise
                failure = error if isinstance(error, Infrastructure) else blame.as_infrastructure(error)
                log.warning(
                    "action %d, call %d: only its own request fails: %s", lease.action, ordinal, failure
                )
            if call is not None:
                call.start_again()
        refusal = blame.refuse_failed(failure, lease.protocol)
        return await self._record_refusal(lease, request, refusal)

    async def answers(self, lease: Lease) -> bool:
        """Ask a lease's model the neutral question, which is paid and journaled; return whether it answers now.

        An answer to a question that was asked after this one waited counts for this one too.
        """
        if lease.role == DRY_RUN:
            return True
        began = time.monotonic()
        async with lease.asking:
            if lease.asked_at < began:
                lease.asked_at = time.monotonic()
                recorded = isinstance(lease.model, RecordedModel)
                lease.model_answers = (
                    lease.memory.has_answer(blame.QUESTION) if recorded else await self._ask_neutrally(lease)
                )
            return lease.model_answers

    async def _ask_neutrally(self, lease: Lease) -> bool:
        name = lease.model.name
        output = self._ledger.price(name).reply_limit(lease.limits.output_tokens)
        request = blame.neutral_request(lease.model, output)
        most = self._ledger.most(name, request, None)
        try:
            async with asyncio.timeout(blame.QUESTION_S), self._ledger.hold(name, request, None) as allowed:
                reply: AnyReply
                if isinstance(allowed, WireRequest):
                    call = blame.NeutralCall(allowed, lambda begun: self._begin(lease, begun))
                    call.begin_listening(lease.performance)
                    _, reply = await self._ask_provider(lease, call, most, cut=False)
                else:
                    _, reply = await self._ask_model(lease, allowed, None, cut=False)
        except Exception as error:  # noqa: BLE001  (whatever befalls it is no fault of an agent's)
            log.warning("%s does not answer a neutral question: %r", name, error)
            self._note_trouble(name, error)
            return False
        return not reply.error

    async def refuse_open_calls(self, lease: Lease, words: str) -> None:
        """Record a lease's open calls as refused for good; their answers are still awaited and paid."""
        for call in lease.open_calls():
            refusal = blame.make_refusal(LEFT_OPEN, words, lease.protocol)
            await self._record_refusal(lease, call.request, refusal)
            lease.refuse(refusal.code, words)

    async def _record_refusal(
        self, lease: Lease, request: AnyRequest, refusal: RequestRefused
    ) -> tuple[CallKey, AnyReply]:
        """Record a request as refused for good, so that a repetition of the action hears the same."""
        key = self._next_key(lease)
        reply: AnyReply
        if isinstance(request, WireRequest):
            reply = blame.reply_of_refusal(request, refusal)
        else:
            reply = Reply(str(refusal), error=refusal.code, usage=Usage(calls=1))
        await self._journal.record(PaidCall(key, lease.model.name, lease.role, request, reply, 0.0))
        return key, reply

    async def _paid(
        self, lease: Lease, ordinal: int, request: AnyRequest, call: ProviderCall | None
    ) -> tuple[CallKey, AnyReply]:
        if lease.role == DRY_RUN:
            assert isinstance(request, Request)
            return CallKey(lease.action, ordinal), await _own_form_model(lease).reply(request)
        recorded = lease.memory.take(request, ordinal)
        if recorded is not None:
            return CallKey(lease.action, recorded.number), recorded.reply
        difference = lease.memory.difference(request, ordinal)
        if difference:
            log.warning("action %d, call %d is not the recorded one: %s", lease.action, ordinal, difference)
        name = lease.model.name
        most = self._ledger.most(name, request, lease.measured)
        with lease.hold(most):
            async with self._ledger.hold(name, request, lease.measured) as allowed:
                cut = allowed is not request
                other = self._under_way.find_answer(lease, ordinal, request)
                if other is None:
                    if isinstance(allowed, WireRequest) and call is not None and lease.wire_model is not None:
                        call.request, call.quiet = allowed, cut
                        return await self._ask_provider(lease, call, most, cut=cut)
                    return await self._ask_model(lease, allowed, difference, cut=cut)
        # Without a reservation, which the call that is waited for may need.
        return await other

    async def _ask_model(
        self, lease: Lease, request: AnyRequest, difference: str | None, *, cut: bool
    ) -> tuple[CallKey, Reply]:
        """Ask a model in dgm's own form."""
        asked = request if isinstance(request, Request) else Request(())
        with lease.paying(), self.open_calls.asking(), self._under_way.hold_own(lease, asked) as call:
            began = time.monotonic()
            try:
                said = await _own_form_model(lease).reply(asked)
                check_answer(said, Reply, f"model '{lease.model.name}': reply")
            except RequestRefused as refusal:
                # Kept as a reply: a retry of this action must receive the same.
                said = Reply(str(refusal), error=refusal.code, usage=Usage(calls=1))
            except Infrastructure as error:
                if not difference:
                    raise
                raise Infrastructure(f"{error} ({difference})") from error
            self._went_well(lease)
            usage = self._ledger.priced(lease.model.name, said.usage)
            reply = replace(said, usage=usage)
            if cut and reply.stop is Stop.LENGTH:
                reply = replace(reply, error=CUT_SHORT)
            key = self._next_key(lease)
            seconds = time.monotonic() - began
            await self._journal.record(PaidCall(key, lease.model.name, lease.role, asked, reply, seconds))
            self._check_cut(reply, asked)
            call.outcome.set_result((key, reply))
            for other in self._leases.get(lease.action, ()):
                if other.performance not in call.hearers:
                    other.memory.add_late(Exchange(key.number, asked, reply))
        return key, reply

    async def _ask_provider(
        self, lease: Lease, call: ProviderCall, most: WorstCase, *, cut: bool
    ) -> tuple[CallKey, WireReply]:
        """Ask a provider in its own protocol; others can join the call until it has ended."""
        key = call.key = self._next_key(lease)
        call.most = self._ledger.worst(lease.model.name, most)
        try:
            with self._under_way.hold(lease.action, call):
                reply = await self._send_to_provider(lease, call, most, cut=cut)
        except BaseException:
            book_unanswered(self._journal, self._ledger, lease, call)
            raise
        self._check_cut(reply, call.request)
        if not reply.error:
            call.end(reply)
        for other in self._leases.get(lease.action, ()):
            # The call's own agent may hang up before the end, and repeat the request.
            if not call.is_heard_by(other.performance) and key.number not in other.heard:
                other.memory.add_late(Exchange(key.number, call.request, reply))
        return key, reply

    async def _send_to_provider(
        self, lease: Lease, call: ProviderCall, most: WorstCase, *, cut: bool
    ) -> WireReply:
        assert lease.wire_model is not None
        assert call.key is not None
        name, began = lease.model.name, time.monotonic()
        try:
            with lease.tie_task(call):
                reply = await lease.wire_model.send(call.request, call)
        except RequestRefused as refusal:
            call.paying = False
            self._went_well(lease)
            if not refusal.kept:
                raise
            reply = blame.reply_of_refusal(call.request, refusal)
        except Infrastructure:
            call.paying = False
            raise
        self._went_well(lease)
        wasted = replace(call.wasted, calls=0)
        reply = replace(reply, usage=self._ledger.priced(name, reply.usage + wasted))
        if cut and reply.stop is Stop.LENGTH:
            reply = replace(reply, error=CUT_SHORT)
        seconds = time.monotonic() - began
        paid = PaidCall(call.key, name, lease.role, call.request, reply, seconds)
        settled = settle_cut_calls(self._journal, self._ledger, lease, call, most, reply)
        await self._journal.record(paid, settled)
        return reply

    async def _begin(self, lease: Lease, call: ProviderCall) -> None:
        assert call.key is not None
        begun = BegunCall(call.key, lease.model.name, lease.role, call.request, call.most)
        try:
            await self._journal.begin(begun)
        except asyncio.CancelledError:
            # The call is durable all the same, and needs an end in the log.
            call.begun = True
            raise
        call.begun = True

    def _note_trouble(self, model: str, error: Exception) -> None:
        """Keep a model's last failure; one that says until when, or that a person must act, is kept over others."""
        known = self.trouble.get(model)
        if not isinstance(error, Infrastructure):
            return
        if isinstance(error, ProviderRefuses | ProviderWaits) or not isinstance(
            known, ProviderRefuses | ProviderWaits
        ):
            self.trouble[model] = error

    def _went_well(self, lease: Lease) -> None:
        self.trouble.pop(lease.model.name, None)
        self.answered.add(lease.model.name)

    def _next_key(self, lease: Lease) -> CallKey:
        self._numbers[lease.action] += 1
        return CallKey(lease.action, self._numbers[lease.action])

    def _check_cut(self, reply: AnyReply, request: AnyRequest) -> None:
        if reply.error == CUT_SHORT:
            raise self._ledger.mark_exhausted(
                f"a reply of {output_limit(request)} tokens was all that the rest allows"
            )


def _own_form_model(lease: Lease) -> Model:
    """Return the lease's model, which answers in dgm's own form."""
    assert not isinstance(lease.model, WireModel)
    return lease.model
