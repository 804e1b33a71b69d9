"""An event loop whose time passes only while everything waits, so that an hour of waiting takes no time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_START_S = 1000.0
"""Not 0: a clock of the real kind is never there."""
_LONGEST_S = 10
"""How long a thread may take in real time before a scenario counts as stuck."""


class _Selector(selectors.DefaultSelector):
    """A selector that never waits for a timer, but moves the clock to it."""

    now = _START_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Without a timer only a thread can make progress, and that takes real time.
        ready = super().select(0 if timeout is not None else _LONGEST_S)
        if not ready and timeout is None:
            raise RuntimeError("everything waits, and for nothing that will come")
        if not ready and timeout is not None:
            self.now += max(timeout, 0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time, which starts at 1000 s."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._virtual.now

    def pass_time(self, seconds: float) -> None:
        """Advance the clock without waiting; only for callers that know that nothing else happens meanwhile."""
        self._virtual.now += seconds


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; ``asyncio.sleep``, timeouts and ``loop.time()`` are virtual in it."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)


def clock() -> float:
    """Return the running loop's time, in seconds."""
    return asyncio.get_running_loop().time()


async def pass_time(seconds: float) -> None:
    """Advance a virtual loop's clock as if nothing else could happen meanwhile; far cheaper than ``asyncio.sleep``."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        loop.pass_time(seconds)
