"""What a child lost of its parents' tasks, and what it gained: flips, as release engineering counts them.

Source of the idea: a release is kept out that breaks more than it mends (AgentDevel).
"""

from array import array
from typing import TYPE_CHECKING

from dgm.domain import AgentId, TaskId, Verdict

if TYPE_CHECKING:
    from dgm.archive.tree import Tree


class FlipCounts:
    """Of all agents, kept up to date by the tree where the run asks for it."""

    __slots__ = ("balance", "counts")

    def __init__(self) -> None:
        self.counts = False
        """Whether agents that lost more than they gained have no children; where not, all of ``balance`` is 0."""
        self.balance = array("q")
        """Tasks that the agent gained against its parents, minus those that it lost; by its id."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlipCounts):
            return NotImplemented
        return (self.counts, self.balance) == (other.counts, other.balance)

    __hash__ = None  # type: ignore[assignment]  # it changes


def flip(tree: "Tree", agent: AgentId, task: TaskId) -> int:
    """1 gained, -1 lost, 0 neither; by first attempts alone, so that it may change with a parent's verdict.

    Gained: the agent resolved the task, and of its parents at least one has tried it and none resolved it. Lost: the
    agent did not resolve it, and a parent did. The seed has no parents and flips nothing.
    """
    own = tree.verdict(agent, task)
    if own is None:
        return 0
    parents = [tree.verdict(parent, task) for parent in tree.agents[agent].parents]
    if Verdict.RESOLVED in parents:
        return 0 if own is Verdict.RESOLVED else -1
    return int(own is Verdict.RESOLVED and Verdict.UNRESOLVED in parents)
