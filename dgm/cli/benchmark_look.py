"""``dgm benchmark list`` and ``show``: the available benchmarks, and a task as an agent sees it."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json
from dgm.domain import Snapshot, Split, Task, TaskId
from dgm.show.safe import neutralise, one_line

if TYPE_CHECKING:
    from dgm.config import BenchmarksSettings
    from dgm.protocols import Benchmark, InImage

FOLDER = ("FOLDER", "a folder with a suite.toml (dgm docs suites says how to make one)")
SEVERAL = ("A+B", "several of these as one")
FILES_SHOWN, IMAGES_SHOWN, TAGS_SHOWN = 60, 12, 24
set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting by dotted name, such as benchmarks.swebench.subset=papers-60.",
)
config_option = click.option(
    "--config", type=click.Path(path_type=Path), help="TOML file of settings, as for dgm run."
)


def benchmark_settings(config: Path | None, assignments: Sequence[str]) -> "BenchmarksSettings":
    """Return the settings to open benchmarks with.

    Raises:
        UserError: a key is unknown or a value does not fit.
    """
    from dgm.config import resolve

    return resolve(config, assignments, {}).benchmarks


@click.command(name="list")
@as_json
def list_(as_json: bool) -> None:
    """List the shipped suites and the plug-ins, and say how the others are named."""
    from dgm.benchmarks.formats import all_formats
    from dgm.benchmarks.opening import open_suite
    from dgm.benchmarks.suites import suite_names
    from dgm.plugins import find_installed

    formats = all_formats()
    names = [*suite_names(), *(f"{each.name}:" for each in formats if each.shipped)]
    forms = [FOLDER, *(form for each in formats for form in each.forms), SEVERAL]
    shipped = [_benchmark_summary(name, open_suite(name, NoSandboxEngine())) for name in names]
    plugged = [
        {"name": name, "from": point.dist.name if point.dist else "?", "opens": point.value}
        for name, point in find_installed("benchmarks").items()
    ]
    if as_json:
        named = [{"form": form, "meaning": meaning} for form, meaning in forms]
        emit_json({"suites": shipped, "plugins": plugged, "named": named})
        return
    for suite in shipped:
        counts = ", ".join(f"{split} {n}" for split, n in suite["tasks"].items())
        sys.stdout.write(f"{suite['name']:<14} {counts}\n{'':<14} {neutralise(suite['description'])}\n")
    for plugin in plugged:
        sys.stdout.write(f"{plugin['name']:<14} plug-in of {plugin['from']}\n")
    sys.stdout.write("\nothers are named so:\n")
    for form, meaning in forms:
        sys.stdout.write(f"  {form:<48} {meaning}\n")


@click.command()
@click.argument("name")
@click.argument("task_id", required=False, metavar="[TASK]")
@config_option
@set_option
@as_json
def show(
    name: str, task_id: str | None, config: Path | None, assignments: tuple[str, ...], as_json: bool
) -> None:
    """Show a benchmark, or one of its tasks as an agent sees it: never a hidden test."""
    from dgm.benchmarks.opening import open_suite

    opened = open_suite(name, NoSandboxEngine(), benchmark_settings(config, assignments))
    if task_id is None:
        _show_benchmark(name, opened, as_json)
    else:
        _show_task(opened, TaskId(task_id), as_json)


class NoSandboxEngine:
    """A sandbox engine for commands that open no sandbox."""

    name = "none"

    def open(self, spec: Any) -> Any:  # noqa: ARG002  (the shape of an engine; nothing ever comes back)
        """Refuse to open a sandbox."""
        raise AssertionError("a command that only looks opened a sandbox")

    async def reap(self, labels: Mapping[str, str]) -> int:  # noqa: ARG002  (there is nothing to remove)
        """Remove nothing."""
        return 0


def list_all_tasks(opened: "Benchmark") -> list[tuple[Split, Task]]:
    """Return every task with its split."""
    return [(split, task) for split in Split for task in opened.tasks(split)]


def _benchmark_summary(name: str, opened: "Benchmark") -> dict[str, Any]:
    from dgm.benchmarks.formats import FORMATS, format_of
    from dgm.benchmarks.suites import SuiteBenchmark

    kind, colon, place = name.partition(":")
    about = format_of(kind).shipped if colon and not place and kind in FORMATS else ""
    counts = {split.value: len(opened.tasks(split)) for split in Split}
    described = opened.description if isinstance(opened, SuiteBenchmark) else about
    return {"name": name, "description": described, "tasks": counts, "version": opened.version}


def _show_benchmark(name: str, opened: "Benchmark", as_json: bool) -> None:
    from dgm.benchmarks.verification import list_excluded_defects
    from dgm.cli.benchmark_images import find_image_states

    tasks = [task for _, task in list_all_tasks(opened)]
    images = Counter(task.image for task in tasks)
    tags = Counter(tag for task in tasks for tag in task.tags)
    here = find_image_states(list(images))
    listed = [{"image": image, "tasks": count, "state": here[image]} for image, count in images.most_common()]
    document = {**_benchmark_summary(name, opened), "tags": dict(tags.most_common()), "images": listed}
    document["left_out"] = list(list_excluded_defects(opened))
    document["ids"] = {split.value: [task.id for task in opened.tasks(split)] for split in Split}
    if as_json:
        emit_json(document)
        return
    sys.stdout.write(f"{opened.name}, version {opened.version[:12]}\n")
    if document["description"]:
        sys.stdout.write(neutralise(document["description"]) + "\n")
    for split in Split:
        ids = document["ids"][split.value]
        sys.stdout.write(f"\n{split.value}: {_tasks_text(len(ids))}\n")
        sys.stdout.writelines(f"  {neutralise(task)}\n" for task in ids)
    _write_counts("tags", [(tag, f"{n}") for tag, n in tags.most_common()], TAGS_SHOWN)
    rows = [(image, f"{_tasks_text(count)}, {here[image]}") for image, count in images.most_common()]
    _write_counts("images", rows, IMAGES_SHOWN)
    for problem in document["left_out"]:
        sys.stdout.write(f"left out: {one_line(problem, 300)}\n")


def _tasks_text(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


def _write_counts(title: str, rows: Sequence[tuple[str, str]], most: int) -> None:
    sys.stdout.write(f"\n{title}:\n" if rows else "")
    sys.stdout.writelines(f"  {neutralise(name):<40} {text}\n" for name, text in rows[:most])
    if len(rows) > most:
        sys.stdout.write(f"  and {len(rows) - most} more\n")


def _show_task(opened: "Benchmark", task_id: TaskId, as_json: bool) -> None:
    from dgm.protocols import InImage

    task = opened.task(task_id)
    workspace = _read_workspace(opened, task)
    facts: dict[str, Any] = {
        "task": task.id,
        "benchmark": task.benchmark,
        "image": task.image,
        "workdir": task.workdir,
        "timeout_s": task.timeout_s,
        "tags": list(task.tags),
    }
    inside = isinstance(workspace, InImage)
    files = [] if isinstance(workspace, InImage) else list(workspace)
    if as_json:
        emit_json({**facts, "prompt": task.prompt, "workspace": "in the image" if inside else files})
        return
    for key, value in facts.items():
        text = ", ".join(value) if isinstance(value, list) else str(value)
        sys.stdout.write(f"{key:<10} {one_line(text, 200)}\n")
    sys.stdout.write(f"\n{neutralise(task.prompt).rstrip()}\n\n")
    if isinstance(workspace, InImage):
        sys.stdout.write(f"the workspace is what the image holds for {task.workdir}\n")
        return
    sys.stdout.write(f"workspace: {_size_text(workspace)}\n")
    sys.stdout.writelines(f"  {neutralise(name)}\n" for name in files[:FILES_SHOWN])
    if len(files) > FILES_SHOWN:
        sys.stdout.write(f"  and {len(files) - FILES_SHOWN} more\n")


def _read_workspace(opened: "Benchmark", task: Task) -> "Snapshot | InImage":
    """Return the content of the task's workdir; do not fetch an image for it."""
    from dgm.errors import DgmError
    from dgm.protocols import InImage

    try:
        return opened.workspace(task.id)
    except DgmError:
        if not task.image.startswith("docker:"):
            raise
        return InImage()


def _size_text(files: Snapshot) -> str:
    total = sum(len(entry.data) for entry in files.values())
    return f"{len(files)} files, {total:,} bytes"
