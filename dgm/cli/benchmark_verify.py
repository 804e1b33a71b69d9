"""``dgm benchmark verify``: grade every task without a change and with its reference fix, many at once."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dgm.cli.arguments import as_json, engine_option, sandbox_option
from dgm.cli.benchmark_look import config_option, set_option
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json, make_console
from dgm.domain import TaskId
from dgm.show.safe import neutralise

if TYPE_CHECKING:
    from dgm.sessions.suites import SuiteVerification

Tick = Callable[[TaskId, Sequence[str]], None]


@click.command()
@click.argument("name")
@click.argument("task_ids", nargs=-1, metavar="[TASK]…")
@click.option("--workers", type=click.IntRange(1, 256), default=2, show_default=True, help="Tasks at once.")
@sandbox_option("auto")
@engine_option
@config_option
@set_option
@as_json
def verify(
    name: str,
    task_ids: tuple[str, ...],
    workers: int,
    sandbox: str,
    config: Path | None,
    assignments: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check that doing nothing fails and the reference fix passes, for all tasks or those that are named.

    Under a task that is not sound stands the end of what its tests printed.

    Exits 1 if any task is not sound.
    """
    from dgm.benchmarks.opening import open_suite
    from dgm.config import resolve
    from dgm.sandboxes.choose import choose
    from dgm.sessions.suites import select_tasks, verify_tasks

    settings = resolve(config, assignments, {})
    engine = choose(sandbox, settings)
    opened = open_suite(name, engine, settings.benchmarks, settings.grading)
    wanted = select_tasks(opened, task_ids)
    with _show_progress(len(wanted), quiet=as_json) as tick:
        found = asyncio.run(verify_tasks(opened, engine, wanted, workers, tick))
    if as_json:
        emit_json(found.record())
    else:
        _write_findings(found)
    return FAILED if found.unsound else 0


def _write_findings(found: "SuiteVerification") -> None:
    sys.stdout.writelines(f"left out: {neutralise(problem)}\n" for problem in found.left_out)
    for task, notes in found.notes.items():
        sys.stdout.writelines(f"{neutralise(task)}: note: {neutralise(note)}\n" for note in notes)
    for task, problems in found.unsound.items():
        sys.stdout.writelines(f"{neutralise(task)}: {neutralise(problem)}\n" for problem in problems)
        lines = found.outputs.get(task, "").splitlines()
        sys.stdout.writelines(f"    | {neutralise(line)}\n" for line in lines)
    verified = len(found.problems)
    sys.stdout.write(f"{verified - len(found.unsound)} of {verified} tasks are sound\n")


def _show_progress(total: int, *, quiet: bool) -> AbstractContextManager[Tick]:
    """Show a bar on a terminal, else a line per task; nothing when quiet. All goes to stderr."""
    if quiet:
        return nullcontext(lambda _task, _problems: None)
    return _ProgressBar(total) if sys.stderr.isatty() else nullcontext(_make_line_tick(total))


def _make_line_tick(total: int) -> Tick:
    done = 0

    def tick(task: TaskId, problems: Sequence[str]) -> None:
        nonlocal done
        done += 1
        state = "NOT SOUND" if problems else "sound"
        sys.stderr.write(f"{done:>{len(str(total))}}/{total}  {state:<9}  {neutralise(task)}\n")

    return tick


class _ProgressBar(AbstractContextManager[Tick]):
    def __init__(self, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("verifying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._shown = Progress(*columns, TextColumn("{task.description}"), console=make_console(stderr=True))
        self._row = self._shown.add_task("", total=total)
        self._unsound = 0

    def __enter__(self) -> Tick:
        self._shown.start()
        return self._tick

    def __exit__(self, *_: object) -> None:
        self._shown.stop()

    def _tick(self, task: TaskId, problems: Sequence[str]) -> None:  # noqa: ARG002  (only how many is shown)
        self._unsound += bool(problems)
        said = f"{self._unsound} not sound" if self._unsound else ""
        self._shown.update(self._row, advance=1, description=said)
