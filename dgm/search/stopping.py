"""Work on a run that ends when another process or thread asks for that (``dgm.archive.live``)."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from dgm.analysis.budgets import Ending, Reason
from dgm.archive.events import RunStopped
from dgm.archive.live import read_stop_request
from dgm.archive.run import Run
from dgm.search.loop import Search

LOOK_S = 0.5
"""Seconds between two looks for a request."""
AT_ONCE = Ending(Reason.STOPPED, "stopped at once; nothing recorded is lost")

Work = Callable[[Callable[[Search], None]], Coroutine[Any, Any, Ending]]
"""Work that hands over its search when that begins."""

log = logging.getLogger(__name__)


async def perform_until_stopped(run: Run, work: Work) -> Ending:
    """Perform the work; end it in good order on a first request, and at once on a second one.

    Before the search begins nothing is under way, so that a first request ends the work at once.

    Args:
        run: open to write.
        work: is cancelled if it is to end at once.
    """
    searches: list[Search] = []
    working = asyncio.create_task(work(searches.append), name="work")
    try:
        while not (await asyncio.wait({working}, timeout=LOOK_S))[0]:
            now = read_stop_request(run.folder)
            if now is None:
                continue
            if now or not searches:
                working.cancel()
                break
            for search in searches:
                if not search.stopping:
                    log.warning("asked to stop: waiting for what is under way (%d)", search.running)
                search.ask_to_stop("stopped as asked")
        else:
            return await working
    finally:
        working.cancel()
        await asyncio.wait({working})
    if not working.cancelled():
        return working.result()
    run.append(RunStopped(AT_ONCE.reason.value))
    return AT_ONCE
