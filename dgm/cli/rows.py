"""How tallies, agents and trees look in a terminal: one visual language for all lists."""

from collections.abc import Iterator

from dgm.archive.tree import Tree
from dgm.cli.output import one_line
from dgm.domain import Agent, AgentId, Tally
from dgm.stats import wilson

BAR = 8
RATIONALE_WIDTH = 60


def tally_text(tally: Tally) -> str:
    """``5/12 42%``; a dash where nothing was evaluated."""
    return f"{tally.resolved}/{tally.n} {tally.rate:.0%}" if tally.n else "–"


def interval_text(tally: Tally) -> str:
    """The 95 % Wilson interval, as ``19–68%``."""
    low, high = wilson(tally)
    return f"{low:.0%}–{high:.0%}".replace("%–", "–") if tally.n else ""


def bar(rate: float) -> str:
    """A small bar for a rate between 0 and 1."""
    full = round(rate * BAR)
    return "█" * full + "░" * (BAR - full)


def agent_text(tree: Tree, agent: Agent, best: AgentId | None) -> str:
    """One agent on one line: id, tallies, operator, rationale; the best is marked with a star."""
    own, clade = tree.own(agent.id), tree.clade(agent.id)
    star = " ★" if agent.id == best else ""
    words = [f"{agent.id}{star}", bar(own.rate), f"own {tally_text(own)}"]
    if tree.children(agent.id):
        words.append(f"clade {tally_text(clade)}")
    parents = f" of {' and '.join(map(str, agent.parents))}" if len(agent.parents) > 1 else ""
    words.append(f"{agent.operator}{parents}")
    if agent.rationale:
        words.append(one_line(agent.rationale, RATIONALE_WIDTH))
    return "  ".join(words)


def tree_lines(tree: Tree, best: AgentId | None, depth: int | None = None) -> Iterator[str]:
    """The archive as lines of text, parents before children; a second parent's child is shown once."""
    waiting = [(agent.id, "", "") for agent in reversed(tree.agents) if not agent.parents]
    while waiting:
        identity, lead, below = waiting.pop()
        yield lead + agent_text(tree, tree.agents[identity], best)
        if depth is not None and tree.depth(identity) >= depth:
            continue
        children = [c for c in tree.children(identity) if tree.agents[c].parents[0] == identity]
        last = len(children) - 1
        waiting += [
            (child, below + ("└─ " if n == last else "├─ "), below + ("   " if n == last else "│  "))
            for n, child in reversed(list(enumerate(children)))
        ]
