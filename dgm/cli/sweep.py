"""``dgm sweep``: perform many runs from one file, some at once; the same command continues them."""

import asyncio
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dgm import assemble
from dgm.archive.run import Run
from dgm.cli.arguments import as_json
from dgm.cli.complaint import FAILED, INTERRUPTED, LIMIT
from dgm.cli.consent import ask_to_spend
from dgm.cli.output import emit_json
from dgm.cli.sweep_progress import SweepProgress, sweep_progress
from dgm.config import Settings
from dgm.errors import UserError
from dgm.experiments.performing import Sweep
from dgm.experiments.run_state import OVER, RunStage, read_state
from dgm.experiments.sweep_file import SweepFile, read_sweep
from dgm.experiments.sweep_folder import SweepFolder
from dgm.experiments.sweep_plan import PlannedRun, check_unchanged, plan_runs, settle_models
from dgm.models.auto import settle_auto
from dgm.models.choose import AUTO, all_names
from dgm.publish.finding import archive_folders
from dgm.show.safe import one_line
from dgm.show.sweep_rows import outcome_text, sweep_lines, sweep_record
from dgm.show.terminal import write_lines
from dgm.show.words import count_text


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--at-once", type=click.IntRange(1, 256), help="Runs at once (default: what the file says, or 1)."
)
@click.option("--dry-run", is_flag=True, help="Check everything, and print what would be run.")
@as_json
def sweep(file: Path, at_once: int | None, dry_run: bool, as_json: bool) -> int:
    """Perform every variant of settings in FILE with every seed, each as a run of its own.

    The same command again goes on: finished runs are skipped, interrupted ones resumed. Ctrl-C ends all runs in good
    order; once more at once. What FILE may say: docs/sweeps.md.
    """
    planned = read_sweep(file)
    folder = SweepFolder(next(archive_folders()), planned.name)
    runs = plan_runs(planned)
    if dry_run:
        _check_begun(planned, folder, [run for run in runs if AUTO not in all_names(run.settings)])
        _print_plan(planned, folder, runs, as_json=as_json)
        return 0
    runs = settle_models(runs, _settle_model)
    _check_begun(planned, folder, runs)
    _check_parts(file, runs)
    lock = folder.lock()
    try:
        folder.write(file, runs)
        with sweep_progress(planned.name, runs, quiet=as_json) as shown:
            width = at_once or planned.section.at_once
            made = Sweep(runs, folder, width, planned.section.max_usd, shown.told)
            shown.attach(made)
            asyncio.run(_perform(made, shown))
    finally:
        lock.close()
    return _print_state(made, planned, as_json=as_json)


def _settle_model(settings: Settings) -> Settings:
    """Return the settings with ``auto`` replaced by a model; print the choice and its reason."""
    if AUTO not in all_names(settings):
        return settings
    settled, why = settle_auto(settings, ask_to_spend)
    sys.stderr.write(f"model: {why}\n")
    return settled


def _check_begun(sweep: SweepFile, folder: SweepFolder, runs: Sequence[PlannedRun]) -> None:
    """Check that existing runs with these names in the archive were begun by the same file.

    Raises:
        UserError: one is something else, or was begun with other settings.
        ArchiveCorrupt: one is damaged.
    """
    for planned in runs:
        where = folder.run(planned.name)
        if not where.exists():
            continue
        if not (where / "run.json").exists():
            raise UserError(
                f"{where}: is there already and is no run; move it, or give the sweep another name"
            )
        with Run.open(where) as run:
            check_unchanged(sweep.file, planned, run)


def _check_parts(file: Path, runs: Sequence[PlannedRun]) -> None:
    """Open each benchmark in its sandbox once, before anything starts; raise as ``assemble.parts_of``."""
    seen: list[tuple[Any, ...]] = []
    for run in runs:
        key = (run.settings.sandbox, run.settings.benchmark, run.settings.benchmarks)
        if key not in seen:
            try:
                assemble.parts_of(run.settings)
            except UserError as error:
                raise UserError(f"{file}: run {run.name}: {error}") from error
            seen.append(key)


def _print_plan(sweep: SweepFile, folder: SweepFolder, runs: Sequence[PlannedRun], *, as_json: bool) -> None:
    stages = {run.name: read_state(folder.run(run.name)).stage for run in runs}
    commands = {
        run.name: ["resume", run.name] if stages[run.name] is not RunStage.TO_COME else list(run.command())
        for run in runs
    }
    if as_json:
        rows = [
            {
                "run": run.name,
                "variant": run.variant,
                "seed": run.seed,
                "stage": stages[run.name].value,
                "command": None if stages[run.name] in OVER else ["dgm", *commands[run.name]],
            }
            for run in runs
        ]
        emit_json({"sweep": sweep.name, "runs": rows})
        return
    variants, seeds = count_text(len(sweep.variants), "variant"), count_text(len(sweep.section.seeds), "seed")
    sys.stdout.write(f"sweep {sweep.name}: {count_text(len(runs), 'run')} ({variants} × {seeds})\n")
    for run in runs:
        stage = stages[run.name]
        does = stage.value if stage in OVER else f"dgm {shlex.join(commands[run.name])}"
        sys.stdout.write(f"{one_line(run.name, 100)}  {one_line(does, 4_000)}\n")


async def _perform(made: Sweep, shown: SweepProgress) -> None:
    """Perform a sweep and listen for signals."""
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        shown.say_stopping(again=made.stopping)
        made.stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupted)
    made.look()
    watching = asyncio.create_task(shown.watch())
    try:
        await made.perform()
    finally:
        watching.cancel()
        shown.close()


def _print_state(made: Sweep, sweep: SweepFile, *, as_json: bool) -> int:
    """Print the state of the sweep and return the exit code."""
    made.look()
    code = _exit_code(made)
    if as_json:
        emit_json({**sweep_record(made, sweep.name), "exit_code": code})
    else:
        write_lines(sweep_lines(made.runs, made.standings, made.failures))
    sys.stderr.write(f"{outcome_text(made)}; {_next_step(made, sweep)}\n")
    return code


def _exit_code(made: Sweep) -> int:
    stages = [made.standings[run.name].stage for run in made.runs]
    if made.failures or RunStage.DAMAGED in stages:
        return FAILED
    if made.stopping and any(stage not in OVER for stage in stages):
        return INTERRUPTED
    return LIMIT if any(stage is not RunStage.FINISHED for stage in stages) else 0


def _next_step(made: Sweep, sweep: SweepFile) -> str:
    if all(made.standings[run.name].stage in OVER for run in made.runs):
        return f"compare with: dgm compare {sweep.name}"
    return f"go on with: dgm sweep {shlex.quote(str(sweep.file))}"
