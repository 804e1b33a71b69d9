"""The account that keeps a run's spend below its limits.

It reserves the worst case of each call, from bounds on the size of its request and of its output, before the call, and
counts the real cost afterwards. The limits of one action
belong to its lease. Past spend is read from the run, so nothing is added up twice.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dgm.archive.wire_exchange import TURNS
from dgm.domain import Budget, Usage
from dgm.errors import BudgetExhausted
from dgm.gateway.allowed import BadRequest
from dgm.messages import Message, Request, WireRequest
from dgm.wires import WIRES

if TYPE_CHECKING:
    from dgm.models.pricing import Price

CALL_TOKENS = 1_000
"""Input tokens that providers may add to a request, such as an instruction for tools; a generous bound."""
MESSAGE_TOKENS = 16
"""Input tokens that providers may add to one message, such as marks between turns."""
MEDIA_TOKENS = 20_000
"""Bound on the tokens of one picture or sound, however many bytes it has."""
_MEDIA = re.compile(r"[A-Za-z0-9+/]{8000,}={0,2}")
"""Pattern that matches only encoded media."""

AnyRequest = Request | WireRequest
LEAST_OUTPUT = 1_000
"""Minimum output tokens for which a call is worth making with the rest of a budget."""
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
    async def hold(
        self, model: str, request: AnyRequest, before: MeasuredRequest | None
    ) -> AsyncIterator[AnyRequest]:
        """Reserve the worst case while the context lasts; record the real cost before it ends.

        Wait, in order of arrival, while other calls hold the needed budget: they mostly use less than they hold. A call
        that does not fit alone may get less output, so that a budget is not left half unspent; the yielded request has
        the reduced limit. A reply that this limit cut short must not reach the agent.

        Raises:
            BudgetExhausted: it cannot be afforded, and no call is in flight that could make room.
            BadRequest: it is so large that it alone cannot be afforded; others still can.
        """
        async with self._queue:
            allowed, most = request, self.most(model, request, before)
            while True:
                # Create a new event each time round, so that a release between check and wait is never missed.
                self._released = asyncio.Event()
                lacking = self._reason_unaffordable(most)
                if not lacking:
                    break
                if not self._held_usd and not self._held_tokens:
                    allowed = self._shorten_output(model, request, before, lacking)
                    most = self.most(model, allowed, before)
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
                # Float sums leave small remainders when nothing is reserved.
                self._held_usd = 0.0
            self._released.set()

    def mark_exhausted(self, why: str) -> BudgetExhausted:
        """Note that nothing more can be afforded, and return the error that says so."""
        self.exhausted = self.exhausted or why
        return BudgetExhausted(why)

    def _shorten_output(
        self, model: str, request: AnyRequest, before: MeasuredRequest | None, lacking: str
    ) -> AnyRequest:
        """Return the request with as much output as can be afforded with nothing else in flight."""
        low, high = LEAST_OUTPUT, output_limit(request) or 0
        fitting = None
        while low <= high:
            middle = (low + high) // 2
            shorter = with_output_limit(request, middle)
            if self._reason_unaffordable(self.most(model, shorter, before)):
                high = middle - 1
            else:
                fitting, low = shorter, middle + 1
        if fitting is None:
            if self._is_outsized(model, request, before):
                raise BadRequest(
                    "the request is too large for what is left of the run's budget",
                    "action_limit_exceeded",
                    403,
                )
            raise self.mark_exhausted(lacking)
        return fitting

    def _is_outsized(self, model: str, request: AnyRequest, before: MeasuredRequest | None) -> bool:
        """Return whether the request's own size is the problem: an ordinary one could still be afforded."""
        if input_bound(request, before) <= ORDINARY_INPUT:
            return False
        price = self._prices[model]
        tokens = ORDINARY_INPUT + LEAST_OUTPUT
        return not self._reason_unaffordable(WorstCase(tokens, price.most(ORDINARY_INPUT, LEAST_OUTPUT)))

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


def output_limit(request: AnyRequest) -> int | None:
    """Return the maximum output tokens that a request asks for, for each of its answers."""
    if isinstance(request, Request):
        return request.max_output_tokens
    return WIRES[request.protocol].output_limit(request.body)


def with_output_limit(request: AnyRequest, tokens: int) -> AnyRequest:
    """Return the request with another output limit."""
    if isinstance(request, Request):
        return replace(request, max_output_tokens=tokens)
    return replace(request, body=WIRES[request.protocol].limited(request.body, tokens))


def output_bound(request: AnyRequest) -> int:
    """Return the maximum output tokens that a request can cost; 0 if it sets no limit."""
    answers = 1 if isinstance(request, Request) else WIRES[request.protocol].choices(request.body)
    return (output_limit(request) or 0) * answers


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
            return before.input_tokens + CALL_TOKENS + _json_bound(turns[len(known) :])
    return CALL_TOKENS + _json_bound(request.body)


def _is_same_setup(request: WireRequest, before: WireRequest, turns: str) -> bool:
    """Return whether everything but the turns that carry input is the same."""
    return all(
        request.body.get(key) == before.body.get(key)
        for key in ("tools", "system", "instructions", "functions", "response_format", "text")
        if key != turns
    )


def _json_bound(value: Mapping[str, Any] | Sequence[Any]) -> int:
    text = json.dumps(value, ensure_ascii=False)
    media = [len(found[0]) for found in _MEDIA.finditer(text)] if len(text) > MEDIA_TOKENS else []
    size = len(text.encode("utf-8", "replace"))
    return size - sum(media) + sum(min(MEDIA_TOKENS, length) for length in media)


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
