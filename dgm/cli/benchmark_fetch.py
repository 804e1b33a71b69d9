"""``dgm benchmark fetch``: get every image of a benchmark's tasks before a search needs it."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import as_json
from dgm.cli.benchmark_look import benchmark_settings, config_option, list_all_tasks, set_option
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json, make_console
from dgm.domain import TaskId
from dgm.errors import DgmError, UserError
from dgm.show.safe import neutralise, one_line

if TYPE_CHECKING:
    from dgm.benchmarks.swebench import SwebenchBenchmark
    from dgm.benchmarks.swebench_fetch import Estimate, Step
    from dgm.config import BenchmarksSettings
    from dgm.protocols import Benchmark
    from dgm.sandboxes.docker import DockerEngine

GB = 1e9
ON_DISK = 3
"""Size of an image on disk as a multiple of its download, approximately."""
Say = Callable[[str, str], None]
"""Callback that takes an image or instance and its progress."""


@dataclass(slots=True)
class FetchOutcome:
    """The outcome of a fetch."""

    ready: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The work to do for one benchmark, or for one part of a mixed one."""

    told: str
    """One line for people; empty if all images are here."""
    facts: Mapping[str, Any]
    do: Callable[[Say, FetchOutcome], None]


@click.command()
@click.argument("name")
@click.argument("task_ids", nargs=-1, metavar="[TASK]…")
@click.option("--yes", is_flag=True, help="Do not ask before anything is downloaded or built.")
@click.option("--workers", type=click.IntRange(1, 64), default=4, show_default=True, help="Images at once.")
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

    settings = benchmark_settings(config, assignments)
    engine = DockerEngine()
    opened = open_suite(name, engine, settings)
    plans = _make_plans(opened, [TaskId(task) for task in task_ids], engine, settings, workers)
    todo = [plan for plan in plans if plan.told]
    if todo and not yes:
        _confirm_fetch([plan.told for plan in todo], as_json=as_json)
    outcome = FetchOutcome()
    with _show_progress(quiet=as_json) as say:
        for plan in plans:
            plan.do(say, outcome)
    _write_outcome(outcome, [plan.facts for plan in plans], as_json=as_json)
    return FAILED if outcome.failed else 0


def _make_plans(
    opened: "Benchmark",
    tasks: Sequence[TaskId],
    engine: "DockerEngine",
    settings: "BenchmarksSettings",
    workers: int,
) -> Sequence[FetchPlan]:
    from dgm.benchmarks.mixed import MixedBenchmark
    from dgm.benchmarks.swebench import SwebenchBenchmark

    if isinstance(opened, MixedBenchmark):
        wanted: dict[str, list[TaskId]] = {}
        for task in tasks or [task.id for _, task in list_all_tasks(opened)]:
            opened.task(task)
            part, _, inner = task.partition("/")
            wanted.setdefault(part, []).append(TaskId(inner))
        return [
            plan
            for part, inner in wanted.items()
            for plan in _make_plans(opened.parts[part], inner, engine, settings, workers)
        ]
    chosen = list(tasks) or [task.id for _, task in list_all_tasks(opened)]
    if isinstance(opened, SwebenchBenchmark):
        return [_plan_instances(opened, chosen, engine, settings, workers)]
    return [_plan_images(opened, chosen, engine)]


def _plan_images(opened: "Benchmark", tasks: Sequence[TaskId], engine: "DockerEngine") -> FetchPlan:
    """Plan recipes and the tasks' own images, which are built one after the other."""
    from dgm.cli.benchmark_images import HERE, find_image_states

    users = {task.image: task.id for task in map(opened.task, tasks)}
    states = find_image_states(list(users))
    missing = [image for image, state in states.items() if state != HERE]

    def do(say: Say, outcome: FetchOutcome) -> None:
        for image, task in users.items():
            if image in missing:
                say(image, "building")
                try:
                    _build_image(opened, image, task, engine)
                except DgmError as error:
                    outcome.failed[image] = str(error)
                    say(image, f"failed: {error}")
                    continue
            outcome.ready.append(image)
            say(image, "ready")

    told = f"{opened.name}: {len(missing)} of {len(users)} images are to be built" if missing else ""
    facts = {"benchmark": opened.name, "here": len(users) - len(missing), "missing": len(missing)}
    return FetchPlan(told, facts, do)


def _build_image(opened: "Benchmark", image: str, task: TaskId, engine: "DockerEngine") -> None:
    if image.startswith("docker:"):
        # Asking for the workspace makes the image.
        opened.workspace(task)
        _check_here(image.removeprefix("docker:"), engine)
    else:
        engine.build(image)


def _check_here(reference: str, engine: "DockerEngine") -> None:
    """Check that the engine has the image, which a task may name without a recipe here.

    Raises:
        UserError: it does not.
    """
    from dgm.sandboxes.engine_client import convert_engine_errors, find_image

    with convert_engine_errors("look for an image"):
        found = find_image(engine.client, reference)
    if found is None:
        raise UserError(f"{reference} is not here: pull or build it")


def _plan_instances(
    opened: "SwebenchBenchmark",
    tasks: Sequence[TaskId],
    engine: "DockerEngine",
    settings: "BenchmarksSettings",
    workers: int,
) -> FetchPlan:
    from dgm.benchmarks import swebench_fetch
    from dgm.benchmarks.swebench_images import store_of

    instances = [opened.instance(task) for task in tasks]
    store, chosen = store_of(engine), settings.swebench.images
    found = swebench_fetch.estimate(instances, chosen, store)

    def do(say: Say, outcome: FetchOutcome) -> None:
        done = swebench_fetch.fetch(
            instances,
            chosen,
            store,
            at_once=workers,
            disk_gb=settings.swebench.disk_gb,
            report=lambda step: say(step.instance, _stage_text(step)),
        )
        outcome.ready += done.ready
        outcome.failed |= done.failed
        outcome.removed += done.removed

    facts = {
        "benchmark": opened.name,
        "here": found.here,
        "missing": found.missing,
        "download_bytes": found.download_bytes,
    }
    return FetchPlan(_estimate_text(opened.name, found, settings.swebench.disk_gb), facts, do)


def _estimate_text(name: str, found: "Estimate", disk_gb: float) -> str:
    if not found.missing:
        return ""
    if found.download_bytes is None:
        size = "how much that is, no registry tells"
    else:
        about = "about " if found.sampled else ""
        load = found.download_bytes / GB
        size = f"{about}{load:.1f} GB to download, about {ON_DISK * load:.1f} GB on disk, where {disk_gb:g} are allowed"
    return f"{name}: {found.missing} of {found.here + found.missing} instances have no image here; {size}"


def _stage_text(step: "Step") -> str:
    from dgm.benchmarks.swebench_fetch import Stage

    if step.stage is Stage.FAILED:
        return f"failed: {step.said}"
    if step.stage is Stage.PULLING and step.size:
        return f"pulling {step.came / 1e6:.0f} of {step.size / 1e6:.0f} MB"
    return step.stage.value


def _confirm_fetch(lines: Sequence[str], *, as_json: bool) -> None:
    for line in lines:
        sys.stderr.write(f"{neutralise(line)}\n")
    if as_json or not sys.stdin.isatty():
        raise UserError("nothing was fetched: say --yes to go on without being asked")
    if not click.confirm("Go on?", err=True, default=True):
        raise UserError("nothing was fetched")


def _write_outcome(outcome: FetchOutcome, facts: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
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
def _show_progress(*, quiet: bool) -> Iterator[Say]:
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
