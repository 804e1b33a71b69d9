"""One model call in flight: it streams its answer to all listeners and reports its progress to its lease.

An agent may hang up and repeat the request, and an action may be retried while its call is still at the provider. An
identical request joins the call. A call is never cancelled while it may be billed.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from typing import Any

from dgm.domain import Usage
from dgm.messages import CallKey, WireReply, WireRequest


class AnswerCut(Exception):
    """The error of a stream that broke: the bytes handed on so far are no longer a prefix of the answer."""


class JobEnded(Exception):
    """The error of a call whose job ended before the call was sent."""


class ProviderCall:
    """A call to a provider, and the part of its answer that has arrived; implements ``dgm.protocols.Delivery``.

    Attributes:
        key: set when the call is bought.
        most: its worst case, set with the key.
        begun: whether its beginning is in the journal, so that it needs an end there.
        paying: whether it may be billed now.
        wasted: estimated usage billed for broken tries.
        quiet: whether the bytes are withheld until the end, because the answer may not be for the agent.
        waits_since: Unix time since which it waits for its turn or its next try; None while it does not.
    """

    def __init__(self, request: WireRequest, began: Callable[["ProviderCall"], Awaitable[None]]) -> None:
        """Create a call that has not been sent.

        Args:
            request: the request to send.
            began: awaited before the first try is sent; returns when the call's beginning is durable.
        """
        self.request = request
        self.key: CallKey | None = None
        self.paying = False
        self.wasted = Usage()
        self.quiet = False
        self.outcome: asyncio.Future[WireReply] = asyncio.get_running_loop().create_future()
        self.outcome.add_done_callback(retrieve_error)
        self.begun = False
        self.most = Usage()
        self._began = began
        self._came = bytearray()
        self._broken = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._jobs: set[Hashable] = set()
        self._was_left = False
        self._hearers: Counter[int] = Counter()
        self.waits_since: float | None = None
        self._entered: float | None = None
        self._sent: float | None = None

    # The jobs that need its answer

    def join(self, job: Hashable) -> None:
        """Note that a job needs the answer until it ends."""
        self._jobs.add(job)

    def leave(self, job: Hashable) -> None:
        """Note that a job has ended."""
        self._jobs.discard(job)
        self._was_left = True

    @property
    def is_needed(self) -> bool:
        """True while a job that needs the answer has not ended."""
        return bool(self._jobs)

    @property
    def abandoned(self) -> bool:
        """True if all jobs that needed the answer have ended."""
        return self._was_left and not self._jobs

    def begin_listening(self, performance: int) -> None:
        """Count a request of a performance that waits for the answer from now on."""
        self._hearers[performance] += 1

    def end_listening(self, performance: int) -> None:
        """Count a request of a performance that waits no longer."""
        self._hearers[performance] -= 1

    def is_heard_by(self, performance: int) -> bool:
        """Return whether a request of a performance waits for the answer."""
        return self._hearers[performance] > 0

    # Its own steps

    def enter(self) -> None:
        """Note that the call's turn within its own job has come; from here on it waits for other jobs."""
        self._entered, self.waits_since = time.monotonic(), time.time()

    def start_again(self) -> None:
        """Prepare to send the request once more after all tries failed; the bytes handed on so far are void."""
        self.take_back(Usage())
        self.wasted, self.begun, self.paying, self._sent = Usage(), False, False, None
        self.waits_since = time.time()

    # Callbacks of the model

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Implement ``Delivery.waiting``.

        Raises:
            JobEnded: nobody needs the answer any more, so the call gives its place back.
        """
        if self._sent is not None:
            self.waits_since = time.time()
        self._sent, self.paying = None, False
        if self.abandoned:
            raise JobEnded
        yield

    async def sending(self) -> None:
        """Implement ``Delivery.sending``.

        Raises:
            JobEnded: nobody needs the answer any more.
        """
        if self.abandoned:
            raise JobEnded
        if not self.begun:
            await self._began(self)
        self._sent, self.paying, self.waits_since = time.monotonic(), True, None

    def pass_on(self, data: bytes) -> None:
        """Implement ``Delivery.pass_on``."""
        if self.quiet:
            return
        self._came += data
        self._wake()

    def take_back(self, wasted: Usage) -> None:
        """Implement ``Delivery.take_back``."""
        self.wasted += wasted
        if self._came:
            self._came = bytearray()
            self._broken += 1
            self._wake()

    # Queries of its lease and its listeners

    def lost(self, since: float, now: float) -> tuple[float, float]:
        """Return the span (monotonic seconds, from and to) that a listener since ``since`` lost by waiting."""
        if self._entered is None:
            return now, now
        begun = max(since, self._entered)
        end = now if self._sent is None else self._sent
        if self.outcome.done() and self._sent is None:
            end = begun
        return begun, max(begun, end)

    def end(self, reply: WireReply | BaseException) -> None:
        """Give the answer, or the reason for its absence, to all listeners."""
        self.paying = False
        if self.outcome.done():
            return
        if isinstance(reply, asyncio.CancelledError):
            self.outcome.set_exception(JobEnded())
        elif isinstance(reply, BaseException):
            self.outcome.set_exception(reply)
        else:
            self.outcome.set_result(reply)
        self._wake()

    async def begins(self) -> None:
        """Wait until the first bytes of the answer or its end arrive.

        Raises:
            Exception: the error with which the call failed.
        """
        while not self._came and not self.outcome.done():
            await self._news()
        if not self._came:
            self.outcome.result()

    async def listen(self) -> AsyncIterator[bytes]:
        """Yield the answer's bytes as they arrive; the last bytes follow once the answer is recorded.

        Raises:
            AnswerCut: the answer broke in the middle; a repeated request receives the next try.
        """
        told, broken = 0, self._broken
        while True:
            if self._broken != broken:
                raise AnswerCut
            if self.outcome.done():
                break
            if told < len(self._came):
                news = bytes(self._came[told:])
                told += len(news)
                yield news
                continue
            await self._news()
        if self.outcome.exception() is not None:
            raise AnswerCut
        rest = self.outcome.result().content[told:]
        if rest:
            yield rest

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def _news(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter


def retrieve_error(outcome: "asyncio.Future[Any]") -> None:
    """Retrieve a future's exception, so that asyncio does not warn where nobody waits for it."""
    if not outcome.cancelled():
        outcome.exception()


def total_span_s(spans: "list[tuple[float, float]]") -> float:
    """Return the length of the union of time spans, in seconds."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
