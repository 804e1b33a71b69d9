"""Who solved what: how many, as shares, and as matrices."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Verdict


def graded(tree: Tree) -> NDArray[np.int64]:
    """Return per agent the number of its own evaluations that count: resolved and unresolved."""
    resolved = np.array(tree.own_resolved, dtype=np.int64)
    return resolved + np.array(tree.own_unresolved, dtype=np.int64)


def scores(tree: Tree) -> NDArray[np.float64]:
    """Return per agent the share of its own evaluations that it resolved; 0.0 where it has none."""
    resolved = np.array(tree.own_resolved, dtype=np.float64)
    return resolved / np.maximum(graded(tree), 1)


def outcomes(tree: Tree, agents: Sequence[AgentId]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return which tasks each agent solved, and on which it has a verdict; entries 0 and 1, shapes (agents, tasks).

    Verdicts are those of first attempts. Entries are floats, because products of such matrices are fast and still
    exact.
    """
    column = {task: place for place, task in enumerate(tree.tasks)}
    resolved = Verdict.RESOLVED  # looked up once: an enumeration's members are slow to reach
    solved: list[int] = []
    known: list[int] = []
    for row, agent in enumerate(agents):
        start = row * len(column)
        verdicts = tree.verdicts(agent).items()
        known += [start + column[task] for task, verdict in verdicts if verdict is not None]
        solved += [start + column[task] for task, verdict in verdicts if verdict is resolved]
    shape = len(agents), len(column)
    return _ones(solved, shape), _ones(known, shape)


def _ones(cells: list[int], shape: tuple[int, int]) -> NDArray[np.float64]:
    flat = np.zeros(shape[0] * shape[1])
    flat[cells] = 1.0
    return flat.reshape(shape)
