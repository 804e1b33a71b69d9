"""Bounds of processor time: for each process by the kernel, and for a sandbox as a whole by whoever watches it."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from dgm.protocols import Completed
from dgm.sandboxes.confined import Output

EVERY_S = 0.5
"""How often it is looked what a sandbox has taken."""
SIGNALLED = 128 + 24
"""How a shell gives the end of a process that its own limit ended (SIGXCPU)."""
TIMED_OUT = 124
_LIMITED = 'ulimit -S -t "$1"; ulimit -H -t "$2"; shift 2; exec "$@"'

Taken = Callable[[], Awaitable[float | None]]
"""Processor seconds that all programs of a sandbox have taken so far; None where that cannot be told."""


def limited(argv: Sequence[str], processor_s: float | None) -> list[str]:
    """Return the command line with a limit on each of its processes; as it is without a limit.

    It is a second longer, so that where all are counted together the count decides, and is told as such.
    """
    if processor_s is None:
        return list(argv)
    soft = math.ceil(processor_s) + 1
    return ["/bin/sh", "-c", _LIMITED, "sh", str(soft), str(soft + 1), *argv]


class Meter:
    """What a command takes of the processor, in a sandbox where nothing else is at work.

    Attributes:
        over: whether the command was ended for it.
    """

    def __init__(self, limit_s: float | None, taken: Taken, every_s: float = EVERY_S) -> None:
        self._limit_s, self._every_s = limit_s, every_s
        self._taken = taken
        self._before: float | None = None
        self.over = False

    async def begin(self) -> None:
        """Read what was taken before the command."""
        if self._limit_s is not None:
            self._before = await self._taken()

    async def used_s(self) -> float | None:
        """Return what was taken since; None where nobody asked or that cannot be told."""
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
    """Return what is left of a command whose processor time was over."""
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
    """Return the processor seconds in Docker's account of a container; None where it keeps none."""
    used = (stats.get("cpu_stats") or {}).get("cpu_usage", {}).get("total_usage")
    # An engine without an account says 0, and no container is there without having taken anything.
    return used / 1e9 if used else None
