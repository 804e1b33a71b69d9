"""The state of a run of a sweep, read from its own log: to be begun, resumed, waited for or left alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, assert_never

from dgm.analysis.budgets import Reason
from dgm.analysis.summary import run_summary
from dgm.archive.history import LIVING
from dgm.archive.run import Run
from dgm.errors import DgmError


class RunStage(StrEnum):
    """The next step for a run."""

    TO_COME = "to come"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """It was stopped, its process died, or its infrastructure failed: it can be resumed."""
    FINISHED = "finished"
    SPENT = "budget spent"
    """Finished, at a limit before its goal."""
    DAMAGED = "damaged"
    """It cannot be read."""


OVER = (RunStage.FINISHED, RunStage.SPENT)


@dataclass(frozen=True, slots=True)
class SweepRunState:
    """A run at one moment."""

    stage: RunStage
    words: str = ""
    """The run's own state, or the problem with it."""
    facts: Mapping[str, Any] | None = None
    """The record of ``run_summary``; None for a run that is to come or damaged."""

    @property
    def usd(self) -> float:
        """Money that the run has spent, in USD."""
        return float(self.facts["spend"]["usd"]) if self.facts else 0.0

    @property
    def limit_usd(self) -> float | None:
        """The run's limit in USD, from its last session; None without one."""
        limit = self.facts["budget"]["usd"] if self.facts else None
        return None if limit is None else float(limit)


def read_state(folder: Path) -> SweepRunState:
    """Return the state of the run in a folder."""
    if not (folder / "run.json").exists():
        return SweepRunState(RunStage.TO_COME)
    try:
        with Run.open(folder) as run:
            return state_of(run)
    except DgmError as error:
        return SweepRunState(RunStage.DAMAGED, str(error))


def state_of(run: Run) -> SweepRunState:
    """Return the state of an open run, as far as its tree has read the log."""
    facts = run_summary(run)
    return SweepRunState(_stage_of(facts["state"]), facts["state"], facts)


def _stage_of(state: str) -> RunStage:
    if state in LIVING:
        return RunStage.RUNNING
    if state not in list(Reason):
        return RunStage.INTERRUPTED
    match reason := Reason(state):
        case Reason.GOAL | Reason.STANDSTILL | Reason.NOTHING_LEFT:
            return RunStage.FINISHED
        case Reason.LIMIT:
            return RunStage.SPENT
        case Reason.STOPPED | Reason.OUTAGE | Reason.REFUSED | Reason.CANNOT_GO_ON | Reason.ENDLESS:
            return RunStage.INTERRUPTED
        case _:
            assert_never(reason)
