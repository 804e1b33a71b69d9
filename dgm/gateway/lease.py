"""One model lent to one agent for one action: what it may take, and what it took.

A lease decides whether a further call is admitted; asking the model and making its reply durable is the
gateway's. A reservation of money belongs into ``admit``, beside the other limits.
"""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dgm.domain import ActionId, Usage
from dgm.errors import Infrastructure
from dgm.gateway.wire import BadRequest
from dgm.messages import CallKey, Message, Reply, Request, Role
from dgm.protocols import Model


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What one action may ask of its model."""

    calls: int = 80
    tokens: int = 4_000_000
    """Input and output of all calls; the call that crosses it is still answered."""
    concurrent: int = 4
    """Further calls wait."""
    waiting: int = 64
    """Requests at once, those that wait included; more are refused."""
    body_bytes: int = 4_000_000
    output_tokens: int = 32_000
    """Of one reply; a larger wish is cut down to this."""


class Lease:
    """What an agent's token stands for, and the account of what was done with it.

    Attributes:
        token: worthless outside the gateway that made it, and there when the lease has ended.
        usage: of all answered calls, those served from the journal included.
        calls: answered calls.
        refusals: requests that were answered with an error.
        conversation: the messages of the last answered request, and its reply.
        failure: set when the model or the journal failed; what the agent did then says nothing of the agent.
    """

    def __init__(self, action: ActionId, role: str, model: Model, limits: CallLimits) -> None:
        self.action = action
        self.role = role
        self.model = model
        self.limits = limits
        self.token = "dgm-" + secrets.token_hex(16)
        self.usage = Usage()
        self.calls = 0
        self.refusals = 0
        self.conversation: Sequence[Message] = ()
        self.failure: Infrastructure | None = None
        self.turns = asyncio.Semaphore(limits.concurrent)
        self._open = 0
        self._numbered = 0
        self._tasks: set[asyncio.Task[Reply]] = set()

    @contextmanager
    def request(self) -> Iterator[None]:
        """One request, from its arrival to its answer.

        Raises:
            BadRequest: too many are open.
        """
        if self._open >= self.limits.waiting:
            raise BadRequest(f"more than {self.limits.waiting} requests at once", "too_many_requests", 429)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def admit(self) -> CallKey:
        """Numbers a call on its arrival.

        Raises:
            BadRequest: the action's calls or tokens are used up.
        """
        if self._numbered >= self.limits.calls:
            raise _spent(f"this job's limit of {self.limits.calls} model calls is reached")
        if self.usage.tokens >= self.limits.tokens:
            raise _spent(f"this job's limit of {self.limits.tokens} tokens is reached")
        self._numbered += 1
        return CallKey(self.action, self._numbered)

    def account(self, request: Request, reply: Reply) -> None:
        """Counts an answered call."""
        self.calls += 1
        self.usage += reply.usage
        self.conversation = (*request.messages, Message(Role.ASSISTANT, reply.text, reply.calls))

    def fail(self, failure: Infrastructure) -> None:
        """Keeps the first failure."""
        self.failure = self.failure or failure

    def keep(self, task: "asyncio.Task[Reply]") -> None:
        """Ties a call that is under way to the lease."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def end(self) -> Sequence["asyncio.Task[Reply]"]:
        """Cancels the calls that are under way; returns them for whoever waits until they are gone."""
        under_way = tuple(self._tasks)
        for task in under_way:
            task.cancel()
        return under_way


def _spent(message: str) -> BadRequest:
    return BadRequest(message, "action_limit_exceeded", 403)
