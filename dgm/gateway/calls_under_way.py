"""The calls that are not answered yet: an identical request of the same action joins one instead of being paid again.

That is the same request of a repeated action, or of an action's second performance
(``dgm.search.second_performances``); to a provider also the repeated request of an agent that hung up. Equal requests
that one performance makes at once are paid each.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dgm.domain import ActionId
from dgm.errors import Infrastructure
from dgm.gateway.allowed import BadRequest
from dgm.gateway.calls import JobEnded, ProviderCall, retrieve_error
from dgm.gateway.lease import Lease
from dgm.gateway.ledger import AnyRequest
from dgm.messages import CallKey, Reply, Request, WireReply

Answer = tuple[CallKey, Reply | WireReply]
"""The key and the reply of one call."""


@dataclass(eq=False, slots=True)
class OwnFormCall:
    """A call to a model in dgm's own form, and the performances that wait for its answer."""

    request: Request
    outcome: "asyncio.Future[tuple[CallKey, Reply]]"
    hearers: set[int] = field(default_factory=set)


class CallsUnderWay:
    """The open calls of all actions."""

    def __init__(self) -> None:
        self._calls: dict[ActionId, list[ProviderCall]] = {}
        self._own: dict[ActionId, list[OwnFormCall]] = {}

    def find(self, lease: Lease, request: AnyRequest) -> ProviderCall | None:
        """Return the call to a provider that answers a request whose performance does not wait for it yet."""
        same = None
        for call in self._calls.get(lease.action, ()):
            known = call.key is None or call.key.number in lease.heard or call.is_heard_by(lease.performance)
            is_given_up = call.abandoned and not call.paying
            if not known and not is_given_up and lease.memory.are_same(call.request, request):
                if call.request == request:
                    return call
                same = same or call
        return same

    @contextmanager
    def hold(self, action: ActionId, call: ProviderCall) -> Iterator[None]:
        """Let others join a call to a provider while the context lasts."""
        calls = self._calls.setdefault(action, [])
        calls.append(call)
        try:
            yield
        finally:
            calls.remove(call)
            if not calls:
                self._calls.pop(action, None)

    def find_answer(
        self, lease: Lease, ordinal: int, request: AnyRequest
    ) -> "Coroutine[Any, Any, Answer] | None":
        """Return the answer that came or is on its way since the lease began; None if the call must be made.

        The lease's performance counts as one that hears a call under way from now on; await the coroutine, which raises
        as ``hear``.
        """
        is_alone = lease.action not in self._calls and lease.action not in self._own
        if is_alone and not lease.memory.has_late:
            return None
        recorded = lease.memory.take(request, ordinal)
        if recorded is not None:
            return _tell(CallKey(lease.action, recorded.number), recorded.reply)
        for own in self._own.get(lease.action, ()):
            if lease.performance not in own.hearers and lease.memory.are_same(own.request, request):
                own.hearers.add(lease.performance)
                return _hear_own(lease, own)
        call = self.find(lease, request)
        if call is None or call.key is None:
            return None
        lease.note_listener(call)
        call.begin_listening(lease.performance)
        return _hear_until_end(lease, call.key, call)

    @contextmanager
    def hold_own(self, lease: Lease, request: Request) -> Iterator[OwnFormCall]:
        """Let others join a call in dgm's own form while the context lasts; they hear its error, too."""
        call = OwnFormCall(request, asyncio.get_running_loop().create_future(), {lease.performance})
        call.outcome.add_done_callback(retrieve_error)
        calls = self._own.setdefault(lease.action, [])
        calls.append(call)
        try:
            yield call
        except BaseException as error:
            if not call.outcome.done():
                if isinstance(error, asyncio.CancelledError):
                    call.outcome.set_exception(JobEnded())
                else:
                    call.outcome.set_exception(error)
            raise
        finally:
            calls.remove(call)
            if not calls:
                self._own.pop(lease.action, None)


async def hear(lease: Lease, call: ProviderCall) -> WireReply:
    """Return the answer of a call that another job makes.

    Raises:
        JobEnded: the lease's own job has ended.
        Infrastructure: the other job gave the call up, for reasons of its own.
        Exception: the error with which the call failed.
    """
    with lease.tie_task(call), _blaming_the_other(lease):
        return await asyncio.shield(call.outcome)


async def _tell(key: CallKey, reply: Reply | WireReply) -> Answer:
    return key, reply


async def _hear_until_end(lease: Lease, key: CallKey, call: ProviderCall) -> Answer:
    try:
        return key, await hear(lease, call)
    finally:
        call.end_listening(lease.performance)


async def _hear_own(lease: Lease, call: OwnFormCall) -> Answer:
    try:
        with lease.paying(), _blaming_the_other(lease):
            return await asyncio.shield(call.outcome)
    finally:
        call.hearers.discard(lease.performance)


@contextmanager
def _blaming_the_other(lease: Lease) -> Iterator[None]:
    """Convert what ended only the job that makes a call: it says nothing of the one that waits for it."""
    try:
        yield
    except (JobEnded, BadRequest) as error:
        if lease.has_ended:
            raise JobEnded from None
        raise Infrastructure(f"the performance that made the call gave it up: {error}") from error
