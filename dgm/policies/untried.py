"""Which tasks an agent has not tried, and a fair draw among them."""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Evaluate


def agents_with_untried(tree: Tree) -> NDArray[np.int64]:
    """Ids of the agents that have a task left which is neither graded, pending nor given up; ascending."""
    tried = np.array(tree.tried_count, dtype=np.int64)
    return np.flatnonzero(tried < len(tree.tasks))


def draw_task(tree: Tree, agent: AgentId, rng: Random) -> Evaluate:
    """An untried task of ``agent``, each as likely as any other; there must be one."""
    tried = tree.tried(agent)
    return Evaluate(agent, rng.choice([task for task in tree.tasks if task not in tried]))
