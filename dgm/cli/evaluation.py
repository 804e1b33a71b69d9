"""A session of an evaluation on the terminal, shared by evaluations of agents and of prediction files."""

import sys
from contextlib import nullcontext

from dgm.analysis.budgets import Reason
from dgm.api.running import run_session
from dgm.cli.complaint import FAILED, INTERRUPTED, LIMIT, USAGE
from dgm.cli.watching import TerminalWatcher
from dgm.config import Settings
from dgm.search.stopping import AT_ONCE
from dgm.sessions.evaluation_folder import EvaluationSession
from dgm.show.evaluate_rows import EvaluationReport
from dgm.show.safe import one_line
from dgm.show.words import count_text


def perform_session(
    session: EvaluationSession, watcher: TerminalWatcher, *, quiet: bool, settings: Settings | None = None
) -> EvaluationReport:
    """Perform what is missing, show its progress unless ``quiet``, and return the results of all sessions.

    With the settings of the evaluation, the cost of the first evaluations is told.
    """
    watcher.quiet = quiet
    with watcher.show(session.made, settings, session.called) if session.missing else nullcontext():
        try:
            over = run_session(lambda: session.perform(watcher), watcher)
        except KeyboardInterrupt:
            over = AT_ONCE
    return session.report(over)


def report_missing(found: EvaluationReport) -> int:
    """Return the exit code; print a line on stderr if something is missing."""
    missing = sum(result.missing for result in found.results)
    given_up = sum(len(result.given_up) for result in found.results)
    if given_up:
        sys.stderr.write(
            f"given up because the infrastructure failed again and again: {count_text(given_up, 'task')}, in no tally; "
            "--verbose says why\n"
        )
    if not missing:
        return FAILED if given_up else 0
    more = " with a larger --max-usd" if found.ended.reason is Reason.LIMIT else ""
    # The message may quote a provider.
    over_said, missed = one_line(found.ended.message, 1_000), count_text(missing, "evaluation")
    sys.stderr.write(f"{over_said}; still missing: {missed}; repeat the command{more} to go on\n")
    return {Reason.LIMIT: LIMIT, Reason.STOPPED: INTERRUPTED, Reason.REFUSED: USAGE}.get(
        found.ended.reason, FAILED
    )
