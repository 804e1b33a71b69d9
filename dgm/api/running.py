"""Runs a session for a caller that blocks, also where an event loop runs already (a notebook).

Ctrl-C once ends the session gracefully; twice, or before its search begins, at once with ``KeyboardInterrupt``.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from dgm.api.watcher import Watcher

T = TypeVar("T")


def run_session(work: Callable[[], Coroutine[Any, Any, T]], watcher: Watcher | None = None) -> T:
    """Run the coroutine of a session to its end and return its result.

    Args:
        work: makes the coroutine.
        watcher: the session's; it is interrupted by Ctrl-C.
    """
    watcher = watcher or Watcher()

    async def perform() -> T:
        watcher.task = asyncio.current_task()
        return await work()

    try:
        if not _has_loop():
            return asyncio.run(perform())
        return _run_in_thread(perform, watcher)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def run_beside_loop(function: Callable[[], T]) -> T:
    """Call a function that starts an event loop, in a thread of its own if one runs in this thread."""
    if not _has_loop():
        return function()
    return run_session(lambda: asyncio.to_thread(function))


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_thread(perform: Callable[[], Coroutine[Any, Any, T]], watcher: Watcher) -> T:
    outcome: Future[T] = Future()
    loops: list[asyncio.AbstractEventLoop] = []

    async def watched() -> T:
        loops.append(asyncio.get_running_loop())
        return await perform()

    def run() -> None:
        try:
            outcome.set_result(asyncio.run(watched()))
        except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits)
            outcome.set_exception(error)

    threading.Thread(target=run, name="dgm").start()
    while not outcome.done():
        # Not ``Thread.join``: before Python 3.13 a thread counts as ended after an interrupted join.
        try:
            wait([outcome])
        except KeyboardInterrupt:
            for loop in loops:
                loop.call_soon_threadsafe(watcher.interrupt)
    return outcome.result()
