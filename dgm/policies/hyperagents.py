"""Good agents with few children, measured against the current top (Hyperagents, arXiv:2603.19461).

The default parent rule of the published program (``select_parent``, method "score_child_prop"):

    p ∝ σ(10 * (s - m)) * exp(-(children / 8) ** 3),    m = mean of the 3 highest scores

A score s is the share of an agent's own evaluations that it resolved; with fewer than 3 scores m is the mean of those
there are. Stillborn children count, like in the program. Children being made count too, so that parallel workers
spread. The penalty is slight up to 4 children (0.88) and steep from 8 on (0.37). Where all weights are zero, every
candidate is equally likely. Stages are those of ``staged``: the program's threshold is also 0.4 for polyglot, and any
success elsewhere.

Departures: the program shrinks the score of an agent that stopped at its first stage by the stage's share of all
tasks; the formula that is usually quoted, and used here, does not. The program passes over an agent whose own editing
has failed (``valid_parent``); here that takes ten failures in a row (``limits.fertile``). ``standings.candidates`` says
who is a candidate.
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

HYPERAGENTS = Composition(gate="staged", parent="hyperagents", evaluation="staged", task="fixed-order")

SHARPNESS = 10.0
TOP = 3
"""Scores in the midpoint."""
CROWD = 8.0
"""So many children cost a factor of e."""
STEEPNESS = 3


class TopRelative:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """Return one parent; none while there is no candidate."""
        return draw(parent_probabilities(tree), rng)


def parent_probabilities(tree: Tree) -> NDArray[np.float64]:
    """Return each agent's chance of being the next parent; shape (agents,); all 0 while there is no candidate."""
    agents = candidates(tree)
    rates = scores(tree)[agents]
    midpoint = np.sort(rates)[-TOP:].sum() / max(min(TOP, len(rates)), 1)
    crowding = (offspring(tree)[agents] / CROWD) ** STEEPNESS
    return spread(tree, agents, sigmoid(SHARPNESS * (rates - midpoint)) * np.exp(-crowding))
