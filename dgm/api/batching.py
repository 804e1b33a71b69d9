"""Batches of searches: every combination of varied settings with every random seed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dgm import assemble, launch
from dgm.api.arguments import SettingValues, split_engine
from dgm.api.running import run_session
from dgm.api.watcher import Watcher
from dgm.archive.durable import make_runs_folder
from dgm.archive.finding import archive_folders
from dgm.batch.perform import LOGS, Batch, RunState, Stage
from dgm.batch.plan import PlannedRun, Seeds, Vary, check_existing, plan_runs, settle_models
from dgm.benchmarks.opening import make_paths_absolute
from dgm.config import Settings
from dgm.domain import Budget
from dgm.errors import UserError
from dgm.models.reach import file_models, require_own_file
from dgm.sandboxes.engine_address import use_engine
from dgm.search.start import find_priced_models
from dgm.views.agents import AgentRow
from dgm.views.values import View

MAX_PARALLEL = 256


class BatchRunView(View):
    """A run of a batch."""

    run: str
    variant: str
    """Short name of its combination of varied settings; empty if nothing is varied."""
    seed: int
    stage: Stage
    state: str
    """The run's own state, or why it failed."""
    log: str
    """File with the output of its process."""
    agents: int = 0
    evaluations: int = 0
    """Graded evaluations."""
    best: AgentRow | None = None
    usd: float = 0.0

    @classmethod
    def load(cls, run: PlannedRun, state: RunState, archive: Path) -> "BatchRunView":
        """Return the view of a run in a state."""
        view = state.run
        return cls(
            run=run.name,
            variant=run.variant,
            seed=run.settings.seed,
            stage=state.stage,
            state=state.message,
            log=str(archive / LOGS / f"{run.name}.log"),
            agents=view.agents if view else 0,
            evaluations=view.evaluations.graded if view else 0,
            best=view.best if view else None,
            usd=view.spend.usd if view else 0.0,
        )


class BatchView(View):
    """A batch of runs at the end of a session."""

    name: str
    runs: tuple[BatchRunView, ...]
    exit_code: int
    """0: all runs ended at their goals; 3: some at a limit; 130: the batch was stopped; 1: a run failed."""


def evolve_batch(
    file: str | Path | None = None,
    *,
    preset: str | None = None,
    name: str | None = None,
    seeds: Seeds | None = None,
    vary: Vary = (),
    parallel: int = 1,
    settings: SettingValues | None = None,
    allow_paid: bool = False,
    on_run: Callable[[BatchRunView], object] | None = None,
    watcher: Watcher | None = None,
) -> BatchView:
    """Search with every combination of varied settings and seeds, each as a run and a process of its own.

    The same call again continues: runs that ended are skipped, interrupted ones resumed. Ctrl-C once ends all runs
    gracefully, twice at once.

    Args:
        file: TOML file of settings.
        preset: begin with the settings of a published design; the file and ``settings`` win.
        name: beginning of the runs' names [default: the name of the file or preset].
        seeds: random seeds, one run each: 1:4 for 1, 2 and 3, or a list.
        vary: setting → values to try; every combination is a variant.
        parallel: runs at a time, each with its own workers.
        settings: any further setting by its dotted name, such as ``{"model": "offline", "budget.usd": 5}``.
        allow_paid: whether the model ``auto`` may be one that costs money.
        on_run: is called with each run that begins or ends.
        watcher: is informed and asked; replaces ``allow_paid``.

    Raises:
        UserError: what is wrong, before any run starts.
    """
    if not 1 <= parallel <= MAX_PARALLEL:
        raise UserError(f"{parallel}: must be from 1 to {MAX_PARALLEL}", argument="parallel")
    source = Path(file) if file is not None else None
    name = name or (source.stem if source else preset or "")
    if not name:
        raise UserError("several runs need a name to begin theirs with", argument="name")
    watcher = watcher or Watcher(allow_paid=allow_paid)
    others, engines = split_engine(settings)
    runs = [
        replace(run, settings=make_paths_absolute(run.settings))
        for run in plan_runs(name, (source, others, {}), seeds, vary, preset)
    ]
    archive = next(archive_folders())
    make_runs_folder(archive)

    def listen(run: PlannedRun, state: RunState) -> None:
        if on_run is not None:
            on_run(BatchRunView.load(run, state, archive))

    async def perform() -> Batch:
        with use_engine(engines):
            batch = Batch(_prepare(runs, source, archive, watcher), archive, parallel, engines, listen)
            watcher.stops_by(batch.stop)
            await batch.perform()
            return batch

    batch = run_session(perform, watcher)
    views = tuple(BatchRunView.load(run, batch.states[run.name], archive) for run in batch.runs)
    return BatchView(name=name, runs=views, exit_code=_exit_code(batch))


def _prepare(runs: list[PlannedRun], file: Path | None, archive: Path, watcher: Watcher) -> list[PlannedRun]:
    """Find every error before any run starts; return the runs with a model in place of ``auto``."""
    for run in runs:
        run.receiver_words()
        if file:
            require_own_file(file, run.settings, file_models(file))
    settled = settle_models(runs, lambda settings: launch.name_models(settings, watcher))
    for run in settled:
        check_existing(run, archive / run.name)
    variants = {run.variant: run.settings for run in settled}
    with watcher.step("opening the benchmarks and their sandboxes"):
        for settings in variants.values():
            assemble.parts_of(settings)
    if priced := [run.settings for run in settled if _is_priced(run.settings)]:
        watcher.confirm(priced[0], _sum_budgets([settings.budget.budget() for settings in priced]), 0.0)
    return list(settled)


def _is_priced(settings: Settings) -> bool:
    try:
        return bool(find_priced_models(settings))
    except UserError:
        # The run itself reports a model without a price before anything costs.
        return False


def _sum_budgets(budgets: list[Budget]) -> Budget:
    """Return the limits of all runs together; a limit that one of them lacks is none."""

    def total(limits: list[float | None]) -> float | None:
        return None if None in limits else sum(limit or 0 for limit in limits)

    tokens = total([budget.tokens for budget in budgets])
    evaluations = total([budget.evaluations for budget in budgets])
    return replace(
        budgets[0],
        usd=total([budget.usd for budget in budgets]),
        tokens=None if tokens is None else int(tokens),
        evaluations=None if evaluations is None else int(evaluations),
    )


def _exit_code(batch: Batch) -> int:
    stages = {state.stage for state in batch.states.values()}
    if Stage.FAILED in stages:
        return 1
    if batch.stopping and stages - {Stage.FINISHED, Stage.SPENT}:
        return 130
    return 0 if stages == {Stage.FINISHED} else 3
