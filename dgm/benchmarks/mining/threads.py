"""Long work in threads that ends soon when it is cancelled, instead of being waited for."""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from dgm.processes import ended_by

P = ParamSpec("P")
T = TypeVar("T")


async def run_in_thread(function: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T:
    """Return what a function returns in a thread of its own.

    When the task that waits is cancelled, programs that ``run_apart`` runs there are killed, and the function ends at
    its next ``check_given_up``.
    """
    given_up = threading.Event()

    def work() -> T:
        with ended_by(given_up):
            return function(*arguments, **more)

    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        given_up.set()
        raise
