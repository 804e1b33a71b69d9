"""One queue per provider, shared by all workers: it orders the calls and limits their number.

Calls wait in the order of their arrival. A limit of requests or tokens a minute holds in every window of 60 s. The
number of concurrent calls is halved when the provider says that it is too many. It grows back by one for every round of
successes. ``HostedModel`` decides about retries and their time.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dgm.config import ProviderSettings
from dgm.protocols import Sleep

LONGEST_WAIT_S = 60.0
"""Maximum wait in seconds of a call of a run at its provider's request, so that no sandbox is held open."""
_WINDOW_S = 60.0


@dataclass(slots=True)
class SendPermit:
    """The right to send once, as the last minute's log keeps it."""

    tokens: int
    """The estimated tokens, later the used ones."""
    leaves: float
    """Time at which it is older than a minute."""
    epoch: int
    """Number of times that the concurrency limit had been halved when this one began."""
    logged: bool = True


class Throttle:
    """A limiter of the calls to one provider."""

    def __init__(
        self,
        limits: ProviderSettings,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._sleep = sleep
        self._clock = clock
        self._door = asyncio.Lock()
        """Held by the call that is next; a lock admits its waiters one by one, in order."""
        self._changed = asyncio.Event()
        self._active = 0
        self._allowed = float(limits.concurrency)
        self._epoch = 0
        self._resumes = 0.0
        self.pause_reason = ""
        self._log: deque[SendPermit] = deque()
        self._logged_tokens = 0

    @property
    def allowed(self) -> int:
        """The current limit of concurrent calls."""
        return int(self._allowed)

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[SendPermit]:
        """Wait until a call of about ``tokens`` may be made, and hold one place for it.

        A call that alone exceeds the tokens of a minute passes when no other call was made for a minute.
        """
        async with self._door:
            await self._admittance(tokens)
            turn = self._enter(tokens)
        try:
            yield turn
        finally:
            self._active -= 1
            self._changed.set()

    def used(self, turn: SendPermit, tokens: int) -> None:
        """Replace a call's estimate by its real tokens; call it before the turn ends."""
        if turn.logged:
            self._logged_tokens += tokens - turn.tokens
        turn.tokens = tokens

    def went_well(self) -> None:
        """Note that the provider answered a call; call it before the turn ends."""
        self._allowed = min(self._limits.concurrency, self._allowed + 1 / self._allowed)

    def note_too_many(self, turn: SendPermit) -> None:
        """Note that the provider refused that call as one too many."""
        # Concurrent calls are refused together: that is one answer to one limit, not several.
        if turn.epoch == self._epoch:
            self._epoch += 1
            self._allowed = max(1.0, self._allowed / 2)

    def pause(self, seconds: float, reason: str = "") -> None:
        """Delay the start of all calls by that many seconds."""
        resumes = self._clock() + seconds
        if resumes >= self._resumes:
            self._resumes, self.pause_reason = resumes, reason

    @property
    def resumes_in(self) -> float:
        """Seconds until a call may begin again; 0 without a pause."""
        return max(0.0, self._resumes - self._clock())

    async def _admittance(self, tokens: int) -> None:
        while True:
            self._changed.clear()
            if self._active >= self.allowed:
                await self._changed.wait()
            elif (delay := self._delay(tokens)) > 0:
                await self._change_or(delay)
            else:
                return

    async def _change_or(self, delay: float) -> None:
        """Sleep until a change or the delay: a call that used less than its estimate makes room at once."""
        waits = [asyncio.ensure_future(self._sleep(delay)), asyncio.ensure_future(self._changed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def _enter(self, tokens: int) -> SendPermit:
        turn = SendPermit(tokens, self._clock() + _WINDOW_S, self._epoch)
        self._log.append(turn)
        self._logged_tokens += tokens
        self._active += 1
        return turn

    def _delay(self, tokens: int) -> float:
        now = self._clock()
        while self._log and self._log[0].leaves <= now:
            self._forget()
        return max(self._resumes - now, self._requests_delay(now), self._tokens_delay(now, tokens))

    def _forget(self) -> None:
        turn = self._log.popleft()
        turn.logged = False
        self._logged_tokens -= turn.tokens

    def _requests_delay(self, now: float) -> float:
        limit = self._limits.requests_per_minute
        if limit is None or len(self._log) < limit:
            return 0.0
        return self._log[0].leaves - now

    def _tokens_delay(self, now: float, tokens: int) -> float:
        limit = self._limits.tokens_per_minute
        if limit is None:
            return 0.0
        held = self._logged_tokens
        delay = 0.0
        for turn in self._log:
            if held + tokens <= limit:
                break
            held -= turn.tokens
            delay = turn.leaves - now
        return delay
