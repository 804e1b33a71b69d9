"""One model lent to one agent for one action: what it may take, and what it took.

A lease decides whether a further call is admitted; asking the model and making its reply durable is the
gateway's, what the whole run may spend the ledger's.
"""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dgm.domain import ActionId, Usage
from dgm.errors import Infrastructure
from dgm.gateway.ledger import Most, Weighed
from dgm.gateway.memory import Memory
from dgm.gateway.wire import BadRequest
from dgm.messages import Exchange, Message, Reply, Request, Role
from dgm.protocols import Model

SPENT = "action_limit_exceeded"
"""The word for a call that a limit of its action forbids."""
LOST_SHARE = 0.1
"""An agent whose time is over is not to blame for that where more of it went to a model that failed at first."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What one action may ask of its model."""

    calls: int = 80
    tokens: int = 4_000_000
    """Input and output of all calls; the call that crosses it is still answered."""
    usd: float | None = None
    """Money for all calls; a call whose worst case would cross it is refused."""
    concurrent: int = 4
    """Further calls wait."""
    waiting: int = 64
    """Requests at once, those that wait included; more are refused."""
    body_bytes: int = 4_000_000
    output_tokens: int = 16_000
    """Of one reply; a larger wish is cut down to this."""
    refusals: int = 20
    """So many are recorded; more are only counted."""


class Lease:
    """What an agent's token stands for, and the account of what was done with it.

    Attributes:
        token: worthless outside the gateway that made it, and there when the lease has ended.
        usage: of all answered calls, those served from the journal included.
        calls: answered calls.
        refusals: requests that were answered with an error.
        refused: the words for why, each once, in their order.
        conversation: the messages of the last answered request, and its reply.
        heard: numbers of the calls that this performance of the action was answered so far.
        open: requests that are not answered yet.
        lost_s: seconds that the agent waited longer because its model failed at first.
        failure: set when the model or the journal failed; what the agent did then says nothing of the agent.
    """

    def __init__(
        self,
        action: ActionId,
        role: str,
        model: Model,
        limits: CallLimits,
        paid: Sequence[Exchange] = (),
    ) -> None:
        self.action = action
        self.role = role
        self.model = model
        self.limits = limits
        self.token = "dgm-" + secrets.token_hex(16)
        self.usage = Usage()
        self.calls = 0
        self.refusals = 0
        self.refused: dict[str, None] = {}
        self.conversation: Sequence[Message] = ()
        self.failure: Infrastructure | None = None
        self.turns = asyncio.Semaphore(limits.concurrent)
        self.memory = Memory(paid)
        self.heard: set[int] = set()
        self.weighed: Weighed | None = None
        self._held_usd = 0.0
        self.open = 0
        self.lost_s = 0.0
        self._admitted = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._paying: set[asyncio.Task[Any]] = set()

    @contextmanager
    def request(self) -> Iterator[None]:
        """One request, from its arrival to its answer.

        Raises:
            BadRequest: too many are open.
        """
        if self.open >= self.limits.waiting:
            raise BadRequest(f"more than {self.limits.waiting} requests at once", "too_many_requests", 429)
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    def admit(self) -> int:
        """Counts a call on its arrival, from 1.

        Raises:
            BadRequest: the action's calls or tokens are used up.
        """
        if self._admitted >= self.limits.calls:
            raise _spent(f"this job's limit of {self.limits.calls} model calls is reached")
        self.check_tokens()
        self._admitted += 1
        return self._admitted

    def check_tokens(self) -> None:
        """Looks again when a call's turn has come: those before it may have used up what there was.

        Raises:
            BadRequest: the action's tokens are used up.
        """
        if self.usage.tokens >= self.limits.tokens:
            raise _spent(f"this job's limit of {self.limits.tokens} tokens is reached")

    @contextmanager
    def hold(self, most: Most) -> Iterator[None]:
        """Sets a call's worst case aside from this action's money while the context lasts.

        Raises:
            BadRequest: that would cross the action's limit.
        """
        limit = self.limits.usd
        if limit is not None and self.usage.usd + self._held_usd + most.usd > limit:
            raise _spent(
                f"this job has spent {self.usage.usd:.4f} of {limit:.2f} USD and the call may cost {most.usd:.4f}"
            )
        self._held_usd += most.usd
        try:
            yield
        finally:
            self._held_usd -= most.usd

    @contextmanager
    def paying(self) -> Iterator[None]:
        """From here on the current task's call may be billed: it is no longer cancelled with the lease."""
        task = asyncio.current_task()
        if task in self._tasks:
            self._paying.add(task)
        try:
            yield
        finally:
            self._paying.discard(task)

    def account(self, request: Request, reply: Reply) -> None:
        """Counts an answered call."""
        self.calls += 1
        self.usage += reply.usage
        self.weighed = Weighed(request, reply.usage.input_tokens)
        self.conversation = (*request.messages, Message(Role.ASSISTANT, reply.text, reply.calls))

    def refuse(self, code: str) -> None:
        """Counts a request that was answered with an error."""
        self.refusals += 1
        self.refused[code] = None

    def fail(self, failure: Infrastructure) -> None:
        """Keeps the first failure."""
        self.failure = self.failure or failure

    async def outlive(self, limit_s: float, *, timed_out: bool) -> None:
        """Tells an agent that gave up, or was slow, from one whose model failed it; for one that has ended.

        The calls under way are waited for, because only their end shows what the agent waited for.

        Args:
            limit_s: the agent's time; it is waited for as long again at most.
            timed_out: the agent's time was over before it was done.
        """
        late = False
        if self._paying:
            late = bool((await asyncio.wait(set(self._paying), timeout=limit_s))[1])
        if late:
            self.fail(Infrastructure(f"the model had not answered {limit_s:.0f} s after its agent had ended"))
        elif timed_out and self.lost_s > LOST_SHARE * limit_s:
            self.fail(
                Infrastructure(
                    f"{self.lost_s:.0f} of the agent's {limit_s:.0f} s went to the model's failing first"
                )
            )

    def keep(self, task: "asyncio.Task[Any]") -> None:
        """Ties a call that is under way to the lease."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def end(self) -> Sequence["asyncio.Task[Any]"]:
        """Cancels the calls that cost nothing yet; returns all, for whoever waits until they are recorded."""
        for task in self._tasks - self._paying:
            task.cancel()
        return tuple(self._tasks)


def _spent(message: str) -> BadRequest:
    return BadRequest(message, SPENT, 403)
