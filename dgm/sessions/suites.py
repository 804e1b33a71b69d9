"""Task suites: what there is, what is in one, and whether its tasks are sound."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgm.benchmarks import verification
from dgm.benchmarks.formats import FORMATS, all_formats, format_of
from dgm.benchmarks.harbor import ImportReport, import_harbor
from dgm.benchmarks.opening import NoSandboxEngine as NoSandboxEngine  # noqa: PLC0414  (re-exported)
from dgm.benchmarks.opening import open_suite
from dgm.benchmarks.suites import SuiteBenchmark, suite_names
from dgm.benchmarks.verification import TaskVerification
from dgm.config import BenchmarksSettings, resolve
from dgm.domain import Snapshot, Split, Task, TaskId
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.plugins import find_installed
from dgm.protocols import Benchmark, InImage, SandboxEngine
from dgm.sandboxes import recipes
from dgm.sessions.image_states import find_image_states
from dgm.standstill import repeat_after_standstill
from dgm.this_machine import machine_name

FOLDER = ("FOLDER", "a folder with a suite.toml (dgm docs suites says how to make one)")
SEVERAL = ("A+B", "several of these as one")
Tick = Callable[[TaskId, Sequence[str]], None]
"""Callback that takes a task and what is wrong with it."""


def benchmark_settings(config: Path | None, assignments: Sequence[str]) -> BenchmarksSettings:
    """Return the settings to open benchmarks with.

    Raises:
        UserError: a key is unknown or a value does not fit.
    """
    return resolve(config, assignments, {}).benchmarks


def list_all_tasks(opened: Benchmark) -> list[tuple[Split, Task]]:
    """Return every task with its split."""
    return [(split, task) for split in Split for task in opened.tasks(split)]


def list_suites() -> dict[str, Any]:
    """Return the shipped suites, the plug-ins, and how the others are named, as JSON."""
    formats = all_formats()
    names = [*suite_names(), *(f"{each.name}:" for each in formats if each.shipped)]
    forms = [FOLDER, *(form for each in formats for form in each.forms), SEVERAL]
    shipped = [_benchmark_summary(name, open_suite(name, NoSandboxEngine())) for name in names]
    plugged = [
        {"name": name, "from": point.dist.name if point.dist else "?", "opens": point.value}
        for name, point in find_installed("benchmarks").items()
    ]
    named = [{"form": form, "meaning": meaning} for form, meaning in forms]
    return {"suites": shipped, "plugins": plugged, "named": named}


def _benchmark_summary(name: str, opened: Benchmark) -> dict[str, Any]:
    kind, colon, place = name.partition(":")
    about = format_of(kind).shipped if colon and not place and kind in FORMATS else ""
    counts = {split.value: len(opened.tasks(split)) for split in Split}
    described = opened.description if isinstance(opened, SuiteBenchmark) else about
    return {"name": name, "description": described, "tasks": counts, "version": opened.version}


def describe_suite(name: str, opened: Benchmark) -> dict[str, Any]:
    """Return a suite as JSON: its tasks by split, tags, images and whether they are here, and what is left out.

    Args:
        name: by which it was opened.
        opened: the suite.
    """
    tasks = [task for _, task in list_all_tasks(opened)]
    images = Counter(task.image for task in tasks)
    tags = Counter(tag for task in tasks for tag in task.tags)
    here = find_image_states(list(images))
    listed = [{"image": image, "tasks": count, "state": here[image]} for image, count in images.most_common()]
    return {
        **_benchmark_summary(name, opened),
        "tags": dict(tags.most_common()),
        "images": listed,
        "left_out": list(verification.list_excluded_defects(opened)),
        "ids": {split.value: [task.id for task in opened.tasks(split)] for split in Split},
    }


def task_facts(task: Task) -> dict[str, Any]:
    """Return a task without its prompt and its files."""
    return {
        "task": task.id,
        "benchmark": task.benchmark,
        "image": task.image,
        "workdir": task.workdir,
        "timeout_s": task.timeout_s,
        "tags": list(task.tags),
    }


def describe_task(task: Task, workspace: Snapshot | InImage) -> dict[str, Any]:
    """Return a task as JSON, as an agent sees it: never a hidden test."""
    files = "in the image" if isinstance(workspace, InImage) else list(workspace)
    return {**task_facts(task), "prompt": task.prompt, "workspace": files}


def read_workspace(opened: Benchmark, task: Task) -> Snapshot | InImage:
    """Return the content of the task's workdir; do not fetch an image for it."""
    try:
        return opened.workspace(task.id)
    except DgmError:
        if not task.image.startswith("docker:"):
            raise
        return InImage()


def select_tasks(opened: Benchmark, task_ids: Sequence[str]) -> Sequence[TaskId]:
    """Return the named tasks, each once; all if none is named.

    Raises:
        UserError: there is no task, or no such task.
    """
    wanted = [TaskId(task) for task in task_ids] or [task.id for _, task in list_all_tasks(opened)]
    if not wanted:
        raise UserError(f"benchmark {opened.name!r} has no task to verify")
    for task in wanted:
        opened.task(task)
    return list(dict.fromkeys(wanted))


@dataclass(frozen=True, slots=True)
class SuiteVerification:
    """Faults of the verified tasks of a suite."""

    benchmark: str
    version: str
    problems: Mapping[TaskId, Sequence[str]]
    """Each verified task → what is wrong with it; nothing if it is sound."""
    left_out: Sequence[str]
    """Tasks that the suite itself leaves out, a sentence each."""
    notes: Mapping[TaskId, Sequence[str]] = field(default_factory=dict)
    """Verified task → what to know of it, though it may be sound."""
    outputs: Mapping[TaskId, str] = field(default_factory=dict)
    """Unsound task → the end of what its tests printed."""

    @property
    def unsound(self) -> Mapping[TaskId, Sequence[str]]:
        """The tasks with a problem."""
        return {task: list(problems) for task, problems in self.problems.items() if problems}

    def record(self) -> dict[str, Any]:
        """Return the document that ``dgm benchmark verify --json`` prints."""
        return {
            "benchmark": self.benchmark,
            "version": self.version,
            "verified": list(self.problems),
            "sound": len(self.problems) - len(self.unsound),
            "problems": self.unsound,
            "left_out": list(self.left_out),
            "notes": {task: list(notes) for task, notes in self.notes.items()},
            "outputs": dict(self.outputs),
        }


async def verify_tasks(
    opened: Benchmark, engine: SandboxEngine, tasks: Sequence[TaskId], workers: int, tick: Tick
) -> SuiteVerification:
    """Grade tasks without a change, which has to fail, and with their reference fix, which has to pass.

    Args:
        opened: in this engine.
        engine: of the sandboxes.
        tasks: to verify.
        workers: tasks at once.
        tick: is called with each task when it is done.
    """
    labels = {"dgm.run": f"verify-{uuid.uuid4().hex}", "dgm.host": machine_name()}
    slots = asyncio.Semaphore(workers)

    async def one(task: TaskId) -> TaskVerification:
        async with slots:
            try:
                said = await repeat_after_standstill(
                    lambda: verification.verify_with_notes(opened, task, labels),
                    lambda done: bool(done.defects),
                )
            except Infrastructure as error:
                said = TaskVerification([f"could not be verified: {error}"])
            except UserError as error:
                said = TaskVerification([str(error)])
        tick(task, said.defects)
        return said

    try:
        async with asyncio.TaskGroup() as group:
            running = {task: group.create_task(one(task)) for task in tasks}
    finally:
        await engine.reap(labels)
    found = {task: done.result() for task, done in running.items()}
    missing = verification.list_excluded_defects(opened)
    problems = {task: said.defects for task, said in found.items()}
    notes = {task: said.notes for task, said in found.items() if said.notes}
    outputs = {task: said.output for task, said in found.items() if said.output}
    return SuiteVerification(opened.name, opened.version, problems, missing, notes, outputs)


def import_suite(folder: Path, target: Path, image: str, holdout: float) -> tuple[ImportReport, Benchmark]:
    """Write tasks in the layout of Harbor or Terminal-Bench 2 as a suite of the user's own.

    Args:
        folder: holds the tasks.
        target: a new folder.
        image: the recipe whose image all tasks work in; empty: the tasks' own.
        holdout: share of the tasks that is kept for reports, from 0 to 1.

    Raises:
        UserError: there is no such recipe, or the target lies in the folder or exists.
    """
    if image and not image.startswith("docker:"):
        recipes.load(image)
    if target.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"{target}: lies in the folder that is imported; give another one")
    done = import_harbor(folder, target, image, holdout)
    return done, open_suite(str(target), NoSandboxEngine())
