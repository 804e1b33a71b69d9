"""Evaluations that take unusually long are performed a second time beside the first (``scale.speculate``).

The first result counts, and the other performance is ended. Model calls that both make are paid once, because they
belong to one action (``dgm.gateway.calls_under_way``). In the log it is one action with one verdict, so that decisions
are a function of the log all the same.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from types import TracebackType
from typing import Self, TypeGuard

from dgm.domain import Evaluation, Outcome, Verdict
from dgm.search.orders import ActionExecutor, EvaluateOrder, Order

KNOWN = 8
"""Least number of ended evaluations of which the median says what is usual."""
_REMEMBERED = 200
_SHARE = 10
"""One second performance is allowed at a time for each so many workers, at least one."""
_LOOK_S = 2.0
"""Seconds between looks at an evaluation for which nothing can be done yet."""

log = logging.getLogger(__name__)


class SecondPerformances:
    """An executor that performs slow evaluations twice at once. Use it with ``async with``."""

    def __init__(
        self,
        worker: ActionExecutor,
        factor: float,
        workers: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Know no evaluation yet.

        Args:
            worker: performs the orders.
            factor: an evaluation is slow when it takes more than this many times the median; 0: none ever is.
            workers: number of actions at once.
            clock: seconds.
        """
        self.begun = 0
        """Number of second performances."""
        self.won = 0
        """Number of second performances that were the first to end."""
        self._worker = worker
        self._factor = factor
        self._most = max(1, workers // _SHARE)
        self._clock = clock
        self._took: deque[float] = deque(maxlen=_REMEMBERED)
        self._open = 0
        self._ending: set[asyncio.Task[Outcome]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*self._ending, return_exceptions=True)
        if self.begun:
            log.info("%d evaluations were performed twice; %d second ones were first", self.begun, self.won)

    async def perform(self, order: Order) -> Outcome:
        """Perform one action; an evaluation that is slow, twice.

        Raises:
            Infrastructure: it could not be performed.
        """
        if not self._factor or not isinstance(order, EvaluateOrder):
            return await self._worker.perform(order)
        began = self._clock()
        first = asyncio.create_task(self._worker.perform(order), name=f"performance {order.id}.1")
        tasks = [first]
        try:
            await self._wait_until_slow(first, began)
            if not first.done():
                tasks.append(self._begin_second(order, self._clock() - began))
            return await self._first_valid(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        finally:
            for task in tasks:
                self._end(task)

    async def _wait_until_slow(self, first: "asyncio.Task[Outcome]", began: float) -> None:
        """Return when a performance has ended, or when it is slow and a second one is allowed."""
        while not first.done():
            wait_s = _LOOK_S
            if len(self._took) >= KNOWN and self._open < self._most:
                wait_s = began + self._factor * median(self._took) - self._clock()
                if wait_s <= 0:
                    return
            await asyncio.wait({first}, timeout=min(wait_s, _LOOK_S))

    def _begin_second(self, order: EvaluateOrder, seconds: float) -> "asyncio.Task[Outcome]":
        self.begun += 1
        self._open += 1
        log.warning("action %d takes long (%.0f s) and is performed a second time", order.id, seconds)
        second = self._worker.perform(replace(order, performance=order.performance + 1))
        task = asyncio.create_task(second, name=f"performance {order.id}.2")
        task.add_done_callback(self._note_second_end)
        return task

    def _note_second_end(self, _: "asyncio.Task[Outcome]") -> None:
        self._open -= 1

    async def _first_valid(self, tasks: "list[asyncio.Task[Outcome]]") -> Outcome:
        """Return the first outcome that says something of the agent; if none does, the last one."""
        left = set(tasks)
        while True:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            valid = [task for task in tasks if task in done and _says_something(task.result())]
            if valid or not left:
                task = valid[0] if valid else done.pop()
                self._note_result(task.result(), is_second=task is not tasks[0])
                return task.result()

    def _note_result(self, outcome: Outcome, *, is_second: bool) -> None:
        if is_second:
            # Its seconds say nothing of what is usual: paid answers were there at once.
            self.won += _says_something(outcome)
        elif _says_something(outcome):
            self._took.append(outcome.cost.seconds)

    def _end(self, task: "asyncio.Task[Outcome]") -> None:
        """End a performance whose result is not wanted; its sandboxes are removed in the background."""
        if not task.done():
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


def _says_something(outcome: Outcome) -> TypeGuard[Evaluation]:
    return isinstance(outcome, Evaluation) and outcome.verdict is not Verdict.INVALID
