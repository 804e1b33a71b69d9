"""One model call: reserved, recorded as begun, sent, forwarded, priced, recorded, and only then handed on to its end.

An agent may hang up and repeat its request, and an action may be retried while its call is still at the provider: an
equal request takes over a call that nobody listens to any more. A call is never cancelled while it may be billed, and a
recorded call is never bought again.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dgm.archive.live import LiveCalls
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
from dgm.gateway.lease import DRY_RUN, JobEnded, Lease
from dgm.gateway.ledger import AnyRequest, Ledger, WorstCase
from dgm.messages import (
    LEFT_OPEN,
    BegunCall,
    CallKey,
    CutCall,
    Exchange,
    PaidCall,
    Reply,
    Request,
    RequestRefused,
    WireReply,
    WireRequest,
)
from dgm.models.builtin import RecordedModel
from dgm.plugins import check_answer
from dgm.protocols import Journal, WireModel

log = logging.getLogger(__name__)

AnyReply = Reply | WireReply


class AnswerCut(Exception):
    """The error of a stream that broke: the bytes handed on so far are no longer a prefix of the answer."""


@dataclass(eq=False, slots=True)
class Listener:
    """A request of an agent that waits for the answer to a call."""

    lease: Lease
    read: int = 0
    """Bytes of the current try that it has received."""
    cut: bool = False
    """Whether it has received bytes of a try that broke: only a repeated request can receive the answer."""

    @property
    def waits(self) -> bool:
        """Whether it can still use the answer."""
        return not self.cut and not self.lease.has_ended


class Call:
    """A call, and the part of its answer that has arrived; implements ``dgm.protocols.Delivery``.

    Attributes:
        lease: pays for it.
        ordinal: its number in that lease.
        once: whether only one try is made.
        key: set when the call is bought or found in the journal.
        most: its worst case, set with the key.
        begun: whether its beginning is in the journal, so that it needs an end there.
        paying: whether it may be billed now.
        wasted: estimated usage billed for broken tries.
        reply: the recorded answer or refusal.
        outcome: the reply, or the reason why there is none.
        task: makes the call.
        leases: the jobs that need the answer and have not ended.
        waits_since: Unix time since which it waits for its turn or its next try; None while it does not.
    """

    task: "asyncio.Task[AnyReply]"

    def __init__(
        self, journal: Journal, lease: Lease, ordinal: int, request: AnyRequest, *, once: bool = False
    ) -> None:
        self.lease = lease
        self.ordinal = ordinal
        self.request = request
        self.once = once
        self.key: CallKey | None = None
        self.most = Usage()
        self.begun = False
        self.paying = False
        self.wasted = Usage()
        self.reply: AnyReply | None = None
        self.outcome: asyncio.Future[AnyReply] = asyncio.get_running_loop().create_future()
        self.outcome.add_done_callback(_retrieve_error)
        self.leases = {lease}
        self.waits_since: float | None = None
        self._journal = journal
        self._listeners: list[Listener] = []
        self._came = bytearray()
        self._news = asyncio.Event()
        self._entered: float | None = None
        self._sent: float | None = None

    # Who needs the answer, and who waits for it

    def leave(self, lease: Lease) -> None:
        """Note that a job has ended; cancel the call if nobody needs it and it costs nothing yet."""
        self.leases.discard(lease)
        if self.abandoned and not self.paying:
            self.task.cancel()

    @property
    def abandoned(self) -> bool:
        """Whether all jobs that needed the answer have ended."""
        return not self.leases

    @property
    def is_counted(self) -> bool:
        """Whether the call's turn within its own job has come."""
        return self._entered is not None and self.lease.role != DRY_RUN

    @property
    def is_heard(self) -> bool:
        """Whether a request waits for the answer that can still use it."""
        return any(listener.waits for listener in self._listeners)

    @contextmanager
    def listening(self, lease: Lease) -> Iterator[Listener]:
        """Count a request of a job that waits for the answer while the context lasts."""
        listener = Listener(lease)
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)

    def lost(self, since: float, now: float) -> tuple[float, float]:
        """Return the span (monotonic seconds, from and to) that a listener since ``since`` lost by waiting."""
        if self._entered is None:
            return now, now
        start = max(since, self._entered)
        end = now if self._sent is None else self._sent
        if self.outcome.done() and self._sent is None:
            end = start
        return start, max(start, end)

    async def begins(self) -> None:
        """Wait until the first bytes of the answer or its end arrive; raise the error with which the call failed."""
        while not self._came and not self.outcome.done():
            await self._news.wait()
        if not self._came:
            self.outcome.result()

    async def listen(self, listener: Listener) -> AsyncIterator[bytes]:
        """Yield the answer's bytes as they arrive; the last bytes follow once the answer is recorded.

        Raises:
            AnswerCut: the answer broke in the middle; a repeated request receives the next try.
        """
        while not listener.cut and not self.outcome.done():
            if listener.read < len(self._came):
                news = bytes(self._came[listener.read :])
                listener.read += len(news)
                yield news
            else:
                await self._news.wait()
        if listener.cut or self.outcome.exception() is not None:
            raise AnswerCut
        reply = self.outcome.result()
        assert isinstance(reply, WireReply)
        if rest := reply.content[listener.read :]:
            yield rest

    # Its own steps

    def enter(self) -> None:
        """Note that the call's turn within its own job has come; from here on it waits for other jobs."""
        self._entered, self.waits_since = time.monotonic(), time.time()

    def start_again(self) -> None:
        """Prepare to send the request once more after all tries failed; the bytes handed on so far are void."""
        self.take_back(Usage())
        self.wasted, self.begun, self.paying, self._sent = Usage(), False, False, None
        self.waits_since = time.time()

    def finish(self, task: "asyncio.Task[AnyReply]") -> None:
        """Give the answer, or the reason for its absence, to all listeners."""
        self.paying = False
        if task.cancelled():
            self.outcome.set_exception(JobEnded())
        elif error := task.exception():
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())
        self._wake()

    # Callbacks of the model

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Implement ``Delivery.waiting``.

        Raises:
            JobEnded: nobody needs the answer any more, so the call gives its place back.
            Infrastructure: only one try was to be made.
        """
        if self.once and self.begun:
            raise Infrastructure("the neutral question failed")
        if self._sent is not None:
            self.waits_since = time.time()
        self._sent, self.paying = None, False
        self._check_needed()
        yield

    async def begin(self) -> None:
        """Implement ``Delivery.begin``; raise ``JobEnded`` if nobody needs the answer any more."""
        self._check_needed()
        if self.begun or self.key is None or not isinstance(self.request, WireRequest):
            return
        try:
            await self._journal.begin(
                BegunCall(self.key, self.lease.model.name, self.lease.role, self.request, self.most)
            )
        except asyncio.CancelledError:
            # It is durable all the same, and needs an end in the log.
            self.begun = True
            raise
        self.begun = True

    def sending(self) -> None:
        """Implement ``Delivery.sending``; raise ``JobEnded`` if nobody needs the answer any more."""
        self._check_needed()
        self._sent, self.paying, self.waits_since = time.monotonic(), True, None

    def pass_on(self, data: bytes) -> None:
        """Implement ``Delivery.pass_on``."""
        self._came += data
        self._wake()

    def take_back(self, wasted: Usage) -> None:
        """Implement ``Delivery.take_back``."""
        self.wasted += wasted
        if self._came:
            self._came = bytearray()
            for listener in self._listeners:
                listener.cut = listener.cut or listener.read > 0
            self._wake()

    def _check_needed(self) -> None:
        if self.abandoned:
            raise JobEnded

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class ModelCaller:
    """The client that makes the calls of a run's leases.

    Attributes:
        trouble: map of model to its last failure; without models that have answered since.
        answered: models that have answered in this session.
    """

    def __init__(self, journal: Journal, ledger: Ledger) -> None:
        self.trouble: dict[str, Infrastructure] = {}
        self.answered: set[str] = set()
        self._journal = journal
        self._ledger = ledger
        self._numbers: dict[ActionId, int] = {}
        self._calls: dict[ActionId, list[Call]] = {}
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
        others = self._leases[lease.action]
        others.remove(lease)
        if not others:
            del self._leases[lease.action]

    def count_live(self) -> LiveCalls:
        """Return the calls of this moment, for people who watch the run."""
        calls = [call for calls in self._calls.values() for call in calls if call.is_counted]
        waits = [call.waits_since for call in calls if call.waits_since is not None]
        return LiveCalls(len(calls) - len(waits), len(waits), min(waits, default=None))

    def open(self, lease: Lease, request: AnyRequest) -> Call:
        """Return the call that answers a request: an equal one that nobody listens to any more, or a new one.

        Listen to it before anything is awaited.

        Raises:
            BadRequest: the job's calls or tokens are used up.
            JobEnded: the job has ended.
        """
        ordinal = lease.admit()
        call = self._find_unheard(lease, request)
        if call is None:
            call = Call(self._journal, lease, ordinal, request)
            self._calls.setdefault(lease.action, []).append(call)
            call.task = asyncio.create_task(self._perform(call), name=f"call {lease.action}.{ordinal}")
            call.task.add_done_callback(lambda _: self._finish(call))
        else:
            log.info("action %d: takes over %s, which is under way", lease.action, call.key)
        lease.join(call)
        return call

    def _find_unheard(self, lease: Lease, request: AnyRequest) -> Call | None:
        same = [
            call
            for call in self._calls.get(lease.action, ())
            if not call.is_heard
            and (lease in call.leases or call.paying)
            and DRY_RUN not in (lease.role, call.lease.role)
            and lease.memory.are_same(call.request, request)
        ]
        return next((call for call in same if call.request == request), same[0] if same else None)

    def _finish(self, call: Call) -> None:
        action = call.lease.action
        self._calls[action].remove(call)
        if not self._calls[action]:
            del self._calls[action]
        if call.reply is not None and call.key is not None and not call.is_heard:
            # Its agent has hung up, or its answer was cut, and it may repeat the request.
            for lease in self._leases.get(action, ()):
                lease.memory.add_late(Exchange(call.key.number, call.request, call.reply))
        call.finish(call.task)

    async def _perform(self, call: Call) -> AnyReply:
        """Return a call's answer, accounted, when its turn has come.

        Raises:
            RequestRefused, BadRequest: the agent gets this as an error.
            Infrastructure: the model failed, or the budget has no room; all leases that need the answer have failed.
        """
        async with call.lease.turns:
            call.lease.check()
            call.enter()
            try:
                call.reply = reply = await self._answer(call)
            except JobEnded:
                raise
            except (RequestRefused, BadRequest) as refusal:
                log.info("action %d, call %d: refused: %s", call.lease.action, call.ordinal, refusal)
                raise
            except Exception as error:
                failure = _as_failure(call, error)
                for lease in call.leases:
                    lease.fail(failure)
                raise failure from error
            assert call.key is not None
            for lease in call.leases:
                lease.hear(call.key.number, call.request, reply)
            blame.raise_refusal(reply)
            return reply

    async def _answer(self, call: Call) -> AnyReply:
        """Return a recorded answer, or pay for one."""
        lease, request = call.lease, call.request
        if lease.role == DRY_RUN:
            assert isinstance(request, Request)
            assert not isinstance(lease.model, WireModel)
            call.key = CallKey(lease.action, call.ordinal)
            return await lease.model.reply(request)
        recorded = lease.memory.take(request, call.ordinal)
        if recorded is not None:
            call.key = CallKey(lease.action, recorded.number)
            return recorded.reply
        difference = lease.memory.difference(request, call.ordinal)
        if difference:
            log.warning(
                "action %d, call %d is not the recorded one: %s", lease.action, call.ordinal, difference
            )
        if isinstance(lease.model, RecordedModel):
            # A recording has no reply to what was not asked then, which says nothing about the request.
            try:
                return await lease.model.reply(request if isinstance(request, Request) else Request(()))
            except Infrastructure as error:
                why = f"{error} ({difference})" if difference else str(error)
                lease.model.note_unanswered(lease.action, call.ordinal, why)
                raise Infrastructure(why) from error
        return await self._pay_or_refuse(call)

    async def _pay_or_refuse(self, call: Call) -> AnyReply:
        """Return the answer, or the refusal of a request that fails again and again while its model answers others."""
        lease = call.lease
        for _ in range(blame.TRIES):
            try:
                return await self._pay(call)
            except (JobEnded, RequestRefused, BadRequest, BudgetExhausted, ArchiveHeld):
                raise
            except Exception as error:
                if call.abandoned or not await self._answers_beside(call):
                    self._note_trouble(lease.model.name, error)
                    raise
                failure = error if isinstance(error, Infrastructure) else blame.as_infrastructure(error)
                log.warning("action %d, call %d: only it fails: %s", lease.action, call.ordinal, failure)
            call.start_again()
        refusal = blame.refuse_failed(failure, call.request)
        call.key, reply = await self._record_refusal(lease, call.request, refusal)
        return reply

    async def _answers_beside(self, call: Call) -> bool:
        call.paying = True  # The neutral question may be billed.
        try:
            return await self.answers(call.lease)
        finally:
            call.paying = False

    async def _pay(self, call: Call) -> AnyReply:
        """Reserve the worst case, ask the model, and return the answer when its price is recorded."""
        lease, name = call.lease, call.lease.model.name
        most = self._ledger.most(name, call.request, lease.measured)
        with lease.hold(most):
            async with self._ledger.hold(name, most):
                call.key, call.most = self._next_key(lease), self._ledger.worst(name, most)
                began = time.monotonic()
                try:
                    reply = await self._send(call)
                    usage = reply.usage + replace(call.wasted, calls=0)
                    reply = replace(reply, usage=self._ledger.priced(name, usage))
                    seconds = time.monotonic() - began
                    paid = PaidCall(call.key, name, lease.role, call.request, reply, seconds)
                    await self._journal.record(paid, self._settle_cut_calls(call, most, reply))
                except BaseException:
                    self._book_unanswered(call)
                    raise
        return reply

    async def _send(self, call: Call) -> AnyReply:
        """Return the model's answer, or its refusal if a repetition must hear the same."""
        model, request = call.lease.model, call.request
        reply: AnyReply
        try:
            if isinstance(model, WireModel):
                assert isinstance(request, WireRequest)
                reply = await model.send(request, call)
            else:
                assert isinstance(request, Request)
                call.sending()
                reply = await model.reply(request)
                check_answer(reply, Reply, f"model '{model.name}': reply")
        except RequestRefused as refusal:
            call.paying = False
            self._note_answer(model.name)
            if isinstance(request, WireRequest) and not refusal.kept:
                raise
            return blame.reply_of_refusal(request, refusal)
        except Infrastructure:
            call.paying = False
            raise
        self._note_answer(model.name)
        return reply

    # Calls without an answer

    def _book_unanswered(self, call: Call) -> None:
        """Count a call without a recorded answer: at the waste of its tries, or at its worst case if it is cut off.

        A call is cut off if it was at the provider, or answered by it, and no error of the model has ended it.
        """
        key, name, role = call.key, call.lease.model.name, call.lease.role
        if not call.begun or key is None or not isinstance(call.request, WireRequest):
            return
        if not call.paying:
            usage = self._ledger.priced(name, call.wasted)
            self._journal.book(key.action, key.number, name, role, usage)
            return
        try:
            self._journal.lose(BegunCall(key, name, role, call.request, call.most))
        except Infrastructure as error:
            # The call stays open in the log, and the next session counts it.
            log.warning("%s is not counted yet: %s", key, error)

    def _settle_cut_calls(self, call: Call, most: WorstCase, reply: AnyReply) -> Sequence[CutCall]:
        """Return the revised usage of cut-off calls with the same request.

        Their input is known now; their output may have reached the limit of the request. A refusal tells nothing.
        """
        if reply.error and not reply.usage.tokens:
            return ()
        lease = call.lease
        known = self._ledger.worst(lease.model.name, most, reply.usage.input_tokens)
        return [
            replace(cut, booked=known - cut.booked)
            for cut in self._journal.cut_calls(lease.action)
            if lease.memory.are_same(cut.request, call.request)
        ]

    async def refuse_open_calls(self, lease: Lease, words: str) -> None:
        """Record a lease's open calls as refused for good; their answers are still awaited and paid."""
        for call in lease.billed_calls():
            if isinstance(call.request, WireRequest):
                refusal = blame.make_refusal(LEFT_OPEN, words, call.request)
                await self._record_refusal(lease, call.request, refusal)
                lease.refuse(refusal.code, words)

    async def _record_refusal(
        self, lease: Lease, request: AnyRequest, refusal: RequestRefused
    ) -> tuple[CallKey, AnyReply]:
        """Record a request as refused for good, so that a repetition of the action hears the same."""
        key, reply = self._next_key(lease), blame.reply_of_refusal(request, refusal)
        await self._journal.record(PaidCall(key, lease.model.name, lease.role, request, reply, 0.0))
        return key, reply

    # The neutral question

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
                await lease.recall()
                lease.model_answers = (
                    lease.memory.has_answer(blame.QUESTION) if recorded else await self._ask_neutrally(lease)
                )
            return lease.model_answers

    async def _ask_neutrally(self, lease: Lease) -> bool:
        name = lease.model.name
        output = self._ledger.price(name).reply_limit(lease.limits.output_tokens)
        question = blame.neutral_request(lease.model, output)
        try:
            async with asyncio.timeout(blame.QUESTION_S):
                reply = await self._pay(Call(self._journal, lease, 0, question, once=True))
        except Exception as error:  # noqa: BLE001  (whatever befalls it is no fault of an agent's)
            log.warning("%s does not answer a neutral question: %r", name, error)
            self._note_trouble(name, error)
            return False
        return not reply.error

    def _note_trouble(self, model: str, error: Exception) -> None:
        """Keep a model's last failure; one that says until when, or that a person must act, is kept over others."""
        weighty = (ProviderRefuses, ProviderWaits)
        if isinstance(error, weighty) or (
            isinstance(error, Infrastructure) and not isinstance(self.trouble.get(model), weighty)
        ):
            self.trouble[model] = error

    def _note_answer(self, model: str) -> None:
        self.trouble.pop(model, None)
        self.answered.add(model)

    def _next_key(self, lease: Lease) -> CallKey:
        self._numbers[lease.action] += 1
        return CallKey(lease.action, self._numbers[lease.action])


def _as_failure(call: Call, error: Exception) -> Infrastructure:
    """Return what a call failed with as a failure that is never scored as the agent's."""
    cause = error
    if not isinstance(error, Infrastructure | BudgetExhausted):
        cause = blame.as_infrastructure(error)
        if not isinstance(cause.__cause__, PluginFault):
            log.error("action %d, call %d failed", call.lease.action, call.ordinal, exc_info=error)
    return Infrastructure(f"action {call.lease.action}, call {call.ordinal}: {cause}")


def _retrieve_error(outcome: "asyncio.Future[Any]") -> None:
    """Retrieve a future's exception, so that asyncio does not warn where nobody waits for it."""
    if not outcome.cancelled():
        outcome.exception()
