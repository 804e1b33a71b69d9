"""``dgm benchmark fetch``: get every image of a benchmark's tasks before a search needs it."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import as_json, engine_option
from dgm.cli.benchmark_look import config_option, set_option
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json, make_console
from dgm.domain import TaskId
from dgm.errors import UserError
from dgm.show.safe import neutralise, one_line

if TYPE_CHECKING:
    from dgm.sessions.suite_images import FetchOutcome, Say


@click.command()
@click.argument("name")
@click.argument("task_ids", nargs=-1, metavar="[TASK]…")
@click.option("--yes", is_flag=True, help="Do not ask before anything is downloaded or built.")
@click.option("--workers", type=click.IntRange(1, 64), default=4, show_default=True, help="Images at once.")
@engine_option
@config_option
@set_option
@as_json
def fetch(
    name: str,
    task_ids: tuple[str, ...],
    yes: bool,
    workers: int,
    config: Path | None,
    assignments: tuple[str, ...],
    as_json: bool,
) -> int:
    """Fetch or build the images of a benchmark's tasks, or of those that are named; go on after an interruption.

    Says first how much there is to do. Images of SWE-bench are kept within benchmarks.swebench.disk_gb.
    """
    from dgm.benchmarks.opening import open_suite
    from dgm.sandboxes.docker import DockerEngine
    from dgm.sessions.suite_images import FetchOutcome, plan_fetch
    from dgm.sessions.suites import benchmark_settings

    settings = benchmark_settings(config, assignments)
    engine = DockerEngine()
    opened = open_suite(name, engine, settings)
    plans = plan_fetch(opened, [TaskId(task) for task in task_ids], engine, settings, workers)
    todo = [plan for plan in plans if plan.told]
    if todo and not yes:
        _confirm_fetch([plan.told for plan in todo], as_json=as_json)
    outcome = FetchOutcome()
    with _show_progress(quiet=as_json) as say:
        for plan in plans:
            plan.do(say, outcome)
    _write_outcome(outcome, [plan.facts for plan in plans], as_json=as_json)
    return FAILED if outcome.failed else 0


def _confirm_fetch(lines: Sequence[str], *, as_json: bool) -> None:
    for line in lines:
        sys.stderr.write(f"{neutralise(line)}\n")
    if as_json or not sys.stdin.isatty():
        raise UserError("nothing was fetched: say --yes to go on without being asked")
    if not click.confirm("Go on?", err=True, default=True):
        raise UserError("nothing was fetched")


def _write_outcome(outcome: "FetchOutcome", facts: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        emit_json(
            {
                "before": [dict(each) for each in facts],
                "ready": outcome.ready,
                "failed": outcome.failed,
                "removed": outcome.removed,
            }
        )
        return
    for name, why in outcome.failed.items():
        sys.stdout.write(f"{neutralise(name)}: {one_line(why, 600)}\n")
    gone = f", {len(outcome.removed)} others removed to make room" if outcome.removed else ""
    sys.stdout.write(f"{len(outcome.ready)} are ready, {len(outcome.failed)} failed{gone}\n")


@contextmanager
def _show_progress(*, quiet: bool) -> Iterator["Say"]:
    """Show current work on a terminal, else a line for each change; nothing when quiet. All goes to stderr."""
    if quiet:
        yield lambda _name, _state: None
        return
    if not sys.stderr.isatty():
        yield _LineProgress()
        return
    from rich.live import Live
    from rich.text import Text

    states: dict[str, str] = {}
    ended = 0
    with Live(console=make_console(stderr=True), refresh_per_second=4, transient=True) as live:

        def say(name: str, state: str) -> None:
            nonlocal ended
            states[name] = state
            if state == "ready" or state.startswith("failed"):
                ended += 1
                del states[name]
            rows = [f"{one_line(each, 60):<60} {one_line(now, 40)}" for each, now in states.items()]
            live.update(Text("\n".join([f"{ended} done", *rows]), no_wrap=True))

        yield say


class _LineProgress:
    """Progress as lines: one whenever the state's first word changes."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def __call__(self, name: str, state: str) -> None:
        word = state.partition(" ")[0]
        if self._last.get(name) != word:
            self._last[name] = word
            sys.stderr.write(f"{neutralise(name):<40} {one_line(state, 300)}\n")
