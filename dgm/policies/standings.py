"""How agents stand: what several parent rules weigh, and the draw in proportion to weights.

Arrays have one entry per agent, indexed by its id, unless a function says otherwise.
"""

import math
from itertools import accumulate, chain
from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId, Expand
from dgm.policies.limits import fertile
from dgm.policies.outcomes import graded
from dgm.policies.staged import FIRST_STAGE, evaluations_in_flight


def judged(tree: Tree) -> NDArray[np.bool_]:
    """Return which agents have a meaningful score.

    An agent has one with ``FIRST_STAGE`` verdicts (or as many as there are tasks), or with any verdict and no
    evaluation in flight. So a lucky first verdict does not make a parent while the rest of a stage still runs.
    """
    counts = graded(tree)
    enough = counts >= min(FIRST_STAGE, len(tree.tasks))
    return np.asarray((counts > 0) & (enough | (evaluations_in_flight(tree) == 0)))


def candidates(tree: Tree) -> NDArray[np.int64]:
    """Return the ids of the fertile agents that were judged, ascending.

    Where nobody was judged it is the seed alone, so that an archive can always grow. While the seed's evaluations run
    it is nobody.
    """
    found = judged(tree)
    if not found.any():
        found[SEED] = not evaluations_in_flight(tree)[SEED]
    return np.flatnonzero(found & fertile(tree))


def being_made(tree: Tree) -> list[tuple[AgentId, ...]]:
    """Return the parents of each child on its way: in an expansion under way, or waiting for a person."""
    actions = chain(tree.pending.values(), tree.to_redo().values())
    running = [action.parents for action in actions if isinstance(action, Expand)]
    return running + [waiting.child.parents for waiting in tree.waiting.values()]


def offspring(tree: Tree) -> NDArray[np.int64]:
    """Return per agent the number of its children: born, being made and stillborn.

    A stillborn child counts for its first parent only, because the tree does not know the second.
    """
    size, made = len(tree.agents), being_made(tree)
    born = np.array([len(tree.children(agent.id)) for agent in tree.agents], dtype=np.int64)
    making = _count([parent for parents in made for parent in dict.fromkeys(parents)], size)
    return np.asarray(born + making + stillborn(tree), dtype=np.int64)


def stillborn(tree: Tree) -> NDArray[np.int64]:
    """Return per agent the number of expansions with it as first parent that ended without a child."""
    size = len(tree.agents)
    lived = _count([agent.parents[0] for agent in tree.agents if agent.parents], size)
    lives = _count([parents[0] for parents in being_made(tree)], size)
    return np.asarray(np.maximum(np.array(tree.expansions, dtype=np.int64) - lived - lives, 0))


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def spread(tree: Tree, agents: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of all agents from the weights of some.

    Where all weights are zero, the agents with weights get equal probabilities. Shapes: ``agents`` and ``weights``
    (k,), the result (agents of the tree,).
    """
    total = math.fsum(weights)  # exact, so that the order of agents does not matter
    shares = np.zeros(len(tree.agents))
    shares[agents] = weights / total if total > 0 else 1.0 / max(len(agents), 1)
    return shares


def draw(weights: NDArray[np.float64], rng: Random) -> tuple[AgentId, ...]:
    """Draw one agent with chances in proportion to weights; return none where all weights are zero.

    Only ``Random.random`` is used: Python promises to keep its stream, so recorded decisions replay.
    """
    sums = np.array(list(accumulate(weights.tolist())))
    if not sums[-1]:
        return ()
    return (AgentId(int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))),)


def _count(agents: list[AgentId], size: int) -> NDArray[np.int64]:
    return np.bincount(np.array(agents, dtype=np.int64), minlength=size)
