"""Which tasks an agent has not tried, who has any, and a fair draw among them."""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import AgentId, TaskId
from dgm.policies.outcomes import scores
from dgm.policies.rules import PolicyContext


def agents_with_untried(tree: Tree) -> NDArray[np.int64]:
    """Return the ids of the agents with a task that is neither graded, pending nor given up; ascending."""
    tried = np.array(tree.tried_count, dtype=np.int64)
    return np.flatnonzero(tried < len(tree.tasks))


def best_untried(tree: Tree) -> AgentId | None:
    """Return the agent with the best score and an untried task; ``None`` where every agent has tried every task.

    Among equals it is the oldest.
    """
    rest = agents_with_untried(tree)
    return AgentId(int(rest[int(np.argmax(scores(tree)[rest]))])) if len(rest) else None


def untried(tree: Tree, agent: AgentId) -> list[TaskId]:
    """Return the tasks that the agent has not tried, in the order of the suite."""
    tried = tree.tried(agent)
    return [task for task in tree.tasks if task not in tried]


class RandomTask:
    """The task rule that draws each untried task with the same chance."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def task(self, tree: Tree, agent: AgentId, rng: Random) -> TaskId:
        """Return an untried task of ``agent``."""
        return rng.choice(untried(tree, agent))
