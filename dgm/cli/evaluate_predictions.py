"""``dgm evaluate --predictions``: grade the patches of a file; no agent works and no model is called."""

import asyncio
import sys

from dgm.cli.evaluation import perform_session, report_missing
from dgm.cli.output import emit_json
from dgm.cli.watching import TerminalWatcher
from dgm.sessions.predictions import REPORT, GradingRequest, GradingSession, prepare_grading
from dgm.show.evaluate_rows import report_lines, report_record


def grade_predictions(request: GradingRequest, *, verbose: bool, as_json: bool) -> int:
    """Grade the patches that have no verdict yet, and print the results of all.

    Args:
        request: the predictions, and the conditions.
        verbose: whether unresolved ones are listed.
        as_json: whether one JSON document is printed.

    Raises:
        UserError: a prediction or another argument is wrong.
        Infrastructure: the sandboxes' engine failed.
    """
    grading = asyncio.run(prepare_grading(request))
    with grading.session.made:
        found = perform_session(grading.session, TerminalWatcher(), quiet=as_json)
    swebench = grading.write_report(found)
    if as_json:
        emit_json({**report_record(found), "report": swebench})
    else:
        lines = [*report_lines(found, verbose=verbose), *_note_lines(grading)]
        sys.stdout.write("\n".join(lines) + "\n")
    return report_missing(found)


def _note_lines(grading: GradingSession) -> list[str]:
    lines = [f"report in SWE-bench's form: {grading.session.made.folder / REPORT}"]
    if grading.left_out:
        lines.append(f"{grading.left_out} other predictions of the file were left out, as asked")
    if grading.absent:
        lines.append(
            f"{grading.absent} more tasks of the benchmark have no prediction here; they are in no tally"
        )
    return lines
