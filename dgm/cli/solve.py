"""``dgm solve``: run an agent of the archive on a user's repository, in a sandbox; the user decides on its change."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dgm.analysis.agent_names import find_agent
from dgm.analysis.summary import spend_record
from dgm.benchmarks.plain_logs import plain_log
from dgm.cli.arguments import Amount, as_json, engine_option, open_run, sandbox_option
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json, show_patch
from dgm.cli.watching import TerminalWatcher
from dgm.domain import AgentId
from dgm.errors import Infrastructure, UserError
from dgm.protocols import Work
from dgm.show.safe import neutralise
from dgm.simulation import check_performed
from dgm.worker.leaving import format_left_out

if TYPE_CHECKING:
    from dgm.worker.solving import SolveResult

OUTPUT_LINES = 20
"""Lines of a failed agent's output that are shown."""
OUTPUT_BYTES = 4000


@click.command()
@click.option("--agent", "which", required=True, metavar="RUN:AGENT", help="For example myrun:best.")
@click.option("--repo", required=True, type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--model", help="The model it is lent (default: the run's).")
@click.option("--max-usd", type=Amount(), help="Money for all its model calls.")
@sandbox_option("auto")
@engine_option
@click.option("--timeout", "time_limit_s", type=Amount(1.0), default=600.0, show_default=True)
@click.option("--yes", is_flag=True, help="Apply the change without asking.")
@as_json
@click.argument("problem")
def solve(
    which: str,
    repo: Path,
    model: str | None,
    max_usd: float | None,
    sandbox: str,
    time_limit_s: float,
    yes: bool,
    as_json: bool,
    problem: str,
) -> int:
    """Let an agent work on a copy of a repository; shows the diff, and changes the repository only if you say yes.

    Where nobody answers, nothing is changed. A change that is not applied is kept in a file.
    """
    from dgm.sessions import repairing
    from dgm.worker.solving import SolveContext, UsageJournal

    run_name, found, agent_name = which.rpartition(":")
    if not found:
        raise UserError(f"--agent {which}: expected RUN:AGENT, for example {which}:best")
    with open_run(run_name) as run:
        check_performed(run)
        agent = find_agent(run, agent_name)
        source = run.repository.source(agent.commit)
        settings = repairing.choose_settings(run, model, max_usd, TerminalWatcher())
    context = SolveContext(settings, sandbox, time_limit_s)
    repair = repairing.prepare(which, source, repo, problem, context)
    for one in repair.given.absent:
        sys.stderr.write(neutralise(f"{one}\n"))
    spent = UsageJournal()
    try:
        solved = asyncio.run(repair.perform(spent))
    except repairing.UnusableWork as error:
        _tell_output(error.output)
        raise
    except Infrastructure:
        if spent.usage.calls:
            sys.stderr.write(f"{repairing.cost_text(spent.usage)}\n")
        raise
    work = solved.work
    _tell_ending(work)
    if not as_json:
        show_patch(work.patch)
    applied = bool(work.patch) and (yes or (not as_json and _confirm_change(repo, solved.changed)))
    kept = None
    if applied:
        repairing.apply_work(repo, work, solved.changed)
    elif work.patch:
        kept = repairing.save_patch(repo, work.patch)
    if as_json:
        emit_json(_solve_record(agent.id, solved, applied, kept))
    else:
        sys.stdout.write(_ending_text(repo, work, applied, kept) + f"{repairing.cost_text(solved.usage)}\n")
    return 0 if work.patch else FAILED


def _tell_ending(work: Work) -> None:
    """Report how the agent's program failed, with its output, and which parts of its change were left out."""
    done = work.completed
    if done.bad_end or not work.patch:
        _tell_output(done.output)
    if done.bad_end:
        sys.stderr.write(f"the agent {done.bad_end}\n")
    if work.left_out:
        sys.stderr.write(neutralise(format_left_out(work.left_out)).replace("\n", " ") + "\n")


def _tell_output(output: bytes) -> None:
    """Print the end of the agent's output on stderr, neutralised so that it cannot move a cursor."""
    text = plain_log(output[-4 * OUTPUT_BYTES :]).decode("utf-8", "replace").strip()[-OUTPUT_BYTES:]
    lines = neutralise(text).split("\n")[-OUTPUT_LINES:]
    if any(lines):
        sys.stderr.write("the end of the agent's output:\n" + "".join(f"  {line}\n" for line in lines))


def _confirm_change(repo: Path, changed: Sequence[str]) -> bool:
    """Return the user's answer; no answer means no: the change has been shown, and nothing is lost."""
    files = "1 file" if len(changed) == 1 else f"{len(changed)} files"
    try:
        agreed = click.confirm(f"Apply this change to {neutralise(str(repo))} ({files})?", default=False)
        if not sys.stdin.isatty():
            # Without a terminal, the end of the line is missing.
            sys.stdout.write("\n")
    except click.Abort:
        sys.stdout.write("\nnobody answered (--yes applies without asking)\n")
        return False
    return agreed


def _ending_text(repo: Path, work: Work, applied: bool, kept: Path | None) -> str:
    if applied:
        return "applied\n"
    if kept is None:
        return f"the agent changed nothing{'' if work.completed.exit_code else ', and ended well'}\n"
    from dgm.worker.user_repository import apply_command

    return f"nothing was changed; the change is kept: {neutralise(apply_command(repo, kept))}\n"


def _solve_record(agent: AgentId, solved: "SolveResult", applied: bool, kept: Path | None) -> dict[str, Any]:
    work = solved.work
    return {
        "agent": agent,
        "applied": applied,
        "patch": work.patch.decode("utf-8", "replace"),
        "patch_file": None if kept is None else str(kept),
        "left_out": dict(work.left_out),
        "exit_code": work.completed.exit_code,
        "timed_out": work.completed.timed_out,
        "calls": work.calls,
        "spend": spend_record(solved.usage),
    }
