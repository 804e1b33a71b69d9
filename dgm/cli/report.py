"""``dgm report``: is the best agent really better than the seed, on tasks that the search never saw?"""

import asyncio
import sys
from collections.abc import Sequence

import click

from dgm import assemble
from dgm.archive.finding import find_run
from dgm.archive.operator_accounts import operators_of
from dgm.archive.run import Run
from dgm.cli.arguments import Amount, as_json, run_argument
from dgm.cli.complaint import FAILED, LIMIT
from dgm.cli.operator_rows import operator_lines, operator_records
from dgm.cli.output import emit_json
from dgm.cli.progress import progress
from dgm.cli.report_rows import exists, findings, holdout_lines, holdout_record, note, search_lines
from dgm.cli.rows import usd_text
from dgm.config import Settings
from dgm.domain import Agent, Split
from dgm.errors import UserError
from dgm.search.best import best_of
from dgm.search.budgets import Ending, Reason
from dgm.search.exam import FOLDER, candidate
from dgm.search.summary import (
    accounts_record,
    agent_record,
    by_record,
    chosen_record,
    models_of,
    spend_record,
)


@click.command()
@run_argument
@click.option("--holdout", is_flag=True, help="Run what is missing of the holdout evaluations first.")
@click.option("--workers", type=click.IntRange(min=1), help="Steps at once (default: the run's).")
@click.option(
    "--max-usd",
    type=Amount(),
    help="Money for the holdout evaluations, earlier ones included (default: what the run's own limit leaves).",
)
@as_json
def report(run_name: str, holdout: bool, workers: int | None, max_usd: float | None, as_json: bool) -> int:
    """Compare the best agent with the seed: tallies of the search, its operators, and the holdout tasks one by one."""
    with Run.open(find_run(run_name, write=holdout)) as run:
        if not run.tree.agents:
            raise UserError(f"run {run.name} has no agent yet")
        settings = assemble.settings_of(run)
        if workers:
            settings = settings.model_copy(update={"workers": workers})
        over = _examine(run, settings, max_usd, quiet=as_json) if holdout else None
        best = run.tree.agents[best_of(run)]
        found = findings(run, best)
        operators = operators_of(run)
        if as_json:
            emit_json(
                {
                    "run": run.name,
                    "seed": agent_record(run, run.tree.agents[0]),
                    "best": agent_record(run, best),
                    "chosen": chosen_record(run, best.id),
                    "models": models_of(run),
                    "spend": {
                        **spend_record(run.tree.spend),
                        "by": by_record(run.tree.spend_by),
                        "agents": accounts_record(run),
                    },
                    "operators": operator_records(operators),
                    "holdout": holdout_record(found) if found else None,
                }
            )
            return _code(over)
        lines = [
            *search_lines(run, best.id),
            *operator_lines(operators),
            *holdout_lines(run, found, best.id),
        ]
        sys.stdout.write("\n".join([*lines, note(run)]) + "\n")
        return _code(over)


def _code(over: Ending | None) -> int:
    """Exit code of the examination, with a line where it is not complete."""
    if over is None or over.reason is Reason.NOTHING_LEFT:
        return 0
    spent = over.reason is Reason.LIMIT
    again = "give it more with --max-usd" if spent else "run the same command again"
    sys.stderr.write(f"the holdout evaluations are not complete: {over.message}; {again}\n")
    return LIMIT if spent else FAILED


def _examine(run: Run, settings: Settings, max_usd: float | None, *, quiet: bool) -> Ending | None:
    """Does what is missing; None where nothing is, which then costs nothing and asks nobody."""
    parts = assemble.parts_of(settings.model_copy(update={"sandbox": run.config["sandbox"]}))
    if not parts.benchmark.tasks(Split.HOLDOUT):
        raise UserError(
            f"benchmark {parts.benchmark.name} has no holdout tasks; dgm evaluate asks other splits"
        )
    both = (run.tree.agents[0], run.tree.agents[best_of(run)])
    agents = list({agent.id: agent for agent in both}.values())
    spent = 0.0
    if exists(run):
        with Run.open(run.folder / FOLDER) as exam:
            if _is_complete(exam, agents, parts):
                return None
            spent = exam.tree.spend.usd
    usd = _affordable(run, max_usd, spent)
    asyncio.run(assemble.check_models(settings))
    with assemble.open_exam(run, settings, parts) as exam, progress(exam, quiet=quiet) as shown:
        assemble.begin_exam(exam, run, agents, usd, parts)
        return asyncio.run(assemble.examine(exam, settings, parts, shown.event))


def _affordable(run: Run, max_usd: float | None, spent: float) -> float | None:
    """What the examination may cost in all; None where nothing limits it."""
    if max_usd is not None:
        if max_usd <= spent:
            raise UserError(
                f"--max-usd {max_usd}: the holdout evaluations have cost {spent:.4f} USD already; give more"
            )
        return max_usd
    limit = run.tree.budget.usd
    if limit is None:
        return None
    left = limit - run.tree.spend.usd
    if left <= spent:
        raise UserError(
            f"run {run.name}: its limit of {usd_text(limit)} USD leaves nothing for the holdout evaluations "
            f"({run.tree.spend.usd:.4f} are spent on the search, {spent:.4f} on them); give them more with --max-usd"
        )
    return left


def _is_complete(exam: Run, agents: Sequence[Agent], parts: assemble.Parts) -> bool:
    tasks = [task.id for task in parts.benchmark.tasks(Split.HOLDOUT)]
    entered = [candidate(exam, agent) for agent in agents]
    return all(
        identity is not None and all(exam.tree.verdict(identity, task) for task in tasks)
        for identity in entered
    )
