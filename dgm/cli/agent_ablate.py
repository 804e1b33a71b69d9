"""``dgm agent ablate``: say which parts of an agent help, hurt, or only cost tokens."""

import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import as_json, evaluation_options, yes_option
from dgm.cli.output import emit_json
from dgm.cli.spending import TRIES
from dgm.domain import Split
from dgm.errors import UserError
from dgm.evaluation.ablation import DIFFERENCE, LEVEL, Effect, PartEffect, fewest_tasks, tasks_to_show
from dgm.render import fmt
from dgm.show.safe import neutralise
from dgm.show.words import count_text, p_text, usd_text

if TYPE_CHECKING:
    from dgm.sessions.ablation import Ablation, AblationPlan

HEADS = ("part", "with", "without", "difference (95 %)", "p", "tokens/turn", "verdict")


@click.command()
@click.argument("agent", metavar="AGENT")
@click.option("--benchmark", help="The suite whose search tasks it tries (default starter).")
@click.option(
    "--part", "only", multiple=True, metavar="PATTERN", help="Only these parts, such as 'CLAUDE.md#*'."
)
@evaluation_options(attempts=1)
@yes_option
@as_json
def ablate(agent: str, only: tuple[str, ...], yes: bool, as_json: bool, **flags: Any) -> int:
    """Say which parts of AGENT help, hurt, or only cost tokens.

    Parts are sections of Markdown files, skills, sub-agents, commands, hooks and MCP servers. AGENT (a folder or a
    shipped agent) tries each task as it is, and without each of its parts. First it is started without each part, for
    nothing, and the price is told. The same command goes on where it ended and pays for nothing twice.
    """
    from dgm.api.evaluating import EvaluationChoice
    from dgm.cli.watching import TerminalWatcher
    from dgm.render.evaluation_text import incomplete_text
    from dgm.sessions import ablation

    watcher = TerminalWatcher()
    if sandbox := flags.pop("sandbox"):
        flags["assignments"] = (*flags["assignments"], f"sandbox={sandbox}")
    chosen = EvaluationChoice(split=Split.SEARCH, **flags)

    def begins(part: str) -> None:
        sys.stderr.write(f"starting {neutralise(agent)}{f' without {neutralise(part)}' if part else ''} …\n")

    plan = asyncio.run(ablation.plan_ablation(agent, only, chosen, watcher, begins))
    _confirm(plan, yes=yes)
    session = asyncio.run(ablation.begin_ablation(plan, watcher))
    with session.run:
        report = session.view(asyncio.run(session.perform(watcher)))
        result = ablation.judge_ablation(plan, session, report)
    if as_json:
        emit_json(result.record())
    else:
        sys.stdout.write("\n".join([*_rows(result), f"recorded in {report.folder}"]) + "\n")
    if text := incomplete_text(report):
        sys.stderr.write(f"{text}\n")
    return report.exit_code


def _confirm(plan: "AblationPlan", *, yes: bool) -> None:
    """Tell what the ablation takes, and ask where it would spend money without a limit.

    Raises:
        UserError: the answer is no, or there is no terminal to ask on.
    """
    if not plan.missing:
        return
    parts, turn = len(plan.parts), plan.turns[""] or 0
    fewest = fewest_tasks(parts)
    sys.stderr.write(
        f"{count_text(parts + 1, 'agent')} × {count_text(plan.tasks, 'task')} × "
        f"{count_text(plan.request.chosen.attempts, 'attempt')} = {count_text(plan.evaluations, 'evaluation')}, "
        f"{plan.missing:,} of them still to do; a first turn is about {turn:,} tokens\n"
        f"with {count_text(parts, 'part')} an effect shows if {fewest} tasks or more change in the same direction; a "
        f"difference of {100 * DIFFERENCE:.0f} points takes about {tasks_to_show(parts)} tasks\n"
    )
    if plan.tasks < fewest:
        sys.stderr.write("these tasks are too few to show any effect: give more, or fewer parts (--part)\n")
    if not plan.price:
        return
    price = (
        f"price: {fmt.money(plan.price.most(turn, 0))} for the input of a first turn; by the limits all "
        f"{plan.missing:,} evaluations cost at most {fmt.money(plan.missing * plan.usd_each)}; what they really "
        f"cost is told after {TRIES} of them"
    )
    if yes or not plan.needs_consent:
        limit = f"; it ends at {usd_text(plan.usd_limit)} USD" if plan.usd_limit else ""
        sys.stderr.write(f"{price}{limit}\n")
    elif not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(f"{price}; nothing was spent; set --max-usd, or add --yes")
    elif not click.confirm(f"{price}; go on?", default=False, err=True):
        raise UserError("not confirmed: nothing was spent; set --max-usd to spend less")


def _rows(result: "Ablation") -> Iterator[str]:
    """Yield the table of all parts and its explanation."""
    rows = [HEADS, *map(_cells, result.effects)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for part, *figures, verdict in rows:
        cells = [cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=False)]
        yield "  ".join([part.ljust(widths[0]), *cells, verdict])
    judged = [each for each in result.effects if each.effect is not Effect.NEEDED]
    yield "difference: percentage points of tasks resolved with the part minus without it; 95 % for this part alone"
    parts = count_text(len(judged), "part")
    yield f"p: exact paired test over tasks, adjusted for {parts} (Holm); up to {LEVEL} counts as an effect"
    if any(each.effect is Effect.NOT_SHOWN for each in judged):
        needed, tasks = tasks_to_show(len(judged)), max(each.tasks for each in judged)
        yield (
            f"'{Effect.NOT_SHOWN}' does not mean that there is none: a difference of {100 * DIFFERENCE:.0f} points "
            f"takes at least {needed} tasks to show, and here are {tasks}"
        )


def _cells(each: PartEffect) -> tuple[str, ...]:
    part = neutralise(each.part)
    if each.effect is Effect.NEEDED:
        return part, "–", "–", "–", "–", "–", each.effect
    low, high = (100 * end for end in each.interval)
    return (
        part,
        f"{each.with_part}/{each.pairs}",
        f"{each.without_part}/{each.pairs}",
        f"{100 * each.difference:+.0f} ({low:+.0f} to {high:+.0f})",
        p_text(each.p).removeprefix("p ").removeprefix("= "),
        f"{each.tokens:,}",
        each.effect,
    )
