"""``dgm benchmark import``: turn tasks of Harbor and Terminal-Bench into a suite of the user's own."""

import sys
from pathlib import Path

import click

from dgm.cli.arguments import Amount, as_json
from dgm.cli.output import emit_json
from dgm.show.safe import neutralise


@click.command(name="import")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--image",
    default="",
    metavar="RECIPE",
    help="Work in this recipe's image instead of the tasks' own; needs no Docker.",
)
@click.option(
    "--holdout",
    type=Amount(0.0, 1.0),
    default=1 / 3,
    help="Share of the tasks that is kept for reports (default a third).",
)
@as_json
def import_(folder: Path, target: Path, image: str, holdout: float, as_json: bool) -> None:
    """Write the tasks in FOLDER, in the layout of Harbor or Terminal-Bench 2, as a suite to TARGET.

    Says for each task what could not be carried over.
    """
    from dgm.sessions.suites import import_suite

    done, opened = import_suite(folder, target, image, holdout)
    if as_json:
        emit_json(
            {
                "suite": str(target),
                "version": opened.version,
                "tasks": done.tasks,
                "remarks": done.remarks,
                "skipped": done.skipped,
            }
        )
        return
    for task in done.tasks:
        sys.stdout.write(f"{neutralise(task)}\n")
        sys.stdout.writelines(f"  {neutralise(remark)}\n" for remark in done.remarks[task])
    for task, why in done.skipped.items():
        sys.stdout.write(f"{neutralise(task)}: SKIPPED: {neutralise(why)}\n")
    skipped = f", {len(done.skipped)} skipped" if done.skipped else ""
    sys.stdout.write(
        f"{len(done.tasks)} tasks are in {target}{skipped}; now: dgm benchmark verify {target}\n"
    )
