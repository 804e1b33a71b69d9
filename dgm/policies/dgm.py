"""The Darwin Gödel Machine's parents, and those of its two ablations.

Source: arXiv:2505.22954, section 4.3 and appendix C.2, and its published program (jennyzzt/dgm, ``DGM_outer.py``). A
parent is drawn with probability

    p ∝ σ(λ (score − α₀)) / (1 + children),   σ(x) = 1 / (1 + exp(−x)),   λ = 10,   α₀ = 0.5

where score is the share of its own tasks that the agent resolved. Evaluation goes by stages (``staged``). In the
program, as here, an agent that resolved everything stays eligible (the paper leaves it out).

The program works in generations. It draws the parents of two children at once; both children join the archive when both
are made and evaluated. This policy has no such barrier:

* At most two births are under way.
* Births under way count as children at once, so that two workers do not choose alike.
* An agent can be a parent when its first stage is graded.

Here an agent is born when it passes its own check. The check takes the place of the program's "compiled" (not every
patch of the agent's is empty). The default recommendation decides which agent is handed out (the paper: the best
score).
"""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId
from dgm.policies.composed import Composition
from dgm.policies.limits import births_under_way, fertile
from dgm.policies.outcomes import graded, scores
from dgm.policies.rules import PolicyContext
from dgm.policies.staged import FIRST_STAGE, evaluations_in_flight
from dgm.policies.standings import being_made

LAMBDA = 10.0
MIDPOINT = 0.5
BIRTHS_AT_ONCE = 2
"""``selfimprove_size`` of the program; the paper has 2 for SWE-bench and 4 for Polyglot."""

DGM = Composition(gate="staged", parent="dgm", evaluation="staged", task="fixed-order")
NO_ARCHIVE = Composition(gate="staged", parent="no-archive", evaluation="staged", task="fixed-order")
NO_SELF_IMPROVEMENT = Composition(
    gate="staged", parent="no-self-improvement", evaluation="staged", task="fixed-order"
)


def eligible(tree: Tree) -> NDArray[np.bool_]:
    """Return which agents can be parents; shape (agents,).

    They are fertile, and have a graded first stage, or any result and no evaluation under way. The seed needs no result
    where none is to come: an archive must be able to grow.
    """
    done = graded(tree)
    heard = done > 0
    heard[SEED] = heard[SEED] or tree.tried_count[SEED] > 0
    heard &= fertile(tree)
    heard &= (done >= min(FIRST_STAGE, len(tree.tasks))) | (evaluations_in_flight(tree) == 0)
    return heard


def children(tree: Tree) -> NDArray[np.int64]:
    """Return per agent the number of its children, born or on their way; stillborn ones do not count."""
    counts = np.array([len(tree.children(agent.id)) for agent in tree.agents], dtype=np.int64)
    for parents in being_made(tree):
        counts[list(parents)] += 1
    return counts


def parent_probabilities(tree: Tree) -> NDArray[np.float64]:
    """Return per agent the probability of being the next parent; all 0.0 where nobody can be."""
    performance = 1.0 / (1.0 + np.exp(-LAMBDA * (scores(tree) - MIDPOINT)))
    weights = np.where(eligible(tree), performance / (1.0 + children(tree)), 0.0)
    total = weights.sum()
    return np.asarray(weights / total if total > 0.0 else weights, dtype=np.float64)


class ScoreOverChildren:
    """The parent rule of ``dgm``."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """Return one parent, drawn from ``parent_probabilities``; none while two births are under way."""
        probabilities = parent_probabilities(tree)
        possible = np.flatnonzero(probabilities)
        if births_under_way(tree) >= BIRTHS_AT_ONCE or not len(possible):
            return ()
        place = np.searchsorted(np.cumsum(probabilities[possible]), rng.random(), side="right")
        return (AgentId(int(possible[min(int(place), len(possible) - 1)])),)


class Latest:
    """The parent rule of ``no-archive``, in the paper "DGM w/o open-ended exploration": always the latest agent.

    One step follows the other, like in the program: while a child is made or evaluated, no other agent has one.
    """

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """Return the youngest eligible agent; none while a child is made or the newest agent is evaluated."""
        possible = np.flatnonzero(eligible(tree))
        if births_under_way(tree) or evaluations_in_flight(tree)[-1] or not len(possible):
            return ()
        return (AgentId(int(possible[-1])),)


class SeedImproves:
    """The parent rule of ``no-self-improvement``, in the paper "DGM w/o self-improve": the seed makes all children.

    In the paper the unchanged seed edits the source of a parent that is drawn by the rule of ``dgm``. Here the edited
    agent is also the editor (the operator ``self-edit`` runs the parent on its own source), so the seed is the parent
    of all.
    """

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """Return the seed once it is evaluated; nobody while two births are under way."""
        if births_under_way(tree) >= BIRTHS_AT_ONCE or not eligible(tree)[SEED]:
            return ()
        return (SEED,)
