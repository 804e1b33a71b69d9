"""``dgm benchmark calibrate``: let one agent try all tasks of a suite several times, and keep how hard each is."""

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import as_json, evaluation_options
from dgm.cli.output import emit_json
from dgm.show.safe import one_line

if TYPE_CHECKING:
    from dgm.sessions.calibration import CalibratedSuite


@click.command()
@click.argument("name", metavar="SUITE")
@click.option(
    "--seed-agent",
    default="plain",
    show_default=True,
    metavar="PATH",
    help="An agent's folder or git repository, or a shipped one.",
)
@evaluation_options(attempts=3)
@as_json
def calibrate(name: str, seed_agent: str, as_json: bool, **flags: Any) -> int:
    """Let an agent try every task of SUITE several times, and note which it always, sometimes and never solves.

    No task is dropped: dgm benchmark show tells the attempts that solved each, and dgm benchmark filter --where
    calibrated=sometimes makes a suite of some. The same command goes on where it ended and pays for nothing twice.
    """
    from dgm.cli.evaluation import perform_session, report_missing
    from dgm.cli.watching import TerminalWatcher
    from dgm.sessions import calibration, evaluation

    watcher = TerminalWatcher()
    suite = calibration.find_suite(name)
    chosen = evaluation.EvaluationChoice(**flags)
    request = calibration.make_calibration(suite, seed_agent, chosen, watcher)
    session = asyncio.run(evaluation.prepare(request, watcher))
    with session.made:
        found = perform_session(session, watcher, quiet=as_json)
    done = calibration.keep_calibration(suite, found)
    if as_json:
        emit_json(done.record())
    else:
        _write_result(done)
    return report_missing(found)


def _write_result(done: "CalibratedSuite") -> None:
    from dgm.show.evaluate_rows import report_lines

    sys.stdout.write("\n".join(report_lines(done.found, verbose=False)) + "\n")
    counts = ", ".join(
        f"{outcome} {done.counts.get(outcome, 0)}" for outcome in ("always", "sometimes", "never")
    )
    sys.stdout.write(
        f"solved: {counts} (of {len(done.rows)} tasks), noted in {one_line(str(done.suite), 200)}\n"
    )
