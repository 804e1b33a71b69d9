"""Time in which dgm itself stood still: Ctrl-Z, a suspended job, a frozen container, a closed lid.

Sandboxes run on meanwhile, but their model does not answer and their clocks run out, which is no agent's fault.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from dgm.errors import AgentFault, Infrastructure, StoodStill

T = TypeVar("T")

BEAT_S = 1.0
GAP_S = 5.0
"""Seconds in which the process neither beat, nor worked, nor waited for a processor, that count as a standstill."""


if sys.platform == "linux":
    _CLOCK = time.CLOCK_BOOTTIME
else:
    _CLOCK = time.CLOCK_MONOTONIC


def _clock() -> float:
    """Return a clock that also passes while the machine is suspended, in seconds."""
    return time.clock_gettime(_CLOCK)


def _busy() -> float:
    """Return the seconds in which this process worked, or the calling thread waited for a processor."""
    try:
        waited_ns = int(Path("/proc/thread-self/schedstat").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):  # not Linux, or a kernel without it
        waited_ns = 0
    return time.process_time() + waited_ns / 1e9


class StandstillWatch:
    """A heartbeat of the running event loop; it ends with its context."""

    def __init__(self, clock: Callable[[], float] = _clock, processor: Callable[[], float] = _busy) -> None:
        self._clock, self._processor = clock, processor
        self._began = self._last = clock()
        self._last_used = processor()
        self._gap_end, self._gap_s = float("-inf"), 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep_beating(), name="heartbeat")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _keep_beating(self) -> None:
        while True:
            self.beat()
            await asyncio.sleep(BEAT_S)

    def beat(self) -> float:
        """Record that the process is running; return the time by the watch's clock, in seconds."""
        now, used = self._clock(), self._processor()
        # A loop that is held up by work, or by a busy machine, does not stand still.
        gap_s = (now - self._last) - (used - self._last_used)
        if gap_s > GAP_S:
            self._gap_end, self._gap_s = now, gap_s
        self._last, self._last_used = now, used
        return now

    def find_standstill(self, since: float | None = None) -> StoodStill | None:
        """Return the error for work begun at that ``beat``, or with the watch, if the process stood still meanwhile."""
        self.beat()
        if self._gap_end <= (self._began if since is None else since):
            return None
        return StoodStill(f"dgm itself stood still for {self._gap_s:.0f} s meanwhile (stopped or suspended)")


async def repeat_after_standstill(
    perform: Callable[[], Awaitable[T]],
    failed: Callable[[T], bool],
    open_watch: Callable[[], StandstillWatch] = StandstillWatch,
) -> T:
    """Return the result of ``perform``; perform again what failed while the process stood still."""
    async with open_watch() as watch:
        while True:
            began = watch.beat()
            try:
                result = await perform()
                if not failed(result) or not watch.find_standstill(began):
                    return result
            except (AgentFault, Infrastructure):
                if not watch.find_standstill(began):
                    raise
