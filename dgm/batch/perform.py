"""Performs the runs of a batch, some in parallel, until all have ended or the user stops them.

Each run is a process of its own, so that a crash of one leaves the others.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from dgm.analysis.budgets import Reason
from dgm.archive.run import LIVING, Run, writer
from dgm.batch.plan import PlannedRun
from dgm.errors import DgmError, Infrastructure
from dgm.views.run import RunView

LOGS = ".batch"
"""Folder of an archive for the output of the runs' processes."""
POLL_S = 1.0
TAIL_BYTES = 20_000
OVER = (0, 3)
"""Exit codes of a run that has ended at its goal or at a limit."""


class Stage(StrEnum):
    """The stage of a run within its batch."""

    WAITING = "waiting"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """Stopped, killed, or failed by its infrastructure: it can be resumed."""
    FINISHED = "finished"
    SPENT = "budget spent"
    """Ended at a limit before its goal."""
    FAILED = "failed"
    """Its process ended before the run did, or the run cannot be read."""


@dataclass(frozen=True, slots=True)
class RunState:
    """A run at one moment."""

    stage: Stage
    message: str = ""
    """The run's own state, or what failed. A program wrote it: not neutralised."""
    run: RunView | None = None
    """None if there is no run, or it cannot be read."""

    @property
    def is_over(self) -> bool:
        """True if the run needs no further session."""
        return self.stage in (Stage.FINISHED, Stage.SPENT)


class RunProcess(Protocol):
    """A process that performs a run."""

    def send_signal(self, signal: int, /) -> None:
        """Send it a signal."""
        ...

    async def wait(self) -> int:
        """Return its exit code when it has ended."""
        ...


Start = Callable[[Sequence[str], Path], Awaitable[RunProcess]]
Listener = Callable[[PlannedRun, RunState], object]
"""Hears of each start and end of a run."""


@dataclass(slots=True)
class Batch:
    """The runs of a batch while they are performed."""

    runs: Sequence[PlannedRun]
    archive: Path
    parallel: int
    engines: Sequence[str]
    listen: Listener
    start: Start | None = None
    """Starts ``dgm`` with words, its output appended to a file; None: ``start_dgm``."""
    states: dict[str, RunState] = field(default_factory=dict)
    stopping: bool = False
    _stops: dict[str, Callable[[], None]] = field(default_factory=dict)

    async def perform(self) -> None:
        """Perform the runs that are not over; those that were begun come first."""
        self.states = {run.name: read_state(self.archive / run.name) for run in self.runs}
        todo = [run for run in self.runs if not self.states[run.name].is_over]
        todo.sort(key=lambda run: self.states[run.name].stage is Stage.WAITING)
        slots = asyncio.Semaphore(self.parallel)

        async def perform(run: PlannedRun) -> None:
            async with slots:
                try:
                    if not self.stopping:
                        await self._perform(run)
                except BaseException:
                    self.stopping = True
                    raise

        try:
            async with asyncio.TaskGroup() as group:
                for run in todo:
                    group.create_task(perform(run))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    def stop(self) -> bool:
        """Start nothing new and end every run gracefully; asked again, at once. Return whether any is running."""
        self.stopping = True
        for stop in list(self._stops.values()):
            stop()
        return bool(self._stops)

    async def _perform(self, run: PlannedRun) -> None:
        folder = self.archive / run.name
        while (holder := writer(folder)) and holder.is_known:
            # An earlier session of the batch started it.
            await asyncio.sleep(POLL_S)
            if self.stopping:
                return
        begun = self.states[run.name].stage is not Stage.WAITING
        words = ["resume", str(folder.absolute())] if begun else [*run.command()]
        words += run.receiver_words()
        for engine in self.engines:
            words += ["--set", f"engine={engine}"]
        log = self.archive / LOGS / f"{run.name}.log"
        process = await (self.start or start_dgm)(words, log)

        def stop() -> None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)

        self._stops[run.name] = stop
        try:
            self._note(run, RunState(Stage.RUNNING, "resumed" if begun else "begun"))
            code = await process.wait()
        except BaseException:
            stop()
            await process.wait()
            raise
        finally:
            del self._stops[run.name]
        state = read_state(folder)
        if not self.stopping and not (state.is_over and code in OVER):
            state = RunState(Stage.FAILED, _failure(code, log) or state.message, state.run)
        self._note(run, state)

    def _note(self, run: PlannedRun, state: RunState) -> None:
        self.states[run.name] = state
        self.listen(run, state)


async def start_dgm(words: Sequence[str], log: Path) -> asyncio.subprocess.Process:
    """Start ``dgm`` in a session of its own, so that Ctrl-C at the terminal does not reach it.

    Args:
        words: after the program's name.
        log: file to which its output is appended; the new run lies beside the file's folder.

    Raises:
        Infrastructure: it cannot be started.
    """
    # From this process's modules: "python -m dgm" looks in the working folder, the command "dgm" does not.
    here = sys.path[0] in ("", str(Path.cwd()))
    archive = str(log.parent.parent.absolute())
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, *([] if here else ["-P"]), "-m", "dgm"),
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                # Both streams go to one file, in the order in which they were written.
                env={**os.environ, "DGM_ARCHIVE": archive, "PYTHONUNBUFFERED": "1"},
            )
    except OSError as error:
        raise Infrastructure(error.errno, f"{log}: the run cannot be started: {error.strerror}") from error


def read_state(folder: Path) -> RunState:
    """Return the state of the run in a folder, which need not exist."""
    if not (folder / "run.json").exists():
        return RunState(Stage.WAITING)
    try:
        with Run.open(folder) as run:
            view = RunView.load(run)
    except DgmError as error:
        return RunState(Stage.FAILED, str(error))
    if view.state in LIVING:
        return RunState(Stage.RUNNING, view.state, view)
    match view.state:
        case Reason.GOAL | Reason.STANDSTILL | Reason.NOTHING_LEFT:
            stage = Stage.FINISHED
        case Reason.LIMIT:
            stage = Stage.SPENT
        case _:
            stage = Stage.INTERRUPTED
    return RunState(stage, view.state, view)


def _failure(code: int, log: Path) -> str:
    if code <= 0:
        return f"killed by signal {-code}" if code else ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f"exit code {code}: {last}"
