"""Work in a thread ends with the task that waits for it."""

import asyncio
import threading
import time

import pytest

from dgm.processes import GivenUp, check_given_up
from dgm.sessions.mining import run_in_thread


def test_a_result_and_an_error_come_back():
    assert asyncio.run(run_in_thread(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_in_thread(divmod, 7, 0))


def test_a_cancelled_task_ends_its_work():
    begun, ended = threading.Event(), []

    def work():
        begun.set()
        try:
            while True:
                check_given_up()
                time.sleep(0.005)
        except GivenUp:
            ended.append(True)
            raise

    async def cancel():
        task = asyncio.create_task(run_in_thread(work))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert ended == [True]
