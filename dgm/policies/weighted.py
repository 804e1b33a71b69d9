"""Scores against the archive's median, in units of its spread (ShinkaEvolve, arXiv:2509.19349).

The weighted sampling of the paper, section 3, and of its program's ``WeightedSamplingStrategy``:

    s_i = σ(λ * (F_i - median) / MAD),    h_i = 1 / (1 + children_i),    p_i ∝ s_i * h_i

F is the share of an agent's own evaluations that it resolved, MAD the median absolute deviation from the median, at
least 1e-6, λ = 10 as in the program. Stillborn children count, as failed programs do there, and so do those being
made, so that parallel workers spread. All weights zero: every candidate is as likely. ShinkaEvolve evaluates a
program fully before it may be a parent, hence the schedule.

Departures: one population, not islands, and an archive that forgets nobody. Who is a candidate:
``standings.candidates``. Where more than half of the archive scores alike the MAD is
0, and whoever is better than the median is weighted 1, whoever is worse 0: so it is published.
"""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composition
from dgm.policies.outcomes import scores
from dgm.policies.rules import Kit
from dgm.policies.standings import candidates, draw, offspring, sigmoid, spread

WEIGHTED = Composition(gate="evaluate-first", parent="weighted", evaluation="every-task")

SHARPNESS = 10.0
"""λ."""
LEAST_SPREAD = 1e-6


class MedianRelative:
    """The parent rule."""

    def __init__(self, kit: Kit) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """One parent; none while there is no candidate."""
        return draw(parent_probabilities(tree), rng)


def parent_probabilities(tree: Tree) -> NDArray[np.float64]:
    """The chance of each agent to be the next parent; shape (agents,); all 0 while there is no candidate."""
    agents = candidates(tree)
    if not len(agents):
        return np.zeros(len(tree.agents))
    rates = scores(tree)[agents]
    median = np.median(rates)
    scale = max(float(np.median(np.abs(rates - median))), LEAST_SPREAD)
    return spread(tree, agents, sigmoid(SHARPNESS * (rates - median) / scale) / (1 + offspring(tree)[agents]))
