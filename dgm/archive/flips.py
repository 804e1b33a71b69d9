"""Flips, a term of release engineering: the tasks that a child lost or gained compared with its parents.

Source of the idea: reject a release that breaks more than it fixes (AgentDevel).
"""

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dgm.domain import AgentId, TaskId, Verdict

if TYPE_CHECKING:
    from dgm.archive.tree import Tree


@dataclass(slots=True)
class FlipCounts:
    """The flips of all agents; the tree keeps them up to date if the run asks for it."""

    counts: bool = False
    """Whether agents that lost more than they gained may not have children; if False, all of ``balance`` is 0."""
    balance: "array[int]" = field(default_factory=lambda: array("q"))
    """Tasks gained minus tasks lost against the agent's parents, indexed by agent id."""


def flip(tree: "Tree", agent: AgentId, task: TaskId) -> int:
    """Return 1 if the agent gained the task, -1 if it lost it, 0 otherwise.

    Only first attempts count, so the value may change with a later verdict of a parent.

    Gained: the agent resolved the task, at least one parent has tried it, and no parent resolved it. Lost: the agent
        did not resolve it, and a parent did. The seed has no parents and flips nothing.
    """
    own = tree.verdict(agent, task)
    if own is None:
        return 0
    parents = [tree.verdict(parent, task) for parent in tree.agents[agent].parents]
    if Verdict.RESOLVED in parents:
        return 0 if own is Verdict.RESOLVED else -1
    return int(own is Verdict.RESOLVED and Verdict.UNRESOLVED in parents)
