"""Something of the moment, told to other processes whenever it changes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")

TELL_S = 1.0
"""Seconds between two looks; what is told is written only after a change."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def tell_changes(
    look: Callable[[], T],
    write: Callable[[T], None],
    remove: Callable[[], None],
    every_s: float = TELL_S,
) -> AsyncIterator[None]:
    """Keep what is told up to date while the context lasts; remove it then.

    Args:
        look: returns what there is to tell now.
        write: tells it to other processes; an ``OSError`` of it changes nothing.
        remove: removes what was told.
        every_s: seconds between two looks.
    """
    remove()
    task = asyncio.create_task(_tell(look, write, every_s), name="telling")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        remove()


async def _tell(look: Callable[[], T], write: Callable[[T], None], every_s: float) -> None:
    told: T | None = None
    while True:
        now = look()
        if now != told:
            try:
                write(now)
                told = now
            except OSError as error:
                log.debug("the moment is not told: %s", error)
        await asyncio.sleep(every_s)
