"""Always the best so far: the control that shows what any spreading over parents is worth.

The parent is the agent with the highest mean of its own evaluations; among equals the one with more evaluations,
then the older. Its stages are ``staged``.

Source: the method "best" of the program published with Hyperagents (arXiv:2603.19461), ``select_parent`` in
``utils/gl_utils.py``, which takes the highest score and among equals the older. The program published with the Darwin
Gödel Machine (arXiv:2505.22954, jennyzzt/dgm, ``DGM_outer.py``) means the same by "best" but does not do it: it sorts
from the lowest score up and takes the first, two by default, so the worst; and a comma that is missing among its
choices makes the method one that no command line can name.

Departure: between equals the number of evaluations decides before age does.

Nothing is left to chance. Who is a candidate: ``standings.candidates``. Expansions in flight change nothing: parallel
workers all expand the best, as one worker does again and again.
"""

from random import Random

import numpy as np

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composition
from dgm.policies.outcomes import graded, scores
from dgm.policies.rules import Kit
from dgm.policies.standings import candidates

GREEDY = Composition(gate="staged", parent="greedy", evaluation="staged", task="fixed-order")


class BestMean:
    """The parent rule."""

    def __init__(self, kit: Kit) -> None:
        """Needs nothing of the kit."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """The best agent."""
        agents = candidates(tree)
        order = np.lexsort((-agents, graded(tree)[agents], scores(tree)[agents]))
        return tuple(AgentId(int(agent)) for agent in agents[order[-1:]])
