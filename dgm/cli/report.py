"""``dgm report``: compare the best agent with the seed, on tasks that the search never saw."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from dgm import assemble, examinations
from dgm.analysis.best import best_of
from dgm.analysis.budgets import Ending, Reason
from dgm.analysis.operator_accounts import OperatorLine, operators_of
from dgm.archive.durable import write_durably
from dgm.archive.events import Control
from dgm.archive.run import Run
from dgm.cli.arguments import Amount, as_json, engine_option, refuse_engine, run_argument
from dgm.cli.complaint import FAILED, LIMIT
from dgm.cli.model_check import check_and_tell
from dgm.cli.output import emit_json
from dgm.cli.progress import show_progress
from dgm.config import Settings
from dgm.domain import SEED, AgentId
from dgm.errors import ArchiveCorrupt, UserError
from dgm.evaluation.control import MOST, control_of
from dgm.evaluation.exam import FOLDER
from dgm.publish.finding import find_run
from dgm.report.facts import RunReport, gather_report, missing_traces
from dgm.report.figures import write_figures
from dgm.report.groups import find_groups, group_lines
from dgm.report.headline import ExamFindings, read_findings
from dgm.report.opening import opening_lines
from dgm.report.page import render_page
from dgm.report.people import holdout_lines, note_line, search_lines
from dgm.report.record import report_record
from dgm.report.targets import check_file, check_folder
from dgm.show import terminal
from dgm.show.operators import operator_lines, operator_records
from dgm.show.safe import one_line
from dgm.show.spans import Span, Tone, make_line
from dgm.simulate import check_performed

STDOUT = Path("-")


@click.command()
@run_argument
@click.option("--holdout", is_flag=True, help="Run what is missing of the holdout evaluations first.")
@engine_option
@click.option("--workers", type=click.IntRange(min=1), help="Steps at once (default: the run's).")
@click.option(
    "--max-usd",
    type=Amount(),
    help="Money for the holdout evaluations, earlier ones included (default: what the run's own limit leaves).",
)
@click.option(
    "--control/--no-control",
    default=None,
    help="With --holdout: also let the seed try as often as the search's spend would have bought (default: yes, unless "
    "the best agent is the seed).",
)
@click.option(
    "--control-attempts",
    type=click.IntRange(min=1),
    help=f"Of the control: attempts at each task at most (default {MOST}).",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report as one HTML file that needs nothing else; - is stdout.",
)
@click.option(
    "--figures",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write its figures to this folder as SVG.",
)
@as_json
def report(
    run_name: str,
    holdout: bool,
    workers: int | None,
    max_usd: float | None,
    control: bool | None,
    control_attempts: int | None,
    html: Path | None,
    folder: Path | None,
    as_json: bool,
) -> int:
    """Compare the best agent with the seed: tallies of the search, its operators, and the holdout tasks one by one."""
    if control_attempts and (not holdout or control is False):
        raise UserError(
            "--control-attempts is about the control of --holdout; give that, without --no-control"
        )
    if not holdout:
        _refuse_without_holdout(
            {"--control and --no-control": control, "--workers": workers, "--max-usd": max_usd}
        )
    _check_targets(html, folder, as_json=as_json)
    with Run.open(find_run(run_name, write=holdout)) as run:
        if run.folder.name == FOLDER and (run.folder.parent / "run.json").exists():
            raise UserError(
                f"{run.folder}: an examination, not a search; dgm report {run.folder.parent} says what came of it"
            )
        if holdout:
            check_performed(run)
        if not run.tree.agents:
            raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")
        settings = assemble.settings_of(run)
        if workers:
            settings = settings.model_copy(update={"workers": workers})
        controlled = holdout and is_controlled(best_of(run), True if control_attempts else control)
        plan = control_of(run, control_attempts or MOST) if controlled else None
        quiet = as_json or html == STDOUT
        over = _perform_exam(run, settings, max_usd, plan, quiet=quiet) if holdout else None
        best = run.tree.agents[best_of(run)]
        found = read_findings(run, best)
        operators = _read_operators(run)
        written = []
        if html or folder or as_json:
            facts = gather_report(run, best.id, found, operators)
            written = _write_files(facts, html, folder)
        if as_json:
            emit_json(report_record(run, facts, operator_records(operators)))
        elif html != STDOUT:
            _print_report(run, best.id, found, operators)
            sys.stdout.writelines(f"{each}\n" for each in written)
        return _exit_code(over, found)


def _refuse_without_holdout(values: Mapping[str, object]) -> None:
    """Raise ``UserError`` if an option is given that only the holdout evaluations read."""
    for option, value in values.items():
        if value is not None:
            verb = "are" if " and " in option else "is"
            raise UserError(f"{option} {verb} about what --holdout performs; give that too")
    refuse_engine("the evaluations that --holdout performs")


def is_controlled(best: AgentId, asked: bool | None) -> bool:
    """Return whether the control is performed: as requested, else if the best agent is not the seed."""
    return best != SEED if asked is None else asked


def _read_operators(run: Run) -> Sequence[OperatorLine]:
    """Return the operators' lines; leave out the time of vetting if its traces are lost."""
    try:
        return operators_of(run)
    except ArchiveCorrupt:
        return operators_of(run, timed=False)


def _print_report(
    run: Run, best: AgentId, found: ExamFindings | None, operators: Sequence[OperatorLine]
) -> None:
    missing = [make_line(Span(text, Tone.WARN)) for text in missing_traces(run)]
    examined = holdout_lines(run, found, best)
    terminal.write_lines(
        [
            *opening_lines(run, found, best),
            *search_lines(run, best),
            *group_lines(find_groups(run, best), best),
            *operator_lines(operators),
            *examined,
            note_line(run),
            *missing,
        ]
    )


def _check_targets(html: Path | None, folder: Path | None, *, as_json: bool) -> None:
    """Check the targets before anything is paid for."""
    if html == STDOUT:
        if as_json:
            raise UserError("--html - and --json both write to stdout; give --html a file")
    elif html:
        check_file(html, "--html")
    if folder:
        check_folder(folder, "--figures")


def _write_files(facts: RunReport, html: Path | None, folder: Path | None) -> list[str]:
    """Write the requested files; return a line on the place of each."""
    said = []
    if html == STDOUT:
        sys.stdout.buffer.write(render_page(facts))
    elif html:
        data = render_page(facts)
        write_durably(html, data)
        said.append(f"report       {html} ({len(data) / 1000:,.0f} kB)")
    if folder:
        drawn = write_figures(facts, folder)
        said.append(f"figures      {len(drawn)} in {folder}: {', '.join(path.name for path in drawn)}")
    return said


def _exit_code(over: Ending | None, found: ExamFindings | None) -> int:
    """Return the exit code of the examination; print a line if it is not complete."""
    if over is None or over.reason is Reason.NOTHING_LEFT:
        return 0
    spent = over.reason is Reason.LIMIT
    again = "give it more with --max-usd" if spent else "run the same command again"
    if found and not found.missing:
        again += ", or leave the control, which is all that is missing, as it is with --no-control"
    # The message may quote a provider.
    message = one_line(over.message, 1_000)
    sys.stderr.write(f"the holdout evaluations are not complete: {message}; {again}\n")
    return LIMIT if spent else FAILED


def _perform_exam(
    run: Run, settings: Settings, max_usd: float | None, plan: Control | None, *, quiet: bool
) -> Ending | None:
    """Perform the missing evaluations; if none is missing, call no model, spend nothing and return None."""
    needed = examinations.find_needed_exam(run, settings, max_usd, plan)
    if needed is None or isinstance(needed, Ending):
        return needed
    checks = check_and_tell(settings, run)
    with assemble.open_exam(run, settings, needed.parts) as exam, show_progress(exam, quiet=quiet) as shown:
        examinations.begin_needed_exam(exam, run, needed, settings, checks)
        return asyncio.run(assemble.examine(exam, settings, needed.parts, shown.event))
