"""The calls that are not answered yet: an identical request of the same action joins one instead of being paid again.

That is a repeated request of an agent that hung up, the same request of a repeated action, or that of an action's
second performance (``dgm.search.second_performances``). Equal requests that one performance makes at once are paid
each.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dgm.domain import ActionId
from dgm.gateway.calls import ProviderCall, retrieve_error
from dgm.gateway.lease import Lease
from dgm.gateway.ledger import AnyRequest
from dgm.gateway.masking import first_difference
from dgm.messages import CallKey, Reply, Request, WireReply


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
        for call in self._calls.get(lease.action, ()):
            known = call.key is None or call.key.number in lease.heard or call.is_heard_by(lease.performance)
            if not known and _is_same(call.request, request):
                return call
        return None

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

    async def join(self, lease: Lease, request: AnyRequest) -> tuple[CallKey, Reply | WireReply] | None:
        """Return the answer of a call under way to the same request; None if there is no such call.

        Raises:
            Exception: the error with which the call failed.
        """
        for own in self._own.get(lease.action, ()):
            if lease.performance not in own.hearers and _is_same(own.request, request):
                own.hearers.add(lease.performance)
                return await asyncio.shield(own.outcome)
        call = self.find(lease, request)
        if call is None or call.key is None:
            return None
        lease.note_listener(call)
        call.begin_listening(lease.performance)
        try:
            return call.key, await asyncio.shield(call.outcome)
        finally:
            call.end_listening(lease.performance)

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
                    call.outcome.cancel()
                else:
                    call.outcome.set_exception(error)
            raise
        finally:
            calls.remove(call)
            if not calls:
                self._own.pop(lease.action, None)


def _is_same(one: AnyRequest, other: AnyRequest) -> bool:
    return type(one) is type(other) and first_difference(one, other) is None
