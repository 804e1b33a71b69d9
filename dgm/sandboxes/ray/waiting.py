"""Waits that end: for an answer that may be late, and for work that must not be left half done."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

from dgm.errors import Infrastructure


class Late(Infrastructure):
    """An answer did not come in time."""


async def within(seconds: float, answer: Awaitable[object], who: str) -> object:
    """Return an answer that may be late.

    Raises:
        Late: it is.
    """
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError as error:
        raise Late(f"{who} did not answer within {seconds:.0f} s") from error


async def stop(running: "asyncio.Future[Any]") -> None:
    """Cancel what is not done, and wait for its end."""
    if not running.done():
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Finish the work even if the waiter is cancelled; raise the cancellation afterwards."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
