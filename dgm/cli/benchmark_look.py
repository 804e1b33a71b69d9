"""``dgm benchmark list`` and ``show``: the available benchmarks, their tasks, and one task as a person reads it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dgm.cli.arguments import as_json, engine_option
from dgm.cli.output import emit_json
from dgm.domain import Snapshot, Split, TaskId
from dgm.errors import UserError
from dgm.show.safe import neutralise, one_line

if TYPE_CHECKING:
    from dgm.protocols import Benchmark, InImage

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


@click.command(name="list")
@as_json
def list_(as_json: bool) -> None:
    """List the shipped suites and the plug-ins, and say how the others are named."""
    from dgm.sessions.suites import list_suites

    listed = list_suites()
    if as_json:
        emit_json(listed)
        return
    for suite in listed["suites"]:
        counts = ", ".join(f"{split} {n}" for split, n in suite["tasks"].items())
        sys.stdout.write(f"{suite['name']:<14} {counts}\n{'':<14} {neutralise(suite['description'])}\n")
    for plugin in listed["plugins"]:
        sys.stdout.write(f"{plugin['name']:<14} plug-in of {plugin['from']}\n")
    sys.stdout.write("\nothers are named so:\n")
    for each in listed["named"]:
        sys.stdout.write(f"  {each['form']:<48} {each['meaning']}\n")


@click.command()
@click.argument("name")
@click.argument("task_id", required=False, metavar="[TASK]")
@click.option("--hidden", is_flag=True, help="Show the task's hidden tests and its reference fix as well.")
@config_option
@set_option
@engine_option
@as_json
def show(
    name: str,
    task_id: str | None,
    hidden: bool,
    config: Path | None,
    assignments: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show a benchmark, or one of its tasks: what an agent gets, names of tests, and where it comes from.

    Hidden tests and the reference fix are shown with --hidden only.
    """
    from dgm.benchmarks.opening import open_suite
    from dgm.sessions.suites import NoSandboxEngine, benchmark_settings

    opened = open_suite(name, NoSandboxEngine(), benchmark_settings(config, assignments))
    if task_id is not None:
        _show_task(opened, TaskId(task_id), hidden=hidden, as_json=as_json)
    elif hidden:
        raise UserError("--hidden: say of which task, as in dgm benchmark show SUITE TASK --hidden")
    else:
        _show_benchmark(name, opened, as_json)


def _show_benchmark(name: str, opened: "Benchmark", as_json: bool) -> None:
    from dgm.sessions.suite_tasks import find_facts
    from dgm.sessions.suites import describe_suite
    from dgm.show.suite_rows import calibration_rows, has_origins, kind_rows, task_rows

    document, facts = describe_suite(name, opened), find_facts(opened)
    if as_json:
        emit_json({**document, **({"facts": [each.record() for each in facts]} if facts else {})})
        return
    sys.stdout.write(f"{opened.name}, version {opened.version[:12]}\n")
    if document["description"]:
        sys.stdout.write(neutralise(document["description"]) + "\n")
    for split in Split:
        ids = document["ids"][split.value]
        sys.stdout.write(f"\n{split.value}: {_tasks_text(len(ids))}\n")
        own = [each for each in facts if each.split is split]
        lines = task_rows(own) if own and has_origins(facts) else map(neutralise, ids)
        sys.stdout.writelines(f"  {line}\n" for line in lines)
    if has_origins(facts):
        sys.stdout.write("\nkinds:\n")
        sys.stdout.writelines(f"  {row}\n" for row in kind_rows(facts))
    if tried := list(calibration_rows(facts)):
        sys.stdout.write("\ncalibrated, solved in all attempts, some or none:\n")
        sys.stdout.writelines(f"  {row}\n" for row in tried)
    _write_counts("tags", [(tag, f"{n}") for tag, n in document["tags"].items()], TAGS_SHOWN)
    images = document["images"]
    rows = [(each["image"], f"{_tasks_text(each['tasks'])}, {each['state']}") for each in images]
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


def _show_task(opened: "Benchmark", task_id: TaskId, *, hidden: bool, as_json: bool) -> None:
    from dgm.sessions.suite_tasks import describe_hidden, describe_origin
    from dgm.sessions.suites import describe_task, read_workspace, task_facts
    from dgm.show.suite_rows import hidden_lines, origin_lines

    task = opened.task(task_id)
    workspace, origin = read_workspace(opened, task), describe_origin(opened, task_id)
    shown = describe_hidden(opened, task_id) if hidden else {}
    if as_json:
        emit_json({**describe_task(task, workspace), **origin, **({"hidden": shown} if hidden else {})})
        return
    for key, value in task_facts(task).items():
        text = ", ".join(value) if isinstance(value, list) else str(value)
        sys.stdout.write(f"{key:<10} {one_line(text, 200)}\n")
    sys.stdout.writelines(f"{line}\n" for line in (origin_lines(origin) if origin else ()))
    sys.stdout.write(f"\n{neutralise(task.prompt).rstrip()}\n\n")
    _write_workspace(task.workdir, workspace)
    sys.stdout.writelines(f"{line}\n" for line in (hidden_lines(shown) if hidden else ()))


def _write_workspace(workdir: str, workspace: "Snapshot | InImage") -> None:
    from dgm.protocols import InImage

    if isinstance(workspace, InImage):
        sys.stdout.write(f"the workspace is what the image holds for {workdir}\n")
        return
    sys.stdout.write(f"workspace: {_size_text(workspace)}\n")
    files = list(workspace)
    sys.stdout.writelines(f"  {neutralise(name)}\n" for name in files[:FILES_SHOWN])
    if len(files) > FILES_SHOWN:
        sys.stdout.write(f"  and {len(files) - FILES_SHOWN} more\n")


def _size_text(files: Snapshot) -> str:
    total = sum(len(entry.data) for entry in files.values())
    return f"{len(files)} files, {total:,} bytes"
