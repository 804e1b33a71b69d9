"""Children that wait are answered for while the run waits for its provider."""

import asyncio

import pytest

from dgm.analysis.budgets import Reason
from dgm.archive.events import RunPaused
from dgm.archive.live import ApprovalAnswer, put_answer
from dgm.config import LimitSettings
from dgm.domain import ActionId, Evaluate
from dgm.errors import Infrastructure
from dgm.search.loop import LoopHooks, Search
from dgm.search.prepare import RunController
from tests.support.runs.approving import Maker, Plan, founded, settings

pytestmark = pytest.mark.starts_processes

FAR = 3600.0


class Failing(Maker):
    """Makes children, and can evaluate nothing."""

    async def perform(self, action, what):
        if isinstance(what, Evaluate):
            raise Infrastructure("no route to the model")
        return await super().perform(action, what)


class Away:
    """A provider that does not answer."""

    spent = refused = halted = ""
    wait_s = 0.0
    asked = 0

    async def outage(self):
        self.asked += 1
        return "no route"


@pytest.mark.parametrize(("answer", "seconds"), [(True, 0.0), (False, 0.0), (None, FAR)])
def test_a_paused_run_takes_answers_and_sees_that_time_is_over(tmp_path, answer, seconds):
    asking = settings(approve_s=60.0)
    asking = asking.model_copy(update={"limits": LimitSettings(failures_in_a_row=1, pause_s=FAR)})
    away, late = Away(), []

    async def paused(run):
        def hear(recorded):
            if isinstance(recorded.event, RunPaused):
                assert list(run.tree.waiting) == [1]
                late.append(seconds)
                if answer is not None:
                    put_answer(run.folder, ActionId(1), ApprovalAnswer(answer))
            elif late and not run.tree.waiting:
                made.ask_to_stop("as asked")

        around = LoopHooks(hear, away, now=lambda: run.tree._watch.last + sum(late), answers_s=0.001)
        made = Search(RunController(run, asking), Plan(1), Failing(run), asking, around)
        return await asyncio.wait_for(made.go(), 30)

    with founded(tmp_path / "run") as run:
        assert asyncio.run(paused(run)).reason is Reason.STOPPED
        assert len(run.tree.agents) == (2 if answer else 1)
        assert dict(run.tree.stillborn) == {True: {}, False: {"rejected": 1}, None: {"expired": 1}}[answer]
        assert away.asked == 1
