"""Which tasks an agent has not tried, who has any, and a fair draw among them."""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import AgentId, TaskId
from dgm.policies.outcomes import scores
from dgm.policies.rules import Kit


def agents_with_untried(tree: Tree) -> NDArray[np.int64]:
    """Ids of the agents that have a task left which is neither graded, pending nor given up; ascending."""
    tried = np.array(tree.tried_count, dtype=np.int64)
    return np.flatnonzero(tried < len(tree.tasks))


def best_untried(tree: Tree) -> AgentId | None:
    """The best score of those agents, the oldest among equals; ``None`` where every agent has tried every task."""
    rest = agents_with_untried(tree)
    return AgentId(int(rest[int(np.argmax(scores(tree)[rest]))])) if len(rest) else None


def untried(tree: Tree, agent: AgentId) -> list[TaskId]:
    """The tasks that the agent has not tried, in the order of the suite."""
    tried = tree.tried(agent)
    return [task for task in tree.tasks if task not in tried]


class RandomTask:
    """Each untried task is as likely as any other."""

    def __init__(self, kit: Kit) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def task(self, tree: Tree, agent: AgentId, rng: Random) -> TaskId:
        """An untried task of ``agent``."""
        return rng.choice(untried(tree, agent))
