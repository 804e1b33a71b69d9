"""Runs made by the real loop with a worker whose outcomes are made up, troubles included, to be replayed."""

import asyncio
import itertools
from functools import partial
from random import Random

from dgm.archive.events import RunStarted
from dgm.domain import Born, Budget, Entry, Evaluate, Evaluation, Stillborn, TaskId, Verdict
from dgm.errors import Infrastructure
from dgm.policies.curriculum import choose_tasks
from dgm.search.loop import LoopHooks, Search
from dgm.search.prepare import RunController
from tests.support.runs.builder import RunBuilder

TASKS = tuple(TaskId(f"task-{n}") for n in range(8))


class MadeUp:
    """Answers orders after a few turns of the event loop; outcomes follow from a stream of their own."""

    def __init__(self, run, seed=0, trouble=0.0, turns=6):
        self.run = run
        self.rng = Random(seed)
        self.trouble = trouble
        self.turns = turns

    async def perform(self, action, what):
        for _ in range(self.rng.randrange(self.turns)):
            await asyncio.sleep(0)
        failed = self.rng.random() < self.trouble
        if isinstance(what, Evaluate):
            verdict = self.rng.choice([Verdict.RESOLVED, Verdict.UNRESOLVED])
            return Evaluation(what.agent, what.task, 0, Verdict.INVALID if failed else verdict, "made up")
        if failed:
            raise Infrastructure("made up")
        if self.rng.random() < 0.2:
            return Stillborn(what.parents, what.operator, "check", "made up")
        source = {"agent.py": Entry(b"%d" % self.rng.randrange(50))}
        commits = [self.run.tree.agents[parent].commit for parent in what.parents]
        return Born(what.parents, what.operator, self.run.repository.commit(source, commits), "made up")


def session(run, policy, settings, worker, **budget):
    """One session, from its start (or resume) to its end; returns how it ended."""
    run.append(RunStarted(Budget(**budget), TASKS, resumed=bool(run.tree.agents)))
    if not run.tree.agents:
        RunBuilder(run).bear({"agent.py": Entry(b"seed")}, rationale="")
    ticks = itertools.count(step=100.0)
    changes = partial(choose_tasks, rule=settings.curriculum, seed=settings.seed)
    around = LoopHooks(clock=lambda: float(next(ticks)), change_tasks=changes)
    return asyncio.run(Search(RunController(run, settings), policy, worker, settings, around).go())


def killed_session(run, policy, settings, worker, after):
    """A session whose process dies when ``after`` orders were performed."""

    class Killed(Exception):
        pass

    class Dying(type(worker)):
        async def perform(self, action, what):
            nonlocal after
            after -= 1
            if after < 0:
                raise Killed
            return await super().perform(action, what)

    worker.__class__ = Dying
    try:
        asyncio.run(Search(RunController(run, settings), policy, settings=settings, worker=worker).go())
    except Killed:
        return
    raise AssertionError("it ended before it was killed")
