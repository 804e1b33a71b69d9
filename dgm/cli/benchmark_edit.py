"""``dgm benchmark merge``, ``filter`` and ``split``: suites made of suites."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json
from dgm.domain import Split
from dgm.show.safe import neutralise

if TYPE_CHECKING:
    from dgm.benchmarks.suites import SuiteBenchmark

out_option = click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A new folder for the suite."
)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="SUITE SUITE…")
@out_option
@as_json
def merge(names: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Write the tasks of several suites into one.

    Tasks keep their splits. A task that two suites have is taken once; another one whose id is taken gets its suite's
    name in front.
    """
    from dgm.sessions.suite_editing import merge_suites

    done, suite = merge_suites(names, out)
    _report(suite, out, as_json=as_json, renamed=done.renamed, repeated=done.repeated)


@click.command(name="filter")
@click.argument("name", metavar="SUITE")
@click.option(
    "--where",
    required=True,
    multiple=True,
    metavar="FIELD=VALUE",
    help="Such as kind=bug,history or 'f2p<5'; may be repeated, and all must hold. Fields: id, kind, split, "
    "difficulty, repo, tag, module, license, calibrated (= or !=), date, f2p, p2p, lines, files (< <= > >=, too).",
)
@out_option
@as_json
def filter_(name: str, where: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Write the tasks of a suite that meet all conditions into a new suite."""
    from dgm.sessions.suite_editing import filter_suite

    _, suite = filter_suite(name, where, out)
    _report(suite, out, as_json=as_json)


@click.command()
@click.argument("name", metavar="SUITE")
@click.option("--holdout", type=float, required=True, metavar="SHARE", help="Share that reports are made on.")
@click.option(
    "--promotion",
    type=float,
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share that only accepts or rejects agents.",
)
@click.option(
    "--by",
    type=click.Choice(["time", "repo", "random"]),
    required=True,
    help="time: the newest tasks are held out; repo: whole libraries; random: tasks of each kind.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Number that the choice follows from.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A new folder for the suite with the new splits (default: the suite itself is changed).",
)
@as_json
def split(
    name: str, holdout: float, promotion: float, by: str, seed: int, out: Path | None, as_json: bool
) -> None:
    """Give a suite's tasks new splits: search, promotion and holdout.

    Days and libraries stay together, so that the shares are met as nearly as that allows. Results before and after are
    not comparable.
    """
    from dgm.benchmarks.suite_editing import SplitBy
    from dgm.sessions.suite_editing import split_suite

    shares = {Split.HOLDOUT: holdout, Split.PROMOTION: promotion}
    suite = split_suite(name, shares, SplitBy(by), seed, out)
    _report(suite, out or name, as_json=as_json)


def _report(suite: "SuiteBenchmark", place: Path | str, *, as_json: bool, **more: Any) -> None:
    counts = {split.value: len(suite.tasks(split)) for split in Split}
    if as_json:
        emit_json({"suite": str(place), "version": suite.version, "tasks": counts, **more})
        return
    for task, new in more.get("renamed", {}).items():
        sys.stdout.write(f"{neutralise(task)} is now {neutralise(new)}\n")
    for task in more.get("repeated", []):
        sys.stdout.write(f"{neutralise(task)} is there already\n")
    told = ", ".join(f"{split} {count}" for split, count in counts.items())
    sys.stdout.write(f"{neutralise(str(place))}: {told}\n")
