"""``dgm sweep``: perform many runs from one file, some at once; the same command continues them."""

import asyncio
import shlex
import signal
import sys
from functools import partial
from pathlib import Path

import click

from dgm import launch
from dgm.cli.arguments import as_json, engine_option
from dgm.cli.complaint import FAILED, INTERRUPTED, LIMIT
from dgm.cli.output import emit_json
from dgm.cli.sweep_progress import SweepProgress, sweep_progress
from dgm.cli.watching import TerminalWatcher
from dgm.experiments.performing import Sweep
from dgm.experiments.plan import SweepPlan
from dgm.experiments.run_state import OVER, RunStage
from dgm.experiments.sweep_file import SweepFile
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
@engine_option
@as_json
def sweep(file: Path, at_once: int | None, dry_run: bool, as_json: bool) -> int:
    """Perform every variant of settings in FILE with every seed, each as a run of its own.

    The same command again goes on: finished runs are skipped, interrupted ones resumed. Ctrl-C ends all runs in good
    order; once more at once. What FILE may say: docs/sweeps.md.
    """
    plan = SweepPlan.read(file)
    if dry_run:
        _print_plan(plan, as_json=as_json)
        return 0
    plan = plan.settle(partial(launch.name_models, watcher=TerminalWatcher()))
    with plan.locked(), sweep_progress(plan.sweep.name, plan.runs, quiet=as_json) as shown:
        made = plan.open(at_once, shown.told)
        shown.attach(made)
        asyncio.run(_perform(made, shown))
    return _print_state(made, plan.sweep, as_json=as_json)


def _print_plan(plan: SweepPlan, *, as_json: bool) -> None:
    steps, sweep = plan.steps(), plan.sweep
    if as_json:
        emit_json({"sweep": sweep.name, "runs": [step.record() for step in steps]})
        return
    variants, seeds = count_text(len(sweep.variants), "variant"), count_text(len(sweep.section.seeds), "seed")
    sys.stdout.write(f"sweep {sweep.name}: {count_text(len(steps), 'run')} ({variants} × {seeds})\n")
    for step in steps:
        does = step.stage.value if step.over else f"dgm {shlex.join(step.words)}"
        sys.stdout.write(f"{one_line(step.run.name, 100)}  {one_line(does, 4_000)}\n")


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
