"""Keeps a run's spend below its limits: before a call its worst case is set aside, after it what it really took counts.

The limits of one action are its lease's; what was spent is read from the run, so nothing is added up twice.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dgm.domain import Budget, Usage
from dgm.errors import BudgetExhausted
from dgm.gateway.wire import BadRequest
from dgm.messages import Message, Reply, Request

if TYPE_CHECKING:
    from dgm.models.pricing import Price

CALL_TOKENS = 1_000
"""Input tokens that providers may add to a request of their own, such as an instruction for tools; a generous bound."""
LEAST_OUTPUT = 1_000
"""Output tokens below which a call is not worth making with what is left of a budget."""
ORDINARY_INPUT = 200_000
"""Bound on the input of a call that one agent's size must not deny to the others."""
MESSAGE_TOKENS = 16
"""The same for one message: marks between turns."""


@dataclass(frozen=True, slots=True)
class Most:
    """The worst case of one call."""

    tokens: int
    usd: float


@dataclass(frozen=True, slots=True)
class Weighed:
    """A request that was answered, and the input tokens that the provider counted in it."""

    request: Request
    input_tokens: int


class Ledger:
    """What may still be spent; one for all workers of a run.

    Attributes:
        exhausted: set, to a line for people, once a call could not be afforded with nothing else under way.
    """

    def __init__(
        self, prices: Mapping[str, "Price"], spent: Callable[[], Usage], budget: Callable[[], Budget]
    ) -> None:
        """Holds nothing yet.

        Args:
            prices: by the name of each model that is lent.
            spent: of the whole run so far; must include a call as soon as it is journaled.
            budget: of the run.
        """
        self._prices = prices
        self._spent = spent
        self._budget = budget
        self._held_usd = 0.0
        self._held_tokens = 0
        self._queue = asyncio.Lock()
        self._released = asyncio.Event()
        self.exhausted = ""

    def price(self, model: str) -> "Price":
        """What the model costs."""
        return self._prices[model]

    def most(self, request: Request, before: Weighed | None) -> Most:
        """The worst case of a request whose ``max_output_tokens`` is set.

        Args:
            request: what is to be asked.
            before: an earlier request of the same conversation, which makes the bound tighter.
        """
        output = request.max_output_tokens or 0
        price = self._prices[request.model]
        given = input_bound(request, before)
        # What is longer than the model can read is refused by its provider and costs nothing.
        given = min(given, price.context or given)
        return Most(given + output, price.most(given, output))

    def priced(self, model: str, reply: Reply) -> Reply:
        """The reply with what it cost in its usage."""
        usd = self._prices[model].cost(reply.usage)
        return replace(reply, usage=replace(reply.usage, usd=usd))

    @asynccontextmanager
    async def hold(self, request: Request, before: Weighed | None) -> AsyncIterator[Request]:
        """Sets the worst case aside while the context lasts; the real cost must be recorded before it ends.

        Waits, in order of arrival, while other calls hold what this one needs: they mostly take less than they hold. A
        call that does not fit alone may have less output, so that a budget is not left half unspent: the request
        that is yielded says how much. A reply that this cut short must not reach the agent.

        Raises:
            BudgetExhausted: it cannot be afforded, and no call is under way that could make room.
            BadRequest: it is so large that it alone cannot be afforded; others still can.
        """
        async with self._queue:
            allowed, most = request, self.most(request, before)
            while True:
                # An event of its own each time round: a release between check and wait is never missed.
                self._released = asyncio.Event()
                lacking = self._lacking(most)
                if not lacking:
                    break
                if not self._held_usd and not self._held_tokens:
                    allowed = self._shortened(request, before, lacking)
                    most = self.most(allowed, before)
                    break
                await self._released.wait()
            self._held_usd += most.usd
            self._held_tokens += most.tokens
        try:
            yield allowed
        finally:
            self._held_usd = max(0.0, self._held_usd - most.usd)
            self._held_tokens -= most.tokens
            if not self._held_tokens:
                # Sums of floats leave crumbs, which nobody holds.
                self._held_usd = 0.0
            self._released.set()

    def exhaust(self, why: str) -> BudgetExhausted:
        """Notes that nothing more can be afforded, and returns the error that says so."""
        self.exhausted = self.exhausted or why
        return BudgetExhausted(why)

    def _shortened(self, request: Request, before: Weighed | None, lacking: str) -> Request:
        """The request with as much output as can be afforded with nothing else under way."""
        low, high = LEAST_OUTPUT, request.max_output_tokens or 0
        fitting = None
        while low <= high:
            middle = (low + high) // 2
            shorter = replace(request, max_output_tokens=middle)
            if self._lacking(self.most(shorter, before)):
                high = middle - 1
            else:
                fitting, low = shorter, middle + 1
        if fitting is None:
            if self._is_outsized(request, before):
                raise BadRequest(
                    "the request is too large for what is left of the run's budget",
                    "action_limit_exceeded",
                    403,
                )
            raise self.exhaust(lacking)
        return fitting

    def _is_outsized(self, request: Request, before: Weighed | None) -> bool:
        """Whether it is the request's own size that cannot be afforded: an ordinary one still could."""
        if input_bound(request, before) <= ORDINARY_INPUT:
            return False
        price = self._prices[request.model]
        tokens = ORDINARY_INPUT + LEAST_OUTPUT
        return not self._lacking(Most(tokens, price.most(ORDINARY_INPUT, LEAST_OUTPUT)))

    def _lacking(self, most: Most) -> str:
        """Why the call cannot be afforded now; empty where it can."""
        budget, spent = self._budget(), self._spent()
        if budget.usd is not None and spent.usd + self._held_usd + most.usd > budget.usd:
            return (
                f"{spent.usd:.4f} of {budget.usd:.2f} USD are spent and the next call may cost {most.usd:.4f}"
            )
        if budget.tokens is not None and spent.tokens + self._held_tokens + most.tokens > budget.tokens:
            return (
                f"{spent.tokens:,} of {budget.tokens:,} tokens are spent "
                f"and the next call may take {most.tokens:,}"
            )
        return ""


def input_bound(request: Request, before: Weighed | None = None) -> int:
    """Input tokens that the request has at most.

    No tokenizer makes more than one token of a byte. That is four times too much for English, so what an answered
    request already holds counts as the provider counted it.
    """
    messages = tuple(request.messages)
    if before and _continues(request, before.request):
        new = messages[len(before.request.messages) :]
        return before.input_tokens + CALL_TOKENS + sum(map(_message_bound, new))
    tools = sum(len(f"{tool.name}{tool.description}{tool.parameters}".encode()) for tool in request.tools)
    return CALL_TOKENS + tools + sum(map(_message_bound, messages))


def _continues(request: Request, before: Request) -> bool:
    known = len(before.messages)
    return tuple(request.tools) == tuple(before.tools) and tuple(request.messages[:known]) == tuple(
        before.messages
    )


def _message_bound(message: Message) -> int:
    calls = sum(len(f"{call.id}{call.name}{call.arguments}".encode()) for call in message.calls)
    native = len(message.native.data.encode()) if message.native else 0
    text = len(f"{message.text}{message.call_id}".encode("utf-8", "replace"))
    return MESSAGE_TOKENS + text + calls + native
