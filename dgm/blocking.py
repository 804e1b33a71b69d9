"""Former names of ``dgm.api.running`` and ``dgm.api.watcher``."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext as in_python
from typing import TypeVar

from dgm.api.running import run_beside_loop as call_beside_loop
from dgm.api.running import run_session
from dgm.api.watcher import OnEvent
from dgm.api.watcher import Watcher as ProgramWatcher

__all__ = ["OnEvent", "ProgramWatcher", "block", "call_beside_loop", "in_python"]
T = TypeVar("T")


def block(work: Callable[[ProgramWatcher], Awaitable[T]], on_event: OnEvent | None) -> T:
    """Run a session of a new watcher."""
    watcher = ProgramWatcher(on_event)

    async def perform() -> T:
        return await work(watcher)

    return run_session(perform, watcher)
