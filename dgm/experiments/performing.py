"""Runs of a sweep, performed some at once, until all are over, the money is given away, or a person stops it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dgm.errors import Infrastructure
from dgm.experiments.children import (
    ForeignProcess,
    RunProcess,
    Start,
    is_written_here,
    read_last_line,
    start_dgm,
)
from dgm.experiments.run_state import OVER, RunStage, SweepRunState, read_state
from dgm.experiments.sweep_folder import SweepFolder
from dgm.experiments.sweep_plan import PlannedRun


class SweepEventKind(StrEnum):
    """The kind of news for a listener."""

    BEGUN = "begun"
    RESUMED = "resumed"
    FOUND = "found running"
    """Another process performs the run already; the sweep waits for it."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class SweepEvent:
    """One event of one run."""

    moment: SweepEventKind
    run: PlannedRun
    failure: str = ""
    """The reason why its process ended before the run did; else empty. A program wrote it: not neutralised."""


Listener = Callable[[SweepEvent], None]


@dataclass(slots=True)
class Sweep:
    """The runs of a sweep while they are performed."""

    runs: Sequence[PlannedRun]
    folder: SweepFolder
    at_once: int
    max_usd: float | None
    listen: Listener
    start: Start = start_dgm
    standings: dict[str, SweepRunState] = field(default_factory=dict)
    """The state of each run at the last look."""
    failures: dict[str, str] = field(default_factory=dict)
    """Reasons why processes ended before their runs did, in this session."""
    stopping: bool = False
    _children: dict[str, RunProcess] = field(default_factory=dict)
    _tasks: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)

    def look(self) -> Mapping[str, SweepRunState]:
        """Read the state of each run."""
        for run in self.runs:
            self.standings[run.name] = read_state(self.folder.run(run.name))
        return self.standings

    @property
    def running(self) -> Sequence[str]:
        """The names of the runs under way."""
        return list(self._tasks)

    @property
    def unaffordable(self) -> Sequence[PlannedRun]:
        """Runs that are not over, were not tried in this session, and exceed the sweep's remaining money."""
        return [run for run in self._waiting() if not self._fits(run)]

    async def perform(self) -> None:
        """Perform the runs that are not over; those that were begun come first. Call ``look`` before.

        What the listener raises ends every run in good order, and is raised then.
        """
        try:
            while True:
                self._start_some()
                if not self._tasks:
                    return
                await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
                for name in [name for name, task in self._tasks.items() if task.done()]:
                    self._tasks.pop(name).result()
        except Exception:
            self.stop()
            await asyncio.gather(*(child.wait() for child in self._children.values()), return_exceptions=True)
            raise

    def stop(self) -> None:
        """Start nothing new and ask every run to end in good order; asked again, they end at once."""
        self.stopping = True
        for child in self._children.values():
            child.stop()

    def _start_some(self) -> None:
        for run in self._waiting():
            if self.stopping or len(self._tasks) >= self.at_once:
                return
            if self._fits(run):
                self._tasks[run.name] = asyncio.create_task(self._perform(run))

    def _waiting(self) -> Sequence[PlannedRun]:
        """Return the runs to start, those that were begun first."""
        left = [
            run
            for run in self.runs
            if run.name not in self._tasks
            and run.name not in self.failures
            and self.standings[run.name].stage not in (*OVER, RunStage.DAMAGED)
        ]
        return sorted(left, key=lambda run: self.standings[run.name].stage is RunStage.TO_COME)

    def _fits(self, run: PlannedRun) -> bool:
        """Return whether the sweep's money covers the run's limit beside all others' money, spent or reserved."""
        if self.max_usd is None or self.standings[run.name].stage is not RunStage.TO_COME:
            # The limit of a run that was begun is counted already.
            return True
        others = sum(self._claimed_usd(other) for other in self.runs if other is not run)
        return others + (run.settings.budget.usd or 0.0) <= self.max_usd * (1 + 1e-9)

    def _claimed_usd(self, run: PlannedRun) -> float:
        """Return the part of the sweep's money that a run has spent or may spend yet, in USD."""
        standing = self.standings[run.name]
        if standing.stage in OVER or standing.stage is RunStage.DAMAGED:
            return standing.usd
        if standing.stage is RunStage.TO_COME and run.name not in self._tasks:
            return 0.0
        own = run.settings.budget.usd or 0.0
        return standing.usd if standing.limit_usd is None and not own else (standing.limit_usd or own)

    async def _perform(self, run: PlannedRun) -> None:
        """Perform one run until its process ends; wait first for another process that writes it."""
        where = self.folder.run(run.name)
        if is_written_here(where):
            await self._wait(run, SweepEventKind.FOUND, ForeignProcess(where))
            if self.stopping or self.standings[run.name].stage in OVER:
                return
        begun = self.standings[run.name].stage is not RunStage.TO_COME
        words = ["resume", str(where.absolute())] if begun else run.command()
        log = self.folder.log(run.name)
        try:
            child = await self.start(words, log)
        except Infrastructure as error:
            self.failures[run.name] = str(error)
            self.listen(SweepEvent(SweepEventKind.ENDED, run, str(error)))
            return
        await self._wait(run, SweepEventKind.RESUMED if begun else SweepEventKind.BEGUN, child)

    async def _wait(self, run: PlannedRun, moment: SweepEventKind, child: RunProcess) -> None:
        self._children[run.name] = child
        if self.stopping:
            child.stop()
        self.listen(SweepEvent(moment, run))
        code = await child.wait()
        del self._children[run.name]
        standing = self.standings[run.name] = read_state(self.folder.run(run.name))
        failure = "" if self.stopping or code is None else self._failure(run, standing, code)
        if failure:
            self.failures[run.name] = failure
        if moment is not SweepEventKind.FOUND or standing.stage in OVER:
            self.listen(SweepEvent(SweepEventKind.ENDED, run, failure))

    def _failure(self, run: PlannedRun, standing: SweepRunState, code: int) -> str:
        if standing.stage in OVER and code in (0, _LIMIT):
            return ""
        if standing.stage is RunStage.DAMAGED or code == 0:
            return standing.words
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        said = read_last_line(self.folder.log(run.name)) if code > 0 else ""
        return f"{how}: {said}" if said else how


_LIMIT = 3
"""The exit code of ``dgm run`` where a budget was spent before the goal."""
