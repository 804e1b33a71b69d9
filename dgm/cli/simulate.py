"""``dgm simulate``: run policies in worlds that cost nothing, and compare them in pairs."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dgm.cli.arguments import Amount, as_json
from dgm.cli.complaint import FAILED, INTERRUPTED
from dgm.cli.output import emit_json
from dgm.errors import UserError

if TYPE_CHECKING:
    from dgm.simulate.study import Study

_DECIDE = ("--policy", "--family", "--seeds", "--budget", "--expansion-cost", "--workers", "--failures")
"""The options that define a trial."""


class FailureShare(click.FloatRange):
    """A number from 0 to below 1."""

    name = "share"

    def __init__(self) -> None:
        super().__init__(0.0, 1.0, max_open=True)


def study_options(command: Any) -> Any:
    """Add the options that define a study."""
    for option in (
        click.option(
            "--failures",
            type=FailureShare(),
            default=0.0,
            help="Share of steps that the infrastructure fails.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1, 256),
            multiple=True,
            help="Steps at once (default: 1, or as the family is meant to be met).",
        ),
        click.option(
            "--expansion-cost",
            "costs",
            type=Amount(least=0.0),
            multiple=True,
            help="Evaluations of the budget that one expansion takes (default 1).",
        ),
        click.option(
            "--budget", "budgets", type=click.IntRange(1), multiple=True, help="Evaluations (default 800)."
        ),
        click.option(
            "--seeds",
            default="20",
            metavar="N|FROM:TO",
            help="How many worlds a family, or which (default 20).",
        ),
        click.option(
            "--family",
            "families",
            multiple=True,
            metavar="NAME",
            help="A family of worlds, or all that are reported, reserved or tuning (default reported).",
        ),
        click.option(
            "--policy",
            "policies",
            multiple=True,
            metavar="NAME",
            help="A policy, also with settings of its own: lineage+gate=hgm (default: all, and the oracle).",
        ),
    ):
        command = option(command)
    return command


def file_option(name: str, text: str) -> Callable[[Any], Any]:
    """Return an option that names a file."""
    return click.option(name, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help=text)


@click.command()
@study_options
@click.option(
    "--reference", default="hgm", metavar="NAME", help="The policy that all are compared with (default hgm)."
)
@file_option("--results", "Keep results here; the same command goes on where it was stopped or killed.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes (default: one per core).")
@file_option("--svg", "Write the anytime curves here.")
@file_option("--markdown", "Write all tables here.")
@click.option(
    "--record",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Record one policy in one world as a run, for dgm status, tree, lineage, log and replay.",
)
@click.option("--list", "listing", is_flag=True, help="List the families of worlds and the policies.")
@as_json
@click.pass_context
def simulate(
    context: click.Context,
    /,
    policies: tuple[str, ...],
    reference: str,
    results: Path | None,
    jobs: int | None,
    svg: Path | None,
    markdown: Path | None,
    folder: Path | None,
    listing: bool,
    as_json: bool,
    **what: Any,
) -> int:
    """Try policies in simulated worlds, and compare them in pairs: every policy meets the same worlds.

    What can be given several times is combined, each with each: policies, families, budgets, costs, workers.
    """
    from dgm.cli.simulate_rows import show_list, show_results, write_files
    from dgm.sessions.studies import StudyChoice, StudyResults, all_policies, build_study

    if listing:
        _refuse_others(context, "--list")
        show_list(as_json)
        return 0
    if folder is not None:
        _refuse_others(context, "--record", *_DECIDE)
        return _record_trial(folder, build_study(policies, StudyChoice(**what)), as_json)
    study = build_study((*(policies or all_policies()), reference), StudyChoice(**what))
    _check_files({"--results": results, "--svg": svg, "--markdown": markdown})
    found = _carry_out(study, results, jobs or os.cpu_count() or 1)
    if found is None:
        return INTERRUPTED
    compared = StudyResults(study, found, reference)
    try:
        show_results(compared, as_json)
    finally:
        # Write the files even if the reader of the output has gone; and print before a file can fail.
        write_files(compared, svg, markdown)
    return 0


def _refuse_others(context: click.Context, option: str, *allowed: str) -> None:
    """Refuse options that would have no effect.

    Raises:
        UserError: there is one.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        names = (option, "--json", *allowed)
        if source is ParameterSource.COMMANDLINE and not set(names) & set(parameter.opts):
            raise UserError(f"{parameter.opts[0]}: does nothing with {option}; leave one of them out")


def _check_files(files: Mapping[str, Path | None]) -> None:
    """Check the files first: hours of trials must not end in a file that cannot be made, or replaces another."""
    given = {option: file for option, file in files.items() if file is not None}
    for file in given.values():
        if not file.parent.is_dir():
            raise UserError(f"{file}: there is no folder {file.parent}")
        if file.is_dir():
            raise UserError(f"{file}: is a folder; name a file")
        if not file.exists():
            _check_folder(file)
    for (one, file), (other, same) in combinations(given.items(), 2):
        if file.resolve() == same.resolve():
            raise UserError(f"{one} and {other} both name {file}; choose another file for one of them")


def _check_folder(file: Path) -> None:
    """Check that a file can be made in the folder; leave nothing there."""
    try:
        with TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise UserError(f"{file}: no file can be made in {file.parent}: {error.strerror}") from error


def _carry_out(study: "Study", kept_in: Path | None, processes: int) -> Any:
    """Return all results; if interrupted, report it and return None."""
    try:
        with _interrupt_once():
            from dgm.cli.simulate_rows import show_progress
            from dgm.simulate.crew import quiet
            from dgm.simulate.results import Results
            from dgm.simulate.study import carry_out

            quiet()
            with Results(kept_in) as results, show_progress() as on_trial:
                return carry_out(study, results, processes, on_trial)
    except KeyboardInterrupt:
        kept = (
            f"what is done is kept in {kept_in}; the same command goes on from there"
            if kept_in
            else "nothing is kept; with --results FILE the same command would go on"
        )
        sys.stderr.write(f"interrupted; {kept}\n")
        return None


@contextmanager
def _interrupt_once() -> Iterator[None]:
    """Let the first Ctrl-C interrupt and ignore the others, so that cleanup and the final report complete."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, before)


def _record_trial(folder: Path, study: "Study", as_json: bool) -> int:
    from dgm.analysis.budgets import Reason
    from dgm.analysis.summary import run_summary
    from dgm.sessions.studies import single_trial
    from dgm.show.status import status_lines
    from dgm.show.terminal import write_lines
    from dgm.simulate.crew import quiet
    from dgm.simulate.recorded import open_recording, record

    quiet()
    trial = single_trial(study)
    with open_recording(folder, trial) as run:
        try:
            record(run, trial)
        except KeyboardInterrupt:
            sys.stderr.write("interrupted; nothing recorded is lost; the same command goes on\n")
            return INTERRUPTED
        if as_json:
            emit_json(run_summary(run))
        else:
            write_lines(status_lines(run))
        if run.tree.stop_reason == Reason.OUTAGE:
            sys.stderr.write(
                "the infrastructure failed too often (--failures); nothing recorded is lost; the same command goes on\n"
            )
            return FAILED
    return 0
