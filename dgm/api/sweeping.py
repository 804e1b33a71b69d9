"""Sweeps from a program: many runs from one file (``dgm sweep``)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dgm import launch
from dgm.api.records import Records, records_of
from dgm.blocking import ProgramWatcher, block, in_python
from dgm.errors import UserError
from dgm.experiments.performing import Sweep, SweepEvent
from dgm.experiments.plan import SweepPlan
from dgm.experiments.run_state import RunStage
from dgm.sandboxes.engine_address import use_engine
from dgm.show.sweep_rows import outcome_text, sweep_record

MOST_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class SweepView:
    """A sweep as it stands at the end of a session; ``dgm.compare(name)`` compares its runs."""

    made: Sweep = field(repr=False)
    record: Mapping[str, Any] = field(repr=False)
    """The document that ``dgm sweep --json`` prints, without the exit code."""

    @property
    def name(self) -> str:
        """Its name, which stands for all its runs."""
        return self.made.folder.name

    @property
    def runs(self) -> Records:
        """A row for each run: variant, seed, stage, best agent, spend, and why it failed."""
        return records_of(self.record["runs"])

    @property
    def finished(self) -> bool:
        """True if every run ended before its budget was spent."""
        return all(state.stage is RunStage.FINISHED for state in self.made.standings.values())

    @property
    def outcome(self) -> str:
        """Numbers of runs done, failed and to come, in one line."""
        return outcome_text(self.made)


def plan_sweep(file: str | Path) -> Records:
    """Return a row for each run of a sweep, with the command that would begin it or go on with it; perform nothing.

    Args:
        file: of the sweep (``docs/sweeps.md``).

    Raises:
        UserError: what is wrong in the file, or a run of this name exists and is something else.
        ArchiveCorrupt: a run is damaged.
    """
    with in_python():
        return records_of([step.record() for step in SweepPlan.read(Path(file)).steps()])


def sweep(
    file: str | Path,
    *,
    at_once: int | None = None,
    on_event: Callable[[SweepEvent], object] | None = None,
    engine: str | Sequence[str] | None = None,
    allow_paid: bool = False,
) -> SweepView:
    """Perform every variant of settings in a file with every seed, each as a run and a process of its own; blocks.

    The same call again goes on: finished runs are skipped, interrupted ones resumed. Ctrl-C once ends all runs in good
    order, twice at once.

    Args:
        file: of the sweep (``docs/sweeps.md``).
        at_once: runs at once; None: what the file says, or 1.
        on_event: is called with each start and end of a run.
        engine: address of the Docker engine of all runs, or several; None: the environment's.
        allow_paid: if true, a model ``auto`` may become one that costs money.

    Raises:
        UserError: what is wrong, before any run starts.
        ArchiveBusy: another process performs the sweep.
    """

    async def perform(session: ProgramWatcher) -> SweepView:
        session.allow_paid = allow_paid
        with use_engine(engine):
            return await _sweep(session, Path(file), at_once, on_event)

    return block(perform, None)


async def _sweep(
    session: ProgramWatcher,
    file: Path,
    at_once: int | None,
    on_event: Callable[[SweepEvent], object] | None,
) -> SweepView:
    if at_once is not None and not 1 <= at_once <= MOST_AT_ONCE:
        raise UserError(f"at_once {at_once}: must be from 1 to {MOST_AT_ONCE}")
    plan = SweepPlan.read(file).settle(partial(launch.name_models, watcher=session))

    def listen(told: SweepEvent) -> None:
        if on_event is not None:
            on_event(told)

    with plan.locked():
        made = plan.open(at_once, listen)

        def stop() -> bool:
            made.stop()
            return True

        session.stops_by(stop)
        made.look()
        await made.perform()
        made.look()
    return SweepView(made, sweep_record(made, plan.sweep.name))
