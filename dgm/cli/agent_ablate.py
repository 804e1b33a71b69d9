"""``dgm agent ablate``: say which parts of an agent help, hurt, or only cost tokens."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import Amount, as_json, engine_option, sandbox_option
from dgm.cli.output import emit_json
from dgm.cli.spending import TRIES, money_text, yes_option
from dgm.domain import Split
from dgm.errors import UserError
from dgm.show.safe import neutralise
from dgm.show.words import count_text, usd_text

if TYPE_CHECKING:
    from dgm.sessions.ablation import AblationPlan


@click.command()
@click.argument("agent", metavar="AGENT")
@click.option(
    "--benchmark", help="The suite whose tasks it tries (default: the run's; starter without a run)."
)
@click.option(
    "--split",
    type=click.Choice([split.value for split in Split]),
    default=Split.SEARCH.value,
    show_default=True,
    help="Which tasks.",
)
@click.option(
    "--task", "--tasks", "tasks", multiple=True, metavar="TASK", help="Only this task; may be repeated."
)
@click.option(
    "--part", "only", multiple=True, metavar="PATTERN", help="Only these parts, such as 'CLAUDE.md#*'."
)
@click.option(
    "--attempts",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Times that each task is tried.",
)
@click.option("--model", help="The model it works with (default: the run's; auto without a run).")
@click.option("--max-usd", type=Amount(), help="Money for all of it, earlier sessions included.")
@click.option("--workers", type=click.IntRange(1, 4096), help="Tasks at once.")
@sandbox_option()
@engine_option
@click.option("--into", type=click.Path(path_type=Path), help="Folder to record it in.")
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A setting, such as limits.calls."
)
@yes_option
@as_json
def ablate(agent: str, split: str, only: tuple[str, ...], yes: bool, as_json: bool, **flags: Any) -> int:
    """Say which sections, skills, sub-agents, hooks and MCP servers of AGENT help, hurt, or only cost tokens.

    AGENT (a folder, a shipped agent, or RUN/AGENT) tries each task as it is, and without each of its parts. First it
    is started without each part, for nothing, and the price is told. The same command goes on where it ended and pays
    for nothing twice.
    """
    from dgm.cli.evaluation import perform_session, report_missing
    from dgm.cli.watching import TerminalWatcher
    from dgm.sessions import ablation
    from dgm.sessions.evaluation import EvaluationChoice
    from dgm.show.ablation_rows import effect_rows

    watcher = TerminalWatcher()
    chosen = EvaluationChoice(split=Split(split), **flags)

    def begins(part: str) -> None:
        sys.stderr.write(f"starting {neutralise(agent)}{f' without {neutralise(part)}' if part else ''} …\n")

    plan = asyncio.run(ablation.plan_ablation(agent, only, chosen, watcher, begins))
    _confirm(plan, yes=yes)
    session = asyncio.run(ablation.begin_ablation(plan, watcher))
    with session.made:
        found = perform_session(session, watcher, quiet=as_json, settings=plan.request.settings)
    result = ablation.judge_ablation(plan, found)
    if as_json:
        emit_json(result.record())
    else:
        rows = effect_rows(result.effects, result.tasks_needed)
        sys.stdout.write("\n".join([*rows, f"recorded in {found.folder}"]) + "\n")
    return report_missing(found)


def _confirm(plan: "AblationPlan", *, yes: bool) -> None:
    """Tell what the ablation takes, and ask where it would spend money without a limit.

    Raises:
        UserError: the answer is no, or there is no terminal to ask on.
    """
    from dgm.evaluation.ablation import DIFFERENCE, fewest_tasks, tasks_to_show

    if not plan.missing:
        return
    agents, parts = len(plan.parts) + 1, count_text(len(plan.parts), "part")
    attempts = plan.request.attempts
    sys.stderr.write(
        f"{parts}: {count_text(agents, 'agent')} × {count_text(plan.tasks, 'task')} × "
        f"{count_text(attempts, 'attempt')} = {count_text(plan.evaluations, 'evaluation')}, "
        f"{plan.missing:,} of them still to do; a first turn is about {plan.turns[''] or 0:,} tokens\n"
    )
    fewest = fewest_tasks(max(1, len(plan.parts)))
    if plan.tasks < fewest:
        sys.stderr.write(
            f"too few tasks to show any effect: with {parts} at least {fewest} must change in the same direction; "
            f"give more tasks, or fewer parts (--part)\n"
        )
    else:
        sys.stderr.write(
            f"about {tasks_to_show(len(plan.parts))} tasks show a difference of {DIFFERENCE * 100:.0f} points, more if "
            "the agent's results vary from attempt to attempt\n"
        )
    if not plan.price:
        return
    turn = plan.price.most(plan.turns[""] or 0, 0)
    price = (
        f"price: {money_text(turn)} USD for the input of a first turn; by the limits one evaluation costs at most "
        f"{money_text(plan.usd_each)} USD, and all {plan.missing:,} cost {money_text(plan.missing * plan.usd_each)} "
        f"USD; what they really cost is told after {TRIES} evaluations"
    )
    if plan.usd_limit is not None:
        sys.stderr.write(f"{price}; --max-usd ends it at {usd_text(plan.usd_limit)} USD\n")
    elif yes:
        sys.stderr.write(f"{price}\n")
    elif not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(f"{price}; nothing was spent; set --max-usd, or add --yes")
    elif not click.confirm(f"{price}; go on?", default=False, err=True):
        raise UserError("not confirmed: nothing was spent; set --max-usd to spend less")
