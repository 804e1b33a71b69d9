"""The Huxley-Gödel Machine's rules: expand by clade, evaluate by own tally, both by Thompson sampling.

Source: arXiv:2510.21614, section 3 and algorithm 1. A clade's score is its metaproductivity CMP: what the agent and
all its descendants resolved, over what they tried. Each candidate's rate is drawn from
Beta(τ(1 + resolved), τ(1 + unresolved)) and the highest draw wins. τ = B / b, where B is the budget and b is its
remainder, so that draws sharpen towards the end. τ = 1 where evaluations have no budget, even if money, tokens or time
have one. The gate is ``gates.Widening``, α = 0.6.

Evaluations under way count as spent in b, and so does the share of expansions (``Budget.expansion_cost``; 0 in the
paper). b never falls below 1. The paper's asynchronous form begins with five children of the seed (appendix B); they
are left out, because algorithm 1 has none. ``hgm_published`` is the published program.
"""

from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composition
from dgm.policies.limits import evaluations_left, fertile
from dgm.policies.rules import PolicyContext
from dgm.policies.tasks import agents_with_untried

HGM = Composition(gate="hgm", parent="hgm", evaluation="hgm")


class CladeThompson:
    """The parent rule: counts are those of the clade."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """Return one parent; none where nobody is fertile."""
        among = np.flatnonzero(fertile(tree))
        if not len(among):
            return ()
        return (thompson(tree.clade_resolved, tree.clade_unresolved, among, tau(tree), rng),)


class OwnThompson:
    """The evaluation rule: counts are an agent's own."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def target(self, tree: Tree, rng: Random) -> AgentId | None:
        """Return an agent with an untried task; ``None`` where there is none."""
        targets = agents_with_untried(tree)
        if not len(targets):
            return None
        return thompson(tree.own_resolved, tree.own_unresolved, targets, tau(tree), rng)


def tau(tree: Tree) -> float:
    """Return the scheduler τ = B / b of the budget of evaluations; 1.0 where evaluations have no budget."""
    left = evaluations_left(tree)
    if left is None or tree.budget.evaluations is None:
        return 1.0
    return tree.budget.evaluations / max(left, 1)


def thompson(
    resolved: Sequence[float] | NDArray[np.int64],
    unresolved: Sequence[float] | NDArray[np.int64],
    among: NDArray[np.int64],
    tau: float,
    rng: Random,
) -> AgentId:
    """Draw once from each candidate's posterior and return the agent of the highest draw.

    Shapes: ``resolved`` and ``unresolved`` (agents,), ``among`` (k,).

    The legacy generator is used because numpy promises that its stream never changes, so that recorded decisions
    replay under any later numpy.
    """
    stream = np.random.RandomState(rng.getrandbits(32))
    a = tau * (1.0 + np.array(resolved, dtype=np.float64)[among])
    b = tau * (1.0 + np.array(unresolved, dtype=np.float64)[among])
    return AgentId(int(among[int(np.argmax(stream.beta(a, b)))]))
