"""Performance times novelty in the space of task outcomes (Group-Evolving Agents, arXiv:2602.04837, section 3).

    score_i = α_i * sqrt(nov_i),    nov_i = mean of d(i, j) over the 4 nearest j,
    d(i, j) = 1 - z_i · z_j / (|z_i| * |z_j| + 1e-8)

α is the share of an agent's own evaluations that it resolved. z holds its outcomes, 1 for a solved task. The 2 agents
with the highest scores are the parents of a round (K = 2 and M = 4 in the paper and its program), with one child each.
Here each expansion draws one of the two; the agent with fewer children being made goes first. Stages are those of
``staged``.

Departures: published vectors cover a fixed list of tasks; here d looks at the tasks on which both agents have a
verdict. With fewer than 5 such tasks (or fewer than all, in a smaller suite) two agents are not compared. An agent that
compares with nobody has the highest novelty, 1. Sharing experience within the group is the operator's part.
``standings.candidates`` says who is a candidate. Where nobody solves anything all scores are 0, and the oldest two are
the group. Among equals the older is taken.

Distances to the best 64 agents bound everybody's novelty from above. Agents are examined in the order of that bound;
those that cannot join the group any more are not examined.
"""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composition
from dgm.policies.outcomes import outcomes, scores
from dgm.policies.rules import PolicyContext
from dgm.policies.standings import being_made, candidates

NOVELTY = Composition(gate="staged", parent="novelty", evaluation="staged", task="fixed-order")

GROUP = 2
"""K."""
NEIGHBOURS = 4
"""M."""
COMMON = 5
"""Tasks that two agents must share to be compared."""
EPSILON = 1e-8
BLOCK = 64
"""Agents that are looked at together."""
ONE_THREAD = 2**18
"""Multiplications up to which OpenBLAS keeps to one thread."""


class PerformanceNovelty:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """Return one of the group; nobody while there is no candidate."""
        making = [parent for parents in being_made(tree) for parent in parents]
        members = group(tree)
        if not members:
            return ()
        least = min(map(making.count, members))
        free = [member for member in members if making.count(member) == least]
        return (free[int(rng.random() * len(free))],)


def group(tree: Tree) -> list[AgentId]:
    """Return the ``GROUP`` agents with the highest scores, best first; fewer where there are fewer candidates."""
    agents = candidates(tree)
    alpha = scores(tree)[agents]
    solved, known = outcomes(tree, [AgentId(int(agent)) for agent in agents])
    found: list[tuple[float, int]] = []
    limit = alpha * np.sqrt(_most_novel(np.lexsort((agents, -alpha))[:BLOCK], solved, known))
    order = np.lexsort((agents, -limit))
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        if len(found) == GROUP and limit[block[0]] < -found[-1][0]:
            break
        worth = alpha[block] * np.sqrt(_novelty(block, solved, known))
        found = sorted([*found, *zip((-worth).tolist(), agents[block].tolist(), strict=True)])[:GROUP]
    return [AgentId(agent) for _, agent in found]


def novelty(tree: Tree) -> NDArray[np.float64]:
    """Return the novelty of every agent that ``candidates`` names, in that order.

    It goes from 0.0 (the nearest neighbours have the same outcomes) to 1.0.
    """
    solved, known = outcomes(tree, [AgentId(int(agent)) for agent in candidates(tree)])
    return _novelty(np.arange(len(solved)), solved, known)


def _novelty(
    rows: NDArray[np.int64], solved: NDArray[np.float64], known: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean distance of some rows to their nearest neighbours among all."""
    apart = _distances(rows, solved, known)
    size = min(NEIGHBOURS, apart.shape[1])
    nearest = np.sort(np.partition(apart, size - 1, axis=1)[:, :size], axis=1)
    comparable = np.isfinite(nearest)
    total = np.where(comparable, nearest, 0.0).sum(axis=1)
    count = comparable.sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


def _most_novel(
    rows: NDArray[np.int64], solved: NDArray[np.float64], known: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return an upper bound on every agent's novelty, by its distances to these rows alone; shape (agents,).

    The bound is 1.0 where fewer than ``NEIGHBOURS`` rows compare with the agent.
    """
    if len(rows) < NEIGHBOURS:
        return np.ones(len(solved))
    apart = _distances(rows, solved, known)
    nearest = np.sort(np.partition(apart, NEIGHBOURS - 1, axis=0)[:NEIGHBOURS], axis=0)
    return np.asarray(np.minimum(nearest.sum(axis=0) / NEIGHBOURS, 1.0), dtype=np.float64)


def _distances(
    rows: NDArray[np.int64], solved: NDArray[np.float64], known: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distances of some rows to all; infinite to themselves and to rows that share too few tasks."""
    here, there = solved[rows], known[rows]
    # Whole numbers are exact in any order of summing: tasks that i solved of those that j tried, and the reverse.
    squares = _product(here, known) * _product(there, solved)
    apart = 1.0 - _product(here, solved) / (np.sqrt(squares) + EPSILON)
    apart[_product(there, known) < min(COMMON, solved.shape[1])] = np.inf
    apart[np.arange(len(rows)), rows] = np.inf
    return apart


def _product(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``left @ right.T``, computed in pieces that are too small to be spread over threads.

    On busy processors threads are slower, by up to a hundred times.
    """
    step = max(1, ONE_THREAD // max(left.size, 1))
    return np.hstack([left @ right[start : start + step].T for start in range(0, len(right), step)])
