"""Images of a benchmark's tasks, fetched or built before a search needs them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dgm.benchmarks import swebench_images
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.swebench import SwebenchBenchmark
from dgm.config import BenchmarksSettings
from dgm.domain import TaskId
from dgm.errors import DgmError, UserError
from dgm.protocols import Benchmark
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_client import convert_engine_errors, find_image
from dgm.sessions.image_states import HERE, find_image_states
from dgm.sessions.suites import list_all_tasks

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


def plan_fetch(
    opened: Benchmark,
    tasks: Sequence[TaskId],
    engine: DockerEngine,
    settings: BenchmarksSettings,
    workers: int,
) -> Sequence[FetchPlan]:
    """Return what is to be done for a benchmark, part by part.

    Args:
        opened: the benchmark.
        tasks: only their images; if empty, those of all tasks.
        engine: that keeps the images.
        settings: of benchmarks.
        workers: images at once.

    Raises:
        UserError: there is no such task.
    """
    if isinstance(opened, MixedBenchmark):
        wanted: dict[str, list[TaskId]] = {}
        for task in tasks or [task.id for _, task in list_all_tasks(opened)]:
            opened.task(task)
            part, _, inner = task.partition("/")
            wanted.setdefault(part, []).append(TaskId(inner))
        return [
            plan
            for part, inner in wanted.items()
            for plan in plan_fetch(opened.parts[part], inner, engine, settings, workers)
        ]
    chosen = list(tasks) or [task.id for _, task in list_all_tasks(opened)]
    if isinstance(opened, SwebenchBenchmark):
        return [_plan_instances(opened, chosen, engine, settings, workers)]
    return [_plan_images(opened, chosen, engine)]


def _plan_images(opened: Benchmark, tasks: Sequence[TaskId], engine: DockerEngine) -> FetchPlan:
    """Plan recipes and the tasks' own images, which are built one after the other."""
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


def _build_image(opened: Benchmark, image: str, task: TaskId, engine: DockerEngine) -> None:
    if image.startswith("docker:"):
        # Asking for the workspace makes the image.
        opened.workspace(task)
        _check_here(image.removeprefix("docker:"), engine)
    else:
        engine.build(image)


def _check_here(reference: str, engine: DockerEngine) -> None:
    """Check that the engine has the image, which a task may name without a recipe here.

    Raises:
        UserError: it does not.
    """
    with convert_engine_errors("look for an image"):
        found = find_image(engine.client, reference)
    if found is None:
        raise UserError(f"{reference} is not here: pull or build it")


def _plan_instances(
    opened: SwebenchBenchmark,
    tasks: Sequence[TaskId],
    engine: DockerEngine,
    settings: BenchmarksSettings,
    workers: int,
) -> FetchPlan:
    instances = [opened.instance(task) for task in tasks]
    store, images = swebench_images.store_of(engine), settings.swebench.images
    missing = sum(not store.has(swebench_images.tag_of(instance, images)) for instance in instances)
    disk_gb = settings.swebench.disk_gb

    def do(say: Say, outcome: FetchOutcome) -> None:
        fetched = swebench_images.fetch(
            instances, images, store, workers=workers, disk_gb=disk_gb, progress=say
        )
        outcome.ready += fetched.ready
        outcome.failed |= fetched.failed
        outcome.removed += fetched.removed

    told = (
        f"{opened.name}: {missing} of {len(instances)} instances have no image here; "
        f"an image takes a few GB on disk, of which {disk_gb:g} are allowed in all"
    )
    facts = {"benchmark": opened.name, "here": len(instances) - missing, "missing": missing}
    return FetchPlan(told if missing else "", facts, do)
