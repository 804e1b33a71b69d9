"""Bounds of processor time: for each process by the kernel, and for a sandbox as a whole by a watcher."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from dgm.protocols import Completed
from dgm.sandboxes.confined import Output

EVERY_S = 0.5
"""Seconds between two measurements of a sandbox."""
SIGNALLED = 128 + 24
"""Exit code by which a shell reports a process ended by its own limit (SIGXCPU)."""
TIMED_OUT = 124
_MERGED = 'exec "$@" 2>&1'
_LIMITED = f'ulimit -S -t "$1"; ulimit -H -t "$2"; shift 2; {_MERGED}'

Taken = Callable[[], Awaitable[float | None]]
"""Processor seconds of all programs of a sandbox so far; None if unknown."""


def limit_command(argv: Sequence[str], processor_s: float | None) -> list[str]:
    """Return the command line that merges both outputs of a program, with a limit on each of its processes, if any.

    Messages of helpers that start it stay out of its output. The limit is a second longer, so that the total count,
    where there is one, decides and is reported.
    """
    if processor_s is None:
        return ["/bin/sh", "-c", _MERGED, "sh", *argv]
    soft = math.ceil(processor_s) + 1
    return ["/bin/sh", "-c", _LIMITED, "sh", str(soft), str(soft + 1), *argv]


class ProcessorMeter:
    """The processor time of one command, in a sandbox where no other command runs.

    Attributes:
        over: whether the command was ended for exceeding its limit.
    """

    def __init__(self, limit_s: float | None, taken: Taken, every_s: float = EVERY_S) -> None:
        self._limit_s, self._every_s = limit_s, every_s
        self._taken = taken
        self._before: float | None = None
        self.over = False

    async def begin(self) -> None:
        """Read the processor time used before the command."""
        if self._limit_s is not None:
            self._before = await self._taken()

    async def used_s(self) -> float | None:
        """Return the seconds used since; None without a limit, or if they are unknown."""
        after = None if self._before is None else await self._taken()
        return None if after is None or self._before is None else after - self._before

    @contextlib.asynccontextmanager
    async def watching(self, end: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Call ``end`` when the limit is reached, as long as the context lasts."""
        if self._before is None:
            yield
            return
        task = asyncio.create_task(self._watch(end))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self, end: Callable[[], Awaitable[object]]) -> None:
        assert self._limit_s is not None
        while True:
            await asyncio.sleep(self._every_s)
            used = await self.used_s()
            if used is not None and used >= self._limit_s:
                self.over = True
                await end()
                return


def out_of_processor(output: Output, seconds: float, used_s: float | None) -> Completed:
    """Return the result of a command that exceeded its processor time."""
    return Completed(
        TIMED_OUT,
        bytes(output.kept),
        output.truncated,
        timed_out=True,
        seconds=seconds,
        out_of_processor=True,
        processor_s=used_s,
    )


def processor_of(stats: Mapping[str, Any]) -> float | None:
    """Return the processor seconds in Docker's account of a container; None if it keeps none."""
    used = (stats.get("cpu_stats") or {}).get("cpu_usage", {}).get("total_usage")
    # An engine without an account says 0, but every real container has used some time.
    return used / 1e9 if used else None
