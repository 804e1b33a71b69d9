"""The newest agent that is about as good as the best (SICA, arXiv:2504.15228, and its program's runner).

The parent is the newest agent whose mean is at least the lower end of the 95 % interval of the best agent's mean. It is
the best agent itself where no newer one qualifies:

    bound = mean - 1.96 * s / sqrt(n),    s = sample standard deviation of the best agent's n outcomes

With outcomes of 0 and 1 that is mean - 1.96 * sqrt(mean * (1 - mean) / (n - 1)). Among equally good agents the oldest
counts as the best. An agent is evaluated on all tasks before the next child is made.

Departures: a score is the share of resolved tasks, without SICA's shares for cost and time, which budgets bound here.
The bound of a single outcome, undefined in SICA, is the outcome itself. The rule draws nothing at random.
``standings.candidates`` says who is a candidate. Expansions in flight change nothing: SICA makes one child after
another, and parallel workers give the same agent several.
"""

import math
from random import Random

import numpy as np

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composition
from dgm.policies.outcomes import graded, scores
from dgm.policies.rules import PolicyContext
from dgm.policies.standings import candidates

SICA = Composition(gate="evaluate-first", parent="sica", evaluation="every-task")

Z = 1.96
"""Normal quantile of the published interval."""


class NewestGoodEnough:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """Return the newest candidate that is good enough; nobody where there is no candidate."""
        agents = candidates(tree)
        if not len(agents):
            return ()
        rates = scores(tree)[agents]
        leader = int(np.argmax(rates))
        bound = lower_end(float(rates[leader]), int(graded(tree)[agents[leader]]))
        return (AgentId(int(agents[np.flatnonzero(rates >= bound)[-1]])),)


def lower_end(mean: float, n: int) -> float:
    """Return the lower end of the 95 % interval for a mean of ``n`` outcomes of 0 and 1."""
    return mean - Z * math.sqrt(mean * (1 - mean) / (n - 1)) if n > 1 else mean
