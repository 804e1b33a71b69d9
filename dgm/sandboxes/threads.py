"""Work that must not be lost when its waiter is cancelled: opening and closing a sandbox."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_OWN_THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Threads that asyncio itself allows at most."""
_MOST_THREADS = 512


def allow_threads(number: int) -> None:
    """Let so many blocking calls of the running loop be under way at once, if asyncio itself allows fewer.

    On a small machine that feeds many others, the calls of most actions would wait for each other.
    """
    if number > _OWN_THREADS:
        threads = ThreadPoolExecutor(min(number, _MOST_THREADS), thread_name_prefix="dgm")
        asyncio.get_running_loop().set_default_executor(threads)


async def complete(work: Awaitable[T], dispose: Callable[[T], object] = lambda _: None) -> T:
    """Return the result of ``work``; if the waiter is cancelled meanwhile, complete it, then dispose of its result."""
    working = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        if not working.cancelled() and working.exception() is None:
            dispose(working.result())
        raise


async def make_or_dispose(make: Callable[[], T], dispose: Callable[[T], object]) -> T:
    """Return the result of ``make``, which blocks, as ``complete`` does; ``dispose`` may block, too."""
    disposals: list[T] = []
    try:
        return await complete(asyncio.to_thread(make), disposals.append)
    except asyncio.CancelledError:
        for result in disposals:
            await finish_work(lambda: dispose(result))  # noqa: B023  (awaited here)
        raise


async def finish_work(work: Callable[[], object]) -> None:
    """Finish the work even if the waiter is cancelled; raise the cancellation afterwards."""
    await complete(asyncio.to_thread(work))
