"""Always the best so far: the control that shows what any spreading over parents is worth.

The parent is the agent with the highest mean of its own evaluations. Among equals the agent with more evaluations wins,
then the older one. Evaluation goes by stages (``staged``).

Source: the method "best" of the program published with Hyperagents (arXiv:2603.19461), ``select_parent`` in
``utils/gl_utils.py``, which takes the highest score and among equals the older. The program published with the Darwin
Gödel Machine (arXiv:2505.22954, jennyzzt/dgm, ``DGM_outer.py``) intends the same by "best" but takes the worst: it
sorts from the lowest score up and takes the first, two by default. A comma is missing among its choices, so that no
command line can name the method.

Departure: between equals the number of evaluations decides before age does.

The rule draws nothing at random. ``standings.candidates`` says who is a candidate. Expansions in flight change nothing:
parallel workers all expand the best agent, like one worker does again and again.
"""

from random import Random

import numpy as np

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composition
from dgm.policies.outcomes import graded, scores
from dgm.policies.rules import PolicyContext
from dgm.policies.standings import candidates

GREEDY = Composition(gate="staged", parent="greedy", evaluation="staged", task="fixed-order")


class BestMean:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """Return the candidate with the best mean; nobody where there is no candidate."""
        agents = candidates(tree)
        order = np.lexsort((-agents, graded(tree)[agents], scores(tree)[agents]))
        return tuple(AgentId(int(agent)) for agent in agents[order[-1:]])
