"""How tallies, agents and trees look in a terminal: one visual language for all lists."""

from collections.abc import Iterator, Mapping

from dgm.archive.tree import Tree
from dgm.cli.output import one_line
from dgm.domain import Agent, AgentId, Tally, Usage
from dgm.stats import wilson

BAR = 8
RATIONALE_WIDTH = 60
AIMLESS: Mapping[AgentId, str] = {}


def tally_text(tally: Tally) -> str:
    """``5/12 42%``; a dash where nothing was evaluated."""
    return f"{tally.resolved}/{tally.n} {tally.rate:.0%}" if tally.n else "–"


def interval_text(tally: Tally) -> str:
    """The 95 % Wilson interval, as ``19–68%``."""
    low, high = wilson(tally)
    return f"{low:.0%}–{high:.0%}".replace("%–", "–") if tally.n else ""


def mcnemar_text(p: float, mid_p: float) -> str:
    """``exact McNemar p = 0.375 (mid-p 0.219)``."""
    return f"exact McNemar p = {p:.3f} (mid-p {mid_p:.3f})"


def usage_text(usage: Usage) -> str:
    """``12 model calls, 34,567 tokens, 0.0123 USD``."""
    calls = "1 model call" if usage.calls == 1 else f"{usage.calls:,} model calls"
    return f"{calls}, {usage.tokens:,} tokens, {usage.usd:.4f} USD"


def usd_text(limit: float) -> str:
    """A limit as people write it: ``0.50``, ``12.00``, ``0.0025``."""
    return f"{limit:.2f}" if limit == round(limit, 2) else f"{limit:g}"


def usage_lines(by: Mapping[tuple[str, str], Usage], indent: str) -> Iterator[str]:
    """A line for each role and model, the dearest first."""
    width = max((len(f"{role} {model}") for role, model in by), default=0)
    for (role, model), usage in sorted(by.items(), key=lambda item: (-item[1].usd, -item[1].tokens, item[0])):
        yield f"{indent}{one_line(f'{role} {model}', 80):<{min(width, 80)}}  {usage_text(usage)}"


def bar(rate: float) -> str:
    """A small bar for a rate between 0 and 1."""
    full = round(rate * BAR)
    return "█" * full + "░" * (BAR - full)


def operator_text(operator: str, aim: str) -> str:
    """``module:context``; the operator alone where there was no aim."""
    return f"{operator}:{one_line(aim, 40)}" if aim else operator


def agent_text(tree: Tree, agent: Agent, best: AgentId | None, aim: str = "") -> str:
    """One agent on one line: id, tallies, operator, rationale; the best is marked with a star."""
    own, clade = tree.own(agent.id), tree.clade(agent.id)
    star = " ★" if agent.id == best else ""
    words = [f"{agent.id}{star}", bar(own.rate), f"own {tally_text(own)}"]
    if tree.children(agent.id):
        words.append(f"clade {tally_text(clade)}")
    parents = f" of {' and '.join(map(str, agent.parents))}" if len(agent.parents) > 1 else ""
    words.append(f"{operator_text(agent.operator, aim)}{parents}")
    if agent.rationale:
        words.append(one_line(agent.rationale, RATIONALE_WIDTH))
    return "  ".join(words)


def tree_lines(
    tree: Tree, best: AgentId | None, depth: int | None = None, aims: Mapping[AgentId, str] = AIMLESS
) -> Iterator[str]:
    """The archive as lines of text, parents before children; a second parent's child is shown once.

    Args:
        tree: the archive.
        best: marked with a star.
        depth: steps from the seed down to which agents are shown; None for all.
        aims: what agents were made for, where that was said.
    """
    waiting = [(agent.id, "", "") for agent in reversed(tree.agents) if not agent.parents]
    while waiting:
        identity, lead, below = waiting.pop()
        yield lead + agent_text(tree, tree.agents[identity], best, aims.get(identity, ""))
        if depth is not None and tree.depth(identity) >= depth:
            continue
        children = [c for c in tree.children(identity) if tree.agents[c].parents[0] == identity]
        last = len(children) - 1
        waiting += [
            (child, below + ("└─ " if n == last else "├─ "), below + ("   " if n == last else "│  "))
            for n, child in reversed(list(enumerate(children)))
        ]
