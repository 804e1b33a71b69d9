"""A model behind a provider's network address: waits for its turn, asks, and asks again while that may help.

What is said on the wire is the dialect's affair, what an error means is decided in ``faults``, who may ask when in
``throttle``. This module decides only how often and how soon.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from dgm.domain import Usage
from dgm.errors import Infrastructure, ProviderRefuses, UserError
from dgm.messages import Reply, Request, RequestRefused
from dgm.models.dialect import Broken, Dialect
from dgm.models.faults import Fault, Permanent, Refused, Transient, fault_of
from dgm.models.throttle import Throttle, Turn
from dgm.protocols import Sleep

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LONGEST_BACKOFF_S = 60.0
_TRIES_OF_A_CHECK = 3
_EMPTY_ANSWERS = 3
"""So many empty answers to one request are what the model means."""
_CHARACTERS_PER_TOKEN = 4
_TOKENS_OF_A_TURN = 8
"""What the roles and separators around a message take, about."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is made, and how soon again."""

    tries: int = 8
    """The first included."""
    backoff_s: float = 1.0
    """Before the second try; doubled for each further one, up to 60 s."""
    sleep: Sleep = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    rng: Random = field(default_factory=Random)
    """For jitter only: no decision of a search hangs on it."""


class HostedModel:
    """Answers requests through one provider's protocol."""

    def __init__(
        self,
        name: str,
        dialect: Dialect,
        throttle: Throttle,
        retries: Retries,
        key_env: str = "",
        secrets: Sequence[str] = (),
    ) -> None:
        """Takes over the dialect, and shares the throttle.

        Args:
            name: as users type it: ``openai/gpt-5.2``.
            dialect: asked once per try; closed by ``close``.
            throttle: the provider's own, one for all of its models.
            retries: how often, how soon.
            key_env: the environment variable of the key, for messages; empty: there is no key.
            secrets: what no message may hold.
        """
        self.name = name
        self._dialect = dialect
        self._throttle = throttle
        self._retries = retries
        self._key_env = key_env
        self._secrets = tuple(secrets)

    async def reply(self, request: Request) -> Reply:
        """One answer, however many tries it takes; see ``Model.reply``."""
        empty: list[Reply] = []
        starts: list[float] = []
        reply = await self._until_answered(lambda: self._once(request, empty, starts), self._retries.tries)
        wasted = sum((other.usage for other in empty if other is not reply), Usage())
        # What was thrown away was billed all the same, and nobody else hears of it; it is one call to the agent.
        usage = replace(reply.usage + wasted, calls=reply.usage.calls)
        return replace(reply, usage=usage, lost_s=starts[-1] - starts[0])

    async def check(self) -> None:
        """Asks the provider, at no cost and past the queue, whether it would answer now; see ``Model.check``."""
        try:
            await self._until_answered(self._check_once, min(_TRIES_OF_A_CHECK, self._retries.tries))
        except (ProviderRefuses, RequestRefused) as error:
            raise UserError(str(error)) from error

    async def close(self) -> None:
        """Ends the connections to the provider."""
        await self._dialect.close()

    async def _until_answered(self, ask: Callable[[], Awaitable[T]], tries: int) -> T:
        async def attempt() -> T:
            # tenacity awaits only what it can tell is a coroutine function.
            return await ask()

        begun = self._retries.clock()
        retrying = AsyncRetrying(
            sleep=self._retries.sleep,
            stop=stop_after_attempt(tries),
            wait=self._wait_s,
            retry=retry_if_exception_type(_Passing),
            before_sleep=self._note,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except _Passing as error:
            seconds = self._retries.clock() - begun
            tried = f"{tries} tries in {seconds:.0f} s, the last" if tries > 1 else "1 try"
            raise Infrastructure(f"{self.name}: {tried}: {error.fault.reason}") from error.__cause__

    async def _once(self, request: Request, empty: list[Reply], starts: list[float]) -> Reply:
        asked = _affordable(request, empty)
        async with self._throttle.turn(estimated_tokens(asked)) as turn:
            starts.append(self._retries.clock())
            try:
                reply = await self._dialect.ask(asked)
            except Exception as error:
                if isinstance(error, Broken) and error.reply is not None:
                    empty.append(error.reply)
                fault = fault_of(error, self._secrets)
                self._tell_throttle(fault, turn)
                if fault is None:
                    raise
                most = min(_EMPTY_ANSWERS, self._retries.tries)
                if not empty or (len(empty) < most and _worthwhile(request, empty)):
                    raise self._raised(fault) from error
                return empty[-1]
            self._throttle.used(turn, reply.usage.tokens)
            self._throttle.went_well()
            return reply

    def _tell_throttle(self, fault: Fault | None, turn: Turn) -> None:
        if not isinstance(fault, Transient):
            self._throttle.used(turn, 0)
            return
        if fault.overload:
            self._throttle.too_many(turn)
        if fault.retry_after_s is not None:
            self._throttle.pause(fault.retry_after_s)

    async def _check_once(self) -> None:
        try:
            await self._dialect.check()
        except Exception as error:
            fault = fault_of(error, self._secrets)
            if fault is None:
                raise
            raise self._raised(fault) from error

    def _raised(self, fault: Fault) -> Exception:
        match fault:
            case Transient():
                return _Passing(fault)
            case Refused(code, message):
                return RequestRefused(code, message)
            case Permanent(message, key) if key and self._key_env:
                return ProviderRefuses(f"{self.name}: the key in {self._key_env} is refused: {message}")
            case Permanent(message):
                return ProviderRefuses(f"{self.name}: {message}")

    def _wait_s(self, state: RetryCallState) -> float:
        fault = _fault(state)
        if fault.retry_after_s is not None:
            return fault.retry_after_s
        # The exponent is bounded so that no number of tries overflows a float.
        longest = min(_LONGEST_BACKOFF_S, self._retries.backoff_s * 2.0 ** min(state.attempt_number - 1, 60))
        return longest * self._retries.rng.uniform(0.5, 1.0)

    def _note(self, state: RetryCallState) -> None:
        wait_s = state.next_action.sleep if state.next_action else 0.0
        reason = _fault(state).reason
        logger.info(
            "%s: try %d failed, the next in %.1f s: %s", self.name, state.attempt_number, wait_s, reason
        )


class _Passing(Exception):
    """Carries a transient fault through tenacity."""

    def __init__(self, fault: Transient) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def _affordable(request: Request, thrown: Sequence[Reply]) -> Request:
    """The request with so much less output that the answers thrown away cost nothing beyond what was set aside for it.

    That holds wherever a token of input costs no more than one of output.
    """
    if request.max_output_tokens is None or not thrown:
        return request
    gone = sum(reply.usage.tokens for reply in thrown)
    return replace(request, max_output_tokens=max(1, request.max_output_tokens - gone))


def _worthwhile(request: Request, thrown: Sequence[Reply]) -> bool:
    """Whether at least half of the output that was wished for can still be afforded."""
    left = _affordable(request, thrown).max_output_tokens
    return left is None or left * 2 >= (request.max_output_tokens or 0)


def estimated_tokens(request: Request) -> int:
    """What a call may take at most, about: a quarter of its characters, and all the output that it may give."""
    said = sum(
        len(message.text)
        + sum(len(call.name) + len(call.arguments) for call in message.calls)
        + (len(message.native.data) if message.native else 0)
        for message in request.messages
    )
    offered = sum(
        len(tool.name) + len(tool.description) + len(str(tool.parameters)) for tool in request.tools
    )
    around = _TOKENS_OF_A_TURN * (len(request.messages) + len(request.tools))
    return (said + offered) // _CHARACTERS_PER_TOKEN + around + (request.max_output_tokens or 0)


def _fault(state: RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, _Passing):
        raise TypeError(f"retried without a transient fault: {error!r}")
    return error.fault
