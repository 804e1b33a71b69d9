"""The account that keeps a run's spend below its limits.

It reserves the worst case of each call before the call, from bounds on its request and its output, and counts the real
cost afterwards. The limits of one action belong to its lease. Past spend is read from the run, so nothing is added up
twice.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dgm.archive.journal import TURNS
from dgm.domain import Budget, Usage
from dgm.errors import BudgetExhausted
from dgm.gateway.allowed import BadRequest
from dgm.messages import Message, Request, WireRequest
from dgm.wires import WIRES
from dgm.wires.values import dump_json

if TYPE_CHECKING:
    from dgm.models.pricing import Price

CALL_TOKENS = 1_000
"""Input tokens that providers may add to a request, such as an instruction for tools; a generous bound."""
MESSAGE_TOKENS = 16
"""Input tokens that providers may add to one message, such as marks between turns."""

AnyRequest = Request | WireRequest
ORDINARY_INPUT = 200_000
"""Input tokens of an ordinary call; one oversized agent must not deny such calls to the others."""


@dataclass(frozen=True, slots=True)
class MeasuredRequest:
    """A request that was answered, and the input tokens that the provider counted in it."""

    request: AnyRequest
    input_tokens: int


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The maximum usage of one call."""

    tokens: int
    usd: float
    input_tokens: int = 0
    """The part of ``tokens`` that is input."""


class Ledger:
    """The remaining budget; one for all workers of a run.

    Attributes:
        exhausted: set, to a line for people, once a call could not be afforded with nothing else in flight.
    """

    def __init__(
        self, prices: Mapping[str, "Price"], spent: Callable[[], Usage], budget: Callable[[], Budget]
    ) -> None:
        """Create a ledger without reservations.

        Args:
            prices: by the name of each model that is lent.
            spent: returns the usage of the whole run so far; must include a call as soon as it is journaled.
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
        """Return the price of the model."""
        return self._prices[model]

    def most(self, model: str, request: AnyRequest, before: MeasuredRequest | None) -> WorstCase:
        """Return the worst case of a request that limits its output.

        Args:
            model: the model to ask.
            request: the request to send.
            before: an earlier request of the same conversation, which makes the bound tighter.
        """
        output = output_bound(request)
        price = self._prices[model]
        given = input_bound(request, before)
        # The provider refuses, free of charge, a request longer than the model can read.
        given = min(given, price.context or given)
        return WorstCase(given + output, price.most(given, output), given)

    def priced(self, model: str, usage: Usage) -> Usage:
        """Return the usage with its cost."""
        return replace(usage, usd=self._prices[model].cost(usage))

    def worst(self, model: str, most: WorstCase, input_tokens: int | None = None) -> Usage:
        """Return the worst case as a usage; with its input where that is known."""
        price = self._prices[model]
        given = most.input_tokens if input_tokens is None else input_tokens
        output = most.tokens - most.input_tokens
        return Usage(1, given, output, price.most(given, output))

    @asynccontextmanager
    async def hold(self, model: str, most: WorstCase) -> AsyncIterator[None]:
        """Reserve a call's worst case while the context lasts; record the real cost before it ends.

        Wait, in order of arrival, while other calls hold the needed budget: they mostly use less than they hold.

        Raises:
            BudgetExhausted: it cannot be afforded, and no call is in flight that could make room.
            BadRequest: it is so large that it alone cannot be afforded; others still can.
        """
        async with self._queue:
            while True:
                # Create a new event each time round, so that a release between check and wait is never missed.
                self._released = asyncio.Event()
                lacking = self._reason_unaffordable(most)
                if not lacking:
                    break
                if not self._held_usd and not self._held_tokens:
                    raise self._refuse(model, most, lacking)
                await self._released.wait()
            self._held_usd += most.usd
            self._held_tokens += most.tokens
        try:
            yield
        finally:
            self._held_usd = max(0.0, self._held_usd - most.usd)
            self._held_tokens -= most.tokens
            if not self._held_tokens:
                # Float sums leave small remainders when nothing is reserved.
                self._held_usd = 0.0
            self._released.set()

    def _refuse(self, model: str, most: WorstCase, lacking: str) -> Exception:
        """Return why a call cannot be afforded with nothing else in flight: by its size, or by any size."""
        output = most.tokens - most.input_tokens
        ordinary = WorstCase(ORDINARY_INPUT + output, self._prices[model].most(ORDINARY_INPUT, output))
        if most.input_tokens > ORDINARY_INPUT and not self._reason_unaffordable(ordinary):
            message = "the request is too large for what is left of the run's budget"
            return BadRequest(message, "action_limit_exceeded", 403)
        self.exhausted = self.exhausted or lacking
        return BudgetExhausted(lacking)

    def _reason_unaffordable(self, most: WorstCase) -> str:
        """Return the reason why the call cannot be afforded now; empty if it can."""
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


def output_bound(request: AnyRequest) -> int:
    """Return the maximum output tokens that a request can cost; 0 if it sets no limit."""
    if isinstance(request, Request):
        return request.max_output_tokens or 0
    wire = WIRES[request.protocol]
    return (wire.output_limit(request.body) or 0) * wire.choices(request.body)


def input_bound(request: AnyRequest, before: MeasuredRequest | None = None) -> int:
    """Return the maximum input tokens of the request.

    No tokenizer makes more than one token of a byte. For English that bound is four times too high, so the part that an
    answered request already contains counts as the provider counted it.
    """
    if isinstance(request, WireRequest):
        return _wire_input_bound(request, before)
    messages = tuple(request.messages)
    if before and isinstance(before.request, Request) and _is_continuation(request, before.request):
        new = messages[len(before.request.messages) :]
        return before.input_tokens + CALL_TOKENS + sum(map(_message_bound, new))
    tools = sum(len(f"{tool.name}{tool.description}{tool.parameters}".encode()) for tool in request.tools)
    return CALL_TOKENS + tools + sum(map(_message_bound, messages))


def _wire_input_bound(request: WireRequest, before: MeasuredRequest | None) -> int:
    key = TURNS[request.protocol]
    turns = request.body.get(key)
    if before and isinstance(before.request, WireRequest) and isinstance(turns, list):
        known = before.request.body.get(key)
        if (
            isinstance(known, list)
            and turns[: len(known)] == known
            and _is_same_setup(request, before.request, key)
        ):
            return before.input_tokens + CALL_TOKENS + len(dump_json(turns[len(known) :]))
    return CALL_TOKENS + len(dump_json(request.body))


def _is_same_setup(request: WireRequest, before: WireRequest, turns: str) -> bool:
    """Return whether everything but the turns that carry input is the same."""
    return all(
        request.body.get(key) == before.body.get(key)
        for key in ("tools", "system", "instructions", "functions", "response_format", "text")
        if key != turns
    )


def _is_continuation(request: Request, before: Request) -> bool:
    known = len(before.messages)
    return tuple(request.tools) == tuple(before.tools) and tuple(request.messages[:known]) == tuple(
        before.messages
    )


def _message_bound(message: Message) -> int:
    calls = sum(len(f"{call.id}{call.name}{call.arguments}".encode()) for call in message.calls)
    native = len(message.native.data.encode()) if message.native else 0
    text = len(f"{message.text}{message.call_id}".encode("utf-8", "replace"))
    return MESSAGE_TOKENS + text + calls + native
