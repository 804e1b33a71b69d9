"""``dgm report``: is the best agent really better than the seed, on tasks that the search never saw?"""

import asyncio
import sys
from typing import Any

import click

from dgm import assemble
from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.cli.arguments import as_json, run_argument
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json, one_line
from dgm.cli.progress import progress
from dgm.cli.rows import interval_text, tally_text
from dgm.config import Settings
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.policies.best_belief import best_belief
from dgm.search.budgets import Ending, Reason
from dgm.search.exam import FOLDER, Comparison, candidate, compare
from dgm.search.summary import agent_record, tally_record

SIGNIFICANT = 0.05


@click.command()
@run_argument
@click.option("--holdout", is_flag=True, help="Run what is missing of the holdout evaluations first.")
@click.option("--workers", type=click.IntRange(min=1), help="Steps at once (default: the run's).")
@as_json
def report(run_name: str, holdout: bool, workers: int | None, as_json: bool) -> int:
    """Compare the best agent with the seed: tallies of the search, and the holdout tasks task by task."""
    with Run.open(find_run(run_name)) as run:
        if not run.tree.agents:
            raise UserError(f"run {run.name} has no agent yet")
        settings = assemble.settings_of(run)
        if workers:
            settings = settings.model_copy(update={"workers": workers})
        over = _examine(run, settings, quiet=as_json) if holdout else None
        found = _comparison(run)
        best = run.tree.agents[best_belief(run.tree)]
        if as_json:
            emit_json(
                {
                    "run": run.name,
                    "seed": agent_record(run, run.tree.agents[0]),
                    "best": agent_record(run, best),
                    "holdout": _record(found) if found else None,
                }
            )
            return _code(over)
        lines = [*_search_lines(run, best.id), *_holdout_lines(run, found, best.id)]
        sys.stdout.write("\n".join(lines) + "\n")
        return _code(over)


def _code(over: Ending | None) -> int:
    """Exit code of the examination, with a line where it is not complete."""
    if over is None or over.reason is Reason.NOTHING_LEFT:
        return 0
    sys.stderr.write(
        f"the holdout evaluations are not complete: {over.message}; run the same command again\n"
    )
    return FAILED


def _examine(run: Run, settings: Settings, *, quiet: bool) -> Ending:
    parts = assemble.parts_of(settings.model_copy(update={"sandbox": run.config["sandbox"]}))
    agents = [run.tree.agents[0], run.tree.agents[best_belief(run.tree)]]
    with assemble.open_exam(run, settings, parts) as exam, progress(exam, quiet=quiet) as shown:
        return asyncio.run(
            assemble.examine(run, exam, list(dict.fromkeys(agents)), settings, parts, shown.event)
        )


def _comparison(run: Run) -> Comparison | None:
    if not (run.folder / FOLDER / "run.json").exists():
        return None
    with Run.open(run.folder / FOLDER) as exam:
        seed = candidate(exam, run.tree.agents[0])
        best = candidate(exam, run.tree.agents[best_belief(run.tree)])
        return None if seed is None or best is None else compare(exam, seed, best)


def _record(found: Comparison) -> dict[str, Any]:
    return {
        "seed": tally_record(found.first),
        "best": tally_record(found.second),
        "gained": list(found.gained),
        "lost": list(found.lost),
        "mcnemar_p": round(found.p, 6),
        "shown_better": _is_better(found),
    }


def _is_better(found: Comparison) -> bool:
    return found.p < SIGNIFICANT and len(found.gained) > len(found.lost)


def _search_lines(run: Run, best: AgentId) -> list[str]:
    lines = ["on the search tasks (chosen on these, so they flatter the best agent):"]
    for name, agent in (("seed", AgentId(0)), ("best", best)):
        own = run.tree.own(agent)
        lines.append(f"  {name}  agent {agent:<4} {tally_text(own):<12} {interval_text(own)}")
    return [*lines, f"  best agent's last step: {one_line(run.tree.agents[best].rationale, 80)}"]


def _holdout_lines(run: Run, found: Comparison | None, best: AgentId) -> list[str]:
    if found is None:
        return [f"holdout tasks: not evaluated for these two agents; run: dgm report {run.name} --holdout"]
    lines = [
        f"on {found.first.n} holdout tasks, which nothing in the search has seen (95 % Wilson intervals):"
    ]
    for name, agent, tally in (("seed", 0, found.first), ("best", best, found.second)):
        lines.append(f"  {name}  agent {agent:<4} {tally_text(tally):<12} {interval_text(tally)}")
    verdict = "better than the seed" if _is_better(found) else "not shown to be better than the seed"
    pairs = f"{len(found.gained)} gained, {len(found.lost)} lost; exact McNemar p = {found.p:.3f}"
    lines.append(f"  {pairs}: the best agent is {verdict}")
    if run.config["settings"]["model"] == "offline":
        lines.append(
            "  offline model: a repair program, not a language model; tasks and edits have the same authors, "
            "so improvement is expected, not a finding"
        )
    return lines
