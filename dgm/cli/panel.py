"""The live panel of a search: a bar for every limit, counts, and the best agent."""

from collections.abc import Mapping, Sequence

from dgm.analysis.best import BestAgent
from dgm.analysis.budget_use import BudgetUse, budget_uses_of
from dgm.analysis.budgets import describe_budget_use
from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.show.best import STAR_MEANS, best_text
from dgm.show.events import agent_name
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import BEST, bar_text, clock_text, interval_text, tally_text, usd_text

BAR_WIDTH = 20
NAMED = 4
"""Maximum number of named agents whose tallies are shown."""
NEAR, NEARER = 0.8, 0.95
"""Used shares of a limit, from 0 to 1, from which its bar warns, and warns more."""
_GOALS = ("evaluations", "agents")
"""Limits that a search is meant to reach; for the others, a person wants an early warning."""


def panel_lines(tree: Tree, names: Mapping[AgentId, str], best: BestAgent | None) -> Sequence[Line]:
    """Return the panel without time and recent events; evaluations, agents, money and tokens have a line each.

    Args:
        tree: the run so far.
        names: names of the agents that are evaluated by name.
        best: the agent that the policy recommends; None if there is none to show.
    """
    uses = {use.name: use for use in budget_uses_of(tree)}
    spend, taken = tree.spend, describe_budget_use(tree)
    dead = sum(tree.stillborn.values())
    more = f"; stillborn {dead}, invalid {tree.invalid}"
    lines = [
        limit_line("evaluations", uses.get("evaluations"), f"{tree.evaluations:,}"),
        *([make_line(_key_span("budget"), taken)] if taken else []),
        limit_line("agents", uses.get("agents"), f"{len(tree.agents):,}", more),
        limit_line("money", uses.get("usd"), f"{spend.usd:.4f} USD"),
        limit_line("tokens", uses.get("tokens"), f"{spend.tokens:,}", f" in {spend.calls:,} calls"),
    ]
    if tree.waiting:
        who = "1 child waits" if len(tree.waiting) == 1 else f"{len(tree.waiting)} children wait"
        lines.append(make_line(_key_span("waiting"), Span(f"{who} for you (dgm approve)", Tone.WARN)))
    if best:
        lines.append(make_line(_key_span("best"), Span(f"{BEST} {best_text(best)}", Tone.MARK)))
        lines.append(make_line(Span(f"  {STAR_MEANS}", Tone.DIM)))
    return [*lines, *_named_tally_lines(tree, names)]


def _named_tally_lines(tree: Tree, names: Mapping[AgentId, str]) -> list[Line]:
    """Return the tallies of agents that are evaluated by name; no policy recommends one of them."""
    own = {agent: tree.own(agent) for agent in list(names)[:NAMED]}
    return [
        make_line(
            _key_span("resolved"),
            Span(agent_name(agent, names), Tone.MARK),
            f"  {tally_text(tally)}  {interval_text(tally)}",
        )
        for agent, tally in own.items()
        if tally.n
    ]


def time_line(used: float, limit: float | None, more: str) -> Line:
    """Return the time line, with a bar if there is a limit.

    Args:
        used: seconds over all sessions of the run.
        limit: seconds; None for no limit.
        more: text to append.
    """
    return limit_line(
        "time", None if limit is None else BudgetUse("seconds", used, limit), clock_text(used), more
    )


def limit_line(name: str, use: BudgetUse | None, count: str, more: str = "") -> Line:
    """Return a name, the used share of a limit as a bar, a number and a percentage; ``count`` if there is no limit."""
    if use is None:
        return make_line(_key_span(name), f"{count}{more}")
    tone = _use_tone(use)
    return make_line(
        _key_span(name),
        Span(bar_text(use.share, BAR_WIDTH), tone),
        f" {_use_text(use)}",
        Span(f" {use.share:.0%}", tone),
        more,
    )


def _use_text(use: BudgetUse) -> str:
    match use.name:
        case "usd":
            return f"{use.used:.4f} of {usd_text(use.limit)} USD"
        case "seconds":
            return f"{clock_text(use.used)} of {clock_text(use.limit)}"
        case _:
            return f"{use.used:,.10g} of {use.limit:,.10g}"


def _use_tone(use: BudgetUse) -> Tone:
    if use.name in _GOALS or use.share < NEAR:
        return Tone.GOOD
    return Tone.WARN if use.share < NEARER else Tone.BAD


def _key_span(name: str) -> Span:
    return Span(f"{name:<13}", Tone.KEY)
