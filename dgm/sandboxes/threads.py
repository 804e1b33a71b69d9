"""Blocking work that must not be lost when its waiter is cancelled: opening and closing a sandbox."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def make_or_dispose(make: Callable[[], T], dispose: Callable[[T], object]) -> T:
    """Return the result of ``make``; if the waiter is cancelled meanwhile, finish it and then dispose of it."""
    making = asyncio.ensure_future(asyncio.to_thread(make))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        await asyncio.wait([making])
        if not making.cancelled() and making.exception() is None:
            await finish_work(lambda: dispose(making.result()))
        raise


async def finish_work(work: Callable[[], object]) -> None:
    """Finish the work even if the waiter is cancelled; raise the cancellation afterwards."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
