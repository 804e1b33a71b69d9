"""``dgm report``: compare the best agent with the seed, on tasks that the search never saw."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from dgm import assemble, examinations
from dgm.analysis.best import best_of
from dgm.analysis.budgets import Ending, Reason
from dgm.analysis.operator_accounts import OperatorLine, operators_of
from dgm.api.running import run_session
from dgm.archive.durable import write_durably
from dgm.archive.events import Control, Recorded
from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.cli.app import confirm
from dgm.cli.arguments import Amount, as_json, engine_option, refuse_engine, run_argument
from dgm.cli.complaint import FAILED, LIMIT
from dgm.cli.output import emit_json
from dgm.cli.watching import TerminalWatcher, can_ask
from dgm.config import Settings
from dgm.domain import AgentId
from dgm.errors import ArchiveCorrupt, UserError
from dgm.evaluation.control import MOST, ControlCost, ExamProgress, name_candidates
from dgm.evaluation.exam import FOLDER
from dgm.render import fmt
from dgm.report.facts import RunReport, gather_report, grader_notes, missing_traces
from dgm.report.figures import write_figures
from dgm.report.groups import find_groups, group_lines
from dgm.report.headline import ExamFindings, read_findings
from dgm.report.opening import opening_lines
from dgm.report.page import render_page
from dgm.report.people import holdout_lines, note_line, search_lines
from dgm.report.record import report_record
from dgm.report.targets import check_file, check_folder
from dgm.search.model_checks import check_models
from dgm.show import terminal
from dgm.show.operators import operator_lines, operator_records
from dgm.show.safe import one_line
from dgm.show.spans import Span, Tone, make_line
from dgm.simulation import check_performed

STDOUT = Path("-")


def _refuse_no_control(context: click.Context, _: click.Parameter, given: bool) -> None:
    if given and not context.resilient_parsing:
        raise UserError("the control is opt-in now: leave --no-control out")


@click.command()
@run_argument
@click.option(
    "--holdout", is_flag=True, help="First evaluate the seed and the best agent on the holdout tasks."
)
@engine_option
@click.option("--workers", type=click.IntRange(min=1), help="Parallel evaluations (default: the run's).")
@click.option(
    "--max-usd",
    type=Amount(),
    help="Limit for all holdout evaluations, earlier ones included (default: the rest of the run's own limit).",
)
@click.option(
    "--control",
    is_flag=True,
    help="Like --holdout, and then give the seed as many attempts as the search's spend would have bought. Shows the "
    "price and asks first.",
)
@click.option("--no-control", is_flag=True, hidden=True, expose_value=False, callback=_refuse_no_control)
@click.option(
    "--control-attempts",
    type=click.IntRange(min=1),
    help=f"Maximum number of the control's attempts at each task (default {MOST}).",
)
@click.option("--yes", is_flag=True, help="Perform the control without asking.")
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
    help="Write the figures of the report to this folder as SVG.",
)
@as_json
def report(
    run_name: str,
    holdout: bool,
    workers: int | None,
    max_usd: float | None,
    control: bool,
    control_attempts: int | None,
    yes: bool,
    html: Path | None,
    folder: Path | None,
    as_json: bool,
) -> int:
    """Report whether the best agent is better than the seed: on the search tasks, and on the holdout tasks one by one.

    The report itself only reads the run. With --holdout it first performs the evaluations that are missing.
    """
    holdout = holdout or control
    if not control:
        _refuse_without("--control", {"--control-attempts": control_attempts, "--yes": yes or None})
    if not holdout:
        _refuse_without("--holdout", {"--workers": workers, "--max-usd": max_usd})
        refuse_engine("the evaluations that --holdout performs")
    _check_targets(html, folder, as_json=as_json)
    with Run.open(find_run(run_name, write=holdout)) as run:
        if run.folder.name == FOLDER and (run.folder.parent / "run.json").exists():
            raise UserError(
                f"{run.folder}: a holdout evaluation, not a search; dgm report {run.folder.parent} shows its results"
            )
        if holdout:
            check_performed(run)
        if not run.tree.agents:
            raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")
        settings = assemble.settings_of(run)
        if workers:
            settings = settings.model_copy(update={"workers": workers})
        plan = examinations.plan_control(run, settings, control_attempts or MOST) if control else None
        if control and plan is None:
            sys.stderr.write("the control is left out: the best agent is the seed itself\n")
        quiet = as_json or html == STDOUT
        over = _perform_exam(run, settings, max_usd, plan, yes=yes, quiet=quiet) if holdout else None
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


def _refuse_without(needed: str, values: Mapping[str, object]) -> None:
    """Raise ``UserError`` if an option is given that has an effect only together with ``needed``."""
    for option, value in values.items():
        if value is not None:
            raise UserError(f"{option} is about what {needed} performs; give that too")


def _read_operators(run: Run) -> Sequence[OperatorLine]:
    """Return the operators' lines; leave out the time of vetting if its traces are lost."""
    try:
        return operators_of(run)
    except ArchiveCorrupt:
        return operators_of(run, timed=False)


def _print_report(
    run: Run, best: AgentId, found: ExamFindings | None, operators: Sequence[OperatorLine]
) -> None:
    missing = [make_line(Span(text, Tone.WARN)) for text in (*grader_notes(run), *missing_traces(run))]
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
    """Return the exit code of the holdout evaluations; print a line if they are not complete."""
    if over is None or over.reason is Reason.NOTHING_LEFT:
        return 0
    spent = over.reason is Reason.LIMIT
    again = "give it more with --max-usd" if spent else "run the same command again"
    if found and not found.missing:
        again += ", or leave --control out: nothing else is missing"
    # The message may quote a provider.
    message = one_line(over.message, 1_000)
    sys.stderr.write(f"the holdout evaluations are not complete: {message}; {again}\n")
    return LIMIT if spent else FAILED


def _perform_exam(
    run: Run, settings: Settings, max_usd: float | None, plan: Control | None, *, yes: bool, quiet: bool
) -> Ending | None:
    """Perform the missing evaluations; if none is missing, call no model, spend nothing and return None."""
    needed = examinations.find_needed_exam(run, settings, max_usd, plan)
    if needed is None or isinstance(needed, Ending):
        return needed
    if needed.control_cost and needed.control_cost.attempts:
        _confirm_control(needed.control_cost, settings.workers, yes=yes)
    watcher = TerminalWatcher(quiet=quiet)

    async def perform() -> Ending:
        checks = await check_models(settings, run.tree.model_facts.abilities)
        watcher.models_checked(settings, checks)
        with assemble.open_exam(run, settings, needed.parts) as exam:
            examinations.begin_needed_exam(exam, run, needed, settings, checks)
            names = name_candidates(exam, run, needed.agents[-1])
            progress = ExamProgress(exam, names, needed.control_cost.attempts if needed.control_cost else 0)

            def on_event(recorded: Recorded) -> None:
                progress.observe(recorded)
                watcher.event(recorded)

            with watcher.show(exam, None, names, progress.counts):
                return await assemble.examine(exam, settings, needed.parts, on_event, begins=watcher.begins)

    return run_session(perform, watcher)


def _confirm_control(cost: ControlCost, workers: int, *, yes: bool) -> None:
    price = (
        f"the control gives the seed up to {fmt.count(cost.attempts, 'further attempt')}: about "
        f"{fmt.money(cost.usd)}, {cost.tokens:,.0f} tokens and {fmt.duration(cost.seconds / workers)} at most"
    )
    if yes:
        sys.stderr.write(f"{price}\n")
    elif not can_ask():
        raise UserError(f"{price}; add --yes to perform it")
    elif not confirm(f"{price}; perform it?"):
        raise UserError("not confirmed: nothing was performed, and nothing was spent")
