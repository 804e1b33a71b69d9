"""``dgm evaluate``: evaluate agents on every task of a split, outside of a search; or grade the patches of a file."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from dgm.analysis.agent_names import find_agent
from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.cli.arguments import Amount, as_json, evaluation_options
from dgm.cli.evaluate_predictions import grade_predictions
from dgm.cli.evaluation import perform_session, report_missing
from dgm.cli.output import emit_json
from dgm.cli.watching import TerminalWatcher
from dgm.domain import Split
from dgm.errors import UserError
from dgm.sessions import evaluation
from dgm.sessions.predictions import GradingRequest
from dgm.show.evaluate_rows import report_lines, report_record
from dgm.simulation import check_performed


@click.command()
@click.argument("names", metavar="[RUN AGENT…]", nargs=-1)
@click.option(
    "--seed-agent", "seed_agents", multiple=True, metavar="PATH", help="An agent's folder or git repository."
)
@click.option(
    "--predictions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Grade the patches of this .jsonl or .json file instead; nobody works. Needs --benchmark.",
)
@click.option("--benchmark", help="Another benchmark than the run's (starter without a run).")
@click.option(
    "--split", type=click.Choice([split.value for split in Split]), help="Which tasks (default holdout)."
)
@evaluation_options(attempts=1)
@click.option(
    "--timeout-factor", type=Amount(), help="Give agents this many times their wall time, for slow models."
)
@click.option("--verbose", is_flag=True, help="List what is unresolved, with the reason.")
@as_json
def evaluate(
    names: tuple[str, ...],
    seed_agents: tuple[str, ...],
    predictions: Path | None,
    split: str | None,
    tasks: tuple[str, ...],
    attempts: int,
    max_usd: float | None,
    into: Path | None,
    timeout_factor: float | None,
    verbose: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Let agents of RUN (ids, 'best', 'seed', commits) work on every task of a split, and say how well they do.

    It is recorded in a folder of its own; the same command goes on where it ended and pays for nothing twice.
    """
    if predictions:
        given = {
            "AGENT": names,
            "--seed-agent": seed_agents,
            "--model": flags.pop("model"),
            "--max-usd": max_usd,
            "--timeout-factor": timeout_factor,
        }
        _check_no_agent(given, attempts)
        if not flags["benchmark"]:
            raise UserError(
                "--predictions: say whose tasks they are on: --benchmark swebench:verified, for example"
            )
        grading = GradingRequest(predictions, split=split, only=tasks, into=into, **flags)
        return grade_predictions(grading, verbose=verbose, as_json=as_json)
    if len(names) < 2 and not (seed_agents and not names):
        raise UserError("say who is evaluated: dgm evaluate RUN AGENT…, or dgm evaluate --seed-agent PATH")
    with ExitStack() as opened:
        run = opened.enter_context(Run.open(find_run(names[0], write=into is None))) if names else None
        if run:
            check_performed(run)
        contestants = (
            [evaluation.contestant_of(run, find_agent(run, name)) for name in names[1:]] if run else []
        )
        contestants += map(evaluation.read_contestant, seed_agents)
        watcher = TerminalWatcher()
        if timeout_factor is not None:
            flags["assignments"] = (*flags["assignments"], f"limits.time_factor={timeout_factor}")
        chosen = evaluation.EvaluationChoice(
            split=Split(split or Split.HOLDOUT),
            tasks=tasks,
            attempts=attempts,
            max_usd=max_usd,
            into=into,
            **flags,
        )
        request = evaluation.make_request(run, contestants, chosen, watcher)
        session = asyncio.run(evaluation.prepare(request, watcher))
        with session.made:
            found = perform_session(session, watcher, quiet=as_json)
        if as_json:
            emit_json(report_record(found))
        else:
            sys.stdout.write("\n".join(report_lines(found, verbose=verbose)) + "\n")
        return report_missing(found)


def _check_no_agent(given: Mapping[str, object], attempts: int) -> None:
    words = [name for name, value in given.items() if value] + (["--attempts"] if attempts != 1 else [])
    if words:
        raise UserError(
            f"--predictions: patches are only graded, no agent works; leave out {', '.join(words)}"
        )
