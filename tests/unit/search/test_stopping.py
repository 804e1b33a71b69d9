"""Work that ends when a request lies in the run's folder, from whatever thread or process it comes."""

import asyncio
import threading
from contextlib import asynccontextmanager, nullcontext

import pytest

from dgm.analysis.budgets import Reason
from dgm.archive.live import stop_run
from dgm.archive.run import state
from dgm.search.loop import AT_ONCE, LoopHooks, Search, perform_until_stopped
from dgm.search.prepare import RunController
from tests.support.runs.approving import Maker, Plan, founded, settings

pytestmark = pytest.mark.starts_processes


class Slow(Maker):
    """Works until it may end."""

    def __init__(self, run):
        super().__init__(run)
        self.begun, self.may_end, self.cancelled = asyncio.Event(), asyncio.Event(), False

    async def perform(self, action, what):
        self.begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return await super().perform(action, what)


async def searched(run, meanwhile):
    """Perform a search of one child while something is asked for."""
    worker = Slow(run)
    search = Search(RunController(run, settings()), Plan(1), worker, settings(), LoopHooks())

    performing = asyncio.create_task(perform_until_stopped(run, nullcontext(search)))
    await worker.begun.wait()
    await meanwhile(worker, search)
    return await asyncio.wait_for(performing, 30), worker


async def until(holds):
    while not holds():
        await asyncio.sleep(0.01)


def test_a_request_of_another_thread_ends_a_search_in_good_order(tmp_path):
    async def stop(worker, search):
        asking = threading.Thread(target=stop_run, args=(tmp_path / "run",))
        asking.start()
        await until(lambda: search.stopping)
        asking.join()
        worker.may_end.set()

    with founded(tmp_path / "run") as run:
        over, worker = asyncio.run(searched(run, stop))
        assert (over.reason, worker.cancelled, len(run.tree.pending)) == (Reason.STOPPED, False, 0)
        assert state(run) == "stopped"
        assert over != AT_ONCE


def test_a_second_request_ends_it_at_once(tmp_path):
    async def stop(worker, search):
        stop_run(tmp_path / "run")
        await until(lambda: search.stopping)
        stop_run(tmp_path / "run")

    with founded(tmp_path / "run") as run:
        over, worker = asyncio.run(searched(run, stop))
        assert (over, worker.cancelled, state(run)) == (AT_ONCE, True, "stopped")


def test_work_that_has_not_begun_to_search_ends_at_the_first_request(tmp_path):
    @asynccontextmanager
    async def opening():
        stop_run(tmp_path / "run")
        await asyncio.Event().wait()
        yield

    with founded(tmp_path / "run") as run:
        over = asyncio.run(asyncio.wait_for(perform_until_stopped(run, opening()), 30))
        assert (over, state(run)) == (AT_ONCE, "stopped")


def test_a_cancelled_caller_takes_its_work_along(tmp_path):
    ended = []

    @asynccontextmanager
    async def opening():
        try:
            await asyncio.Event().wait()
            yield
        finally:
            ended.append(True)

    async def cancelled(run):
        performing = asyncio.create_task(perform_until_stopped(run, opening()))
        await asyncio.sleep(0.01)
        performing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await performing

    with founded(tmp_path / "run") as run:
        asyncio.run(cancelled(run))
        assert (ended, state(run)) == ([True], "running")
