"""Whoever stops a run that waits for its provider need not wait for the provider's answer."""

import asyncio

import pytest

from dgm.analysis.budgets import Reason
from dgm.archive.events import RunPaused
from dgm.config import LimitSettings
from dgm.errors import Infrastructure
from dgm.search.loop import LoopHooks, Search
from dgm.search.prepare import RunController
from tests.support.runs.approving import Maker, Plan, founded, settings

pytestmark = pytest.mark.starts_processes


class Failing(Maker):
    """Can do nothing."""

    async def perform(self, action, what):
        raise Infrastructure("no route to the model")


class Silent:
    """A provider that takes the questions after so many and never answers them."""

    spent = refused = halted = ""
    wait_s = 0.0

    def __init__(self, answers, asked):
        self.answers, self.asked = answers, asked

    async def outage(self):
        if self.answers:
            self.answers -= 1
            return "no route"
        self.asked()
        return await asyncio.Event().wait()


@pytest.mark.parametrize("answers", [0, 1])
def test_a_stop_ends_the_question_whether_the_provider_answers(tmp_path, answers):
    impatient = settings().model_copy(update={"limits": LimitSettings(failures_in_a_row=1, pause_s=0.01)})
    paused = []

    async def stopped(run):
        def hear(recorded):
            paused.extend([recorded.event] if isinstance(recorded.event, RunPaused) else [])

        def stop():
            asyncio.get_running_loop().call_soon(made.ask_to_stop, "as asked")

        around = LoopHooks(hear, Silent(answers, stop))
        made = Search(RunController(run, impatient), Plan(1), Failing(run), impatient, around)
        return await asyncio.wait_for(made.go(), 30)

    with founded(tmp_path / "run") as run:
        assert asyncio.run(stopped(run)).reason is Reason.STOPPED
    assert len(paused) == answers
