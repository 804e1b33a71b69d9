"""Runs that do what a test says, step by step, through the real search and its workers."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from dgm.assemble import create, open_worker, operators_of, parts_of
from dgm.config import Settings
from dgm.domain import SEED, Action, Evaluate, Snapshot
from dgm.meta.operators import needs_of
from dgm.paths import asset
from dgm.search.loop import Search
from dgm.search.prepare import RunController
from tests.support.runs.builder import RunBuilder

PATIENT = ("limits.improve_s=900", "limits.check_s=60")
"""Settings with which nothing is cut off on a machine that is busy with other things."""


def patient_suite(folder: Path) -> str:
    """The starter suite, copied to a new folder, with the same patience."""
    shutil.copytree(asset("benchmarks", "starter"), folder)
    file = folder / "suite.toml"
    text = file.read_text()
    assert "\ntimeout_s = 120\n" in text and "\ntest_timeout_s = 30\n" in text
    text = text.replace("\ntimeout_s = 120\n", "\ntimeout_s = 900\n")
    file.write_text(text.replace("\ntest_timeout_s = 30\n", "\ntest_timeout_s = 200\n"))
    return str(folder)


class Plan:
    """A policy that does what it is told: rounds of actions, each begun when the one before has ended."""

    name = "plan"
    keeps_state = False

    def __init__(self, rounds: Sequence[Sequence[Action]]) -> None:
        self._rounds = [list(each) for each in rounds]

    def next(self, tree, rng):
        """The next action; evaluations of agents that were not born are never begun."""
        while self._rounds and not self._rounds[0] and not tree.pending:
            del self._rounds[0]
        if not self._rounds or not self._rounds[0]:
            return None
        first = self._rounds[0][0]
        if isinstance(first, Evaluate) and first.agent >= len(tree.agents):
            return None
        return self._rounds[0].pop(0)

    def observe(self, event):
        """Keeps nothing."""


def begun(folder: Path, settings: Settings, children: Sequence[tuple[Snapshot, str]] = ()):
    """A new run, open to write: the settings' seed agent, and children of it made by hand, each with its rationale."""
    run = create(folder, settings, parts_of(settings))
    for source, rationale in children:
        RunBuilder(run).bear(source, (SEED,), rationale=rationale)
    return run


def performed(run, settings: Settings, rounds: Sequence[Sequence[Action]]) -> None:
    """Goes through the rounds in sandboxes."""

    async def go():
        async with open_worker(run, settings, parts_of(settings)) as worker:
            needs = needs_of(operators_of(run, settings))
            await Search(RunController(run, settings, needs), Plan(rounds), worker, settings).go()

    asyncio.run(go())
