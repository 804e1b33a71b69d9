"""Blocking calls of many actions do not wait for each other."""

import asyncio
import threading

from dgm.sandboxes.threads import allow_threads


def test_as_many_calls_are_under_way_as_are_allowed():
    calls = 80

    async def go():
        allow_threads(calls)
        # It is passed only when all wait at it.
        gate = threading.Barrier(calls)
        await asyncio.gather(*(asyncio.to_thread(gate.wait, 30) for _ in range(calls)))

    asyncio.run(go())
