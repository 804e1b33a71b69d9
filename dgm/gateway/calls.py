"""One model call under way: its answer goes to whoever listens, as it comes, and its course is told to its lease.

An agent may hang up and ask the same again, and an action may be performed again while its call is still at the
provider: whoever asks the same joins the call. A call is never cancelled while it may be billed.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from dgm.domain import Usage
from dgm.messages import CallKey, WireReply, WireRequest


class AnswerCut(Exception):
    """What was handed on of an answer is not its beginning any more: the answer broke in the middle."""


class JobEnded(Exception):
    """The job that a call belongs to ended before the call was sent."""


class Call:
    """A call to a provider, and its answer as far as it came; ``dgm.protocols.Delivery``.

    Attributes:
        key: set when the call is bought.
        most: its worst case, set with the key.
        begun: whether its beginning is in the journal, so that it needs an end there.
        paying: whether it may be billed now.
        wasted: estimate of what tries that broke are billed.
        abandoned: whether its job has ended and none has joined it since.
        quiet: whether nothing is handed on before the end, since it may not be for the agent.
        listeners: agents' requests that wait for its answer.
    """

    def __init__(self, request: WireRequest, began: Callable[["Call"], Awaitable[None]]) -> None:
        """Begin nothing yet.

        Args:
            request: what is asked.
            began: awaited before the first try is sent; returns when that is durable.
        """
        self.request = request
        self.key: CallKey | None = None
        self.paying = False
        self.wasted = Usage()
        self.listeners = 0
        self.quiet = False
        self.abandoned = False
        self.outcome: asyncio.Future[WireReply] = asyncio.get_running_loop().create_future()
        # Nobody may be left to hear of a failure.
        self.outcome.add_done_callback(_heard)
        self.begun = False
        self.most = Usage()
        self._began = began
        self._came = bytearray()
        self._broken = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._entered: float | None = None
        self._sent: float | None = None

    def enter(self) -> None:
        """Note that the call's turn among those of its own job has come: from here on it waits for others."""
        self._entered = time.monotonic()

    # What the model tells

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """As ``Delivery.waiting``.

        Raises:
            JobEnded: nobody needs the answer any more, so the call gives its place back.
        """
        self._sent, self.paying = None, False
        if self.abandoned:
            raise JobEnded
        yield

    async def sending(self) -> None:
        """As ``Delivery.sending``."""
        if not self.begun:
            await self._began(self)
        self._sent, self.paying = time.monotonic(), True

    def pass_on(self, data: bytes) -> None:
        """As ``Delivery.pass_on``."""
        if self.quiet:
            return
        self._came += data
        self._wake()

    def take_back(self, wasted: Usage) -> None:
        """As ``Delivery.take_back``."""
        self.wasted += wasted
        if self._came:
            self._came = bytearray()
            self._broken += 1
            self._wake()

    # What its lease and its listeners ask

    def lost(self, since: float, now: float) -> tuple[float, float]:
        """Return the time (monotonic seconds, from and to) that whoever listens since then lost by waiting."""
        if self._entered is None:
            return now, now
        begun = max(since, self._entered)
        end = now if self._sent is None else self._sent
        if self.outcome.done() and self._sent is None:
            end = begun
        return begun, max(begun, end)

    def end(self, reply: WireReply | BaseException) -> None:
        """Give the answer, or why there is none, to all that listen."""
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
        """Return when bytes of the answer are there, or its end; raises what the call failed with."""
        while not self._came and not self.outcome.done():
            await self._news()
        if not self._came:
            self.outcome.result()

    async def listen(self) -> AsyncIterator[bytes]:
        """Give the answer's bytes as they come, the last ones when it is recorded.

        Raises:
            AnswerCut: the answer broke in the middle; whoever asks again hears the next try's.
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


def _heard(outcome: "asyncio.Future[WireReply]") -> None:
    if not outcome.cancelled():
        outcome.exception()


def united(spans: "list[tuple[float, float]]") -> float:
    """Return the length of the union of spans of time, in seconds."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
