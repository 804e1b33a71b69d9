"""The Huxley-Gödel Machine's rule: expand by clade, evaluate by own tally, both by Thompson sampling.

Source: arXiv:2510.21614, section 3 and algorithm 1. A clade's score is its metaproductivity CMP: what the agent and
all its descendants resolved, over what they tried.
"""

from array import array
from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import Action, AgentId, Expand
from dgm.policies.gates import evaluations_left, may_expand, widening
from dgm.policies.untried import agents_with_untried, draw_task


class Hgm:
    """Expand when N ** alpha >= agents; parents and targets from Beta(τ(1 + resolved), τ(1 + unresolved)).

    τ = B / b with B the budget of evaluations and b what is left of it, so that draws sharpen towards the end; τ = 1
    where there is no such budget. A parent's counts are its clade's, a target's are its own.
    """

    name = "hgm"
    keeps_state = False

    def __init__(self, operator: str, alpha: float = 0.6) -> None:
        self._operator = operator
        self._alpha = alpha

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """The next step; None when everything is tried and the archive may not grow."""
        targets = agents_with_untried(tree)
        if may_expand(tree) and (widening(tree, self._alpha) or not len(targets)):
            everyone = np.arange(len(tree.agents))
            parent = _thompson(tree.clade_resolved, tree.clade_unresolved, everyone, _tau(tree), rng)
            return Expand((parent,), self._operator)
        if not len(targets):
            return None
        return draw_task(
            tree, _thompson(tree.own_resolved, tree.own_unresolved, targets, _tau(tree), rng), rng
        )

    def observe(self, event: Recorded) -> None:
        """Keeps nothing: the tree holds all that this rule reads."""


def _tau(tree: Tree) -> float:
    left = evaluations_left(tree)
    if left is None or tree.budget.evaluations is None:
        return 1.0
    return tree.budget.evaluations / max(left, 1)


def _thompson(
    resolved: "array[int]", unresolved: "array[int]", among: NDArray[np.int64], tau: float, rng: Random
) -> AgentId:
    """Draws once from each candidate's posterior and returns the highest; shapes: columns (agents,), among (k,).

    The legacy generator is used because numpy promises that its stream never changes, so that recorded decisions
    replay under any later numpy.
    """
    stream = np.random.RandomState(rng.getrandbits(32))
    a = tau * (1.0 + np.array(resolved, dtype=np.float64)[among])
    b = tau * (1.0 + np.array(unresolved, dtype=np.float64)[among])
    return AgentId(int(among[int(np.argmax(stream.beta(a, b)))]))
