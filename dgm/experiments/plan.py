"""A sweep from its file to its first process: what it would do, and every error before anything starts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from dgm import assemble
from dgm.archive.finding import archive_folders
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.errors import UserError
from dgm.experiments.performing import Listener, Sweep
from dgm.experiments.run_state import OVER, RunStage, read_state
from dgm.experiments.sweep_file import SweepFile, read_sweep
from dgm.experiments.sweep_folder import SweepFolder
from dgm.experiments.sweep_plan import PlannedRun, check_unchanged, plan_runs, settle_models
from dgm.models.choose import AUTO, all_names
from dgm.models.reach import require_own_file


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """Next step of a sweep for one of its runs."""

    run: PlannedRun
    stage: RunStage
    words: Sequence[str]
    """The words behind ``dgm`` that begin the run, or go on with it."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.stage in OVER

    def record(self) -> dict[str, Any]:
        """Return the step as JSON."""
        return {
            "run": self.run.name,
            "variant": self.run.variant,
            "seed": self.run.seed,
            "stage": self.stage.value,
            "command": None if self.over else ["dgm", *self.words],
        }


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The runs of a sweep's file, and where they lie."""

    sweep: SweepFile
    folder: SweepFolder
    runs: Sequence[PlannedRun]

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read the file of a sweep, which lies in the first folder where runs are looked for.

        Raises:
            UserError: what is wrong in the file.
        """
        sweep = read_sweep(file)
        return cls(sweep, SweepFolder(next(archive_folders()), sweep.name), plan_runs(sweep))

    def steps(self) -> Sequence[PlannedStep]:
        """Return what would be done for each run.

        Raises:
            UserError: a run of this name exists and is something else, or was begun with other settings.
            ArchiveCorrupt: one is damaged.
        """
        _check_begun(self, [run for run in self.runs if AUTO not in all_names(run.settings)])
        return [self._step(run) for run in self.runs]

    def settle(self, settle: Callable[[Settings], Settings]) -> "SweepPlan":
        """Return the plan with a model in place of ``auto``, and find every error before anything starts.

        Args:
            settle: puts a model in place of ``auto``; each variant is asked for once.

        Raises:
            ConsentNeeded: the file may be a stranger's, and sends a key to an address of its own.
            UserError: as ``steps``, or a benchmark or a sandbox cannot be opened.
            ArchiveCorrupt: a run is damaged.
        """
        for run in self.runs:
            require_own_file(self.sweep.file, run.settings, run.settings)
        settled = replace(self, runs=settle_models(self.runs, settle))
        _check_begun(settled, settled.runs)
        _check_parts(settled)
        return settled

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from performing the sweep, and record its runs.

        Raises:
            UserError: a run has the sweep's name, or its folder cannot be written.
            ArchiveBusy: another process performs it.
        """
        lock = self.folder.lock()
        try:
            self.folder.write(self.sweep.file, self.runs)
            yield
        finally:
            lock.close()

    def open(self, at_once: int | None, listen: Listener) -> Sweep:
        """Return the sweep, to be performed while it is ``locked``.

        Args:
            at_once: runs at once; None: what the file says, or 1.
            listen: hears of each start and end of a run.
        """
        section = self.sweep.section
        return Sweep(self.runs, self.folder, at_once or section.at_once, section.max_usd, listen)

    def _step(self, run: PlannedRun) -> PlannedStep:
        stage = read_state(self.folder.run(run.name)).stage
        words = ["resume", run.name] if stage is not RunStage.TO_COME else list(run.command())
        return PlannedStep(run, stage, words)


def _check_begun(plan: SweepPlan, runs: Sequence[PlannedRun]) -> None:
    """Check that existing runs with these names in the archive were begun by the same file.

    Raises:
        UserError: one is something else, or was begun with other settings.
        ArchiveCorrupt: one is damaged.
    """
    for planned in runs:
        where = plan.folder.run(planned.name)
        if not where.exists():
            continue
        if not (where / "run.json").exists():
            raise UserError(
                f"{where}: is there already and is no run; move it, or give the sweep another name"
            )
        with Run.open(where) as run:
            check_unchanged(plan.sweep.file, planned, run)


def _check_parts(plan: SweepPlan) -> None:
    """Open each benchmark in its sandbox once, before anything starts; raise as ``assemble.parts_of``."""
    seen: list[tuple[Any, ...]] = []
    for run in plan.runs:
        key = (run.settings.sandbox, run.settings.benchmark, run.settings.benchmarks)
        if key not in seen:
            try:
                assemble.parts_of(run.settings)
            except UserError as error:
                raise UserError(f"{plan.sweep.file}: run {run.name}: {error}") from error
            seen.append(key)
