"""Scores against the archive's median, in units of its spread (ShinkaEvolve, arXiv:2509.19349).

The weighted sampling of the paper, section 3, and of its program's ``WeightedSamplingStrategy``:

    s_i = σ(λ * (F_i - median) / MAD),    h_i = 1 / (1 + children_i),    p_i ∝ s_i * h_i

F is the share of an agent's own evaluations that it resolved. MAD is the median absolute deviation from the median, at
least 1e-6. λ = 10, the program's value. Stillborn children count, like failed programs in ShinkaEvolve. Children being
made count too, so that parallel workers spread. Where all weights are zero, every candidate is equally likely.
ShinkaEvolve evaluates a program fully before it may be a parent, hence the schedule.

Departures: there is one population instead of islands, and the archive forgets nobody. ``standings.candidates`` says
who is a candidate. Where more than half of the archive has the same score, the MAD is 0: agents above the median have
the weight 1 and agents below it 0. The published formula does the same.
"""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composition
from dgm.policies.outcomes import scores
from dgm.policies.rules import PolicyContext
from dgm.policies.standings import candidates, draw, offspring, sigmoid, spread

WEIGHTED = Composition(gate="evaluate-first", parent="weighted", evaluation="every-task")

SHARPNESS = 10.0
"""λ."""
LEAST_SPREAD = 1e-6


class MedianRelative:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """Return one parent; none while there is no candidate."""
        return draw(parent_probabilities(tree), rng)


def parent_probabilities(tree: Tree) -> NDArray[np.float64]:
    """Return each agent's chance of being the next parent; shape (agents,); all 0 while there is no candidate."""
    agents = candidates(tree)
    if not len(agents):
        return np.zeros(len(tree.agents))
    rates = scores(tree)[agents]
    median = np.median(rates)
    scale = max(float(np.median(np.abs(rates - median))), LEAST_SPREAD)
    return spread(tree, agents, sigmoid(SHARPNESS * (rates - median) / scale) / (1 + offspring(tree)[agents]))
