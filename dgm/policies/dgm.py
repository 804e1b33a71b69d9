"""The Darwin Gödel Machine's parents, and those of its two ablations.

Source: arXiv:2505.22954, section 4.3 and appendix C.2, and its published program (jennyzzt/dgm, ``DGM_outer.py``). A
parent is drawn with probability

    p ∝ σ(λ (score − α₀)) / (1 + children),   σ(x) = 1 / (1 + exp(−x)),   λ = 10,   α₀ = 0.5

where score is the share of its own tasks that the agent resolved. Evaluation goes by stages (``staged``). As in the
program, an agent that resolved everything stays eligible (the paper leaves it out).

The program works in generations: the parents of two children are drawn at once, and only when both children are made
and evaluated do they join the archive. Without a barrier that reads: at most two births are under way; they count as
children at once, so that two workers do not choose alike; an agent can be a parent when its first stage is graded. To
be born means here that the agent passed its own check, which takes the place of the program's "compiled" (not every
patch of its is empty). Which agent is handed out is left to the default recommendation (the paper: the best score).
"""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId
from dgm.policies.composed import Composition
from dgm.policies.limits import births_under_way, fertile
from dgm.policies.outcomes import graded, scores
from dgm.policies.rules import Kit
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
    """Which agents can be parents: fertile ones with a graded first stage, or with any result and none under way.

    The seed does without a result where none is to come: an archive must be able to grow.
    """
    done = graded(tree)
    heard = done > 0
    heard[SEED] = heard[SEED] or tree.tried_count[SEED] > 0
    heard &= fertile(tree)
    heard &= (done >= min(FIRST_STAGE, len(tree.tasks))) | (evaluations_in_flight(tree) == 0)
    return heard


def children(tree: Tree) -> NDArray[np.int64]:
    """Per agent, its children: born, or on their way (stillborn ones are no children)."""
    counts = np.array([len(tree.children(agent.id)) for agent in tree.agents], dtype=np.int64)
    for parents in being_made(tree):
        counts[list(parents)] += 1
    return counts


def parent_probabilities(tree: Tree) -> NDArray[np.float64]:
    """Per agent, the probability to be the next parent; all 0.0 where nobody can be."""
    performance = 1.0 / (1.0 + np.exp(-LAMBDA * (scores(tree) - MIDPOINT)))
    weights = np.where(eligible(tree), performance / (1.0 + children(tree)), 0.0)
    total = weights.sum()
    return np.asarray(weights / total if total > 0.0 else weights, dtype=np.float64)


class ScoreOverChildren:
    """The parent rule of ``dgm``."""

    def __init__(self, kit: Kit) -> None:
        """Needs nothing of the kit."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """One parent, drawn from ``parent_probabilities``; none while two births are under way."""
        probabilities = parent_probabilities(tree)
        possible = np.flatnonzero(probabilities)
        if births_under_way(tree) >= BIRTHS_AT_ONCE or not len(possible):
            return ()
        place = np.searchsorted(np.cumsum(probabilities[possible]), rng.random(), side="right")
        return (AgentId(int(possible[min(int(place), len(possible) - 1)])),)


class Latest:
    """The parent rule of ``no-archive``, in the paper "DGM w/o open-ended exploration": always the latest agent.

    One step after the other, as in the program: while a child is made or evaluated nobody else has one.
    """

    def __init__(self, kit: Kit) -> None:
        """Needs nothing of the kit."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """The agent that was born last, of those with a result."""
        possible = np.flatnonzero(eligible(tree))
        if births_under_way(tree) or evaluations_in_flight(tree)[-1] or not len(possible):
            return ()
        return (AgentId(int(possible[-1])),)


class SeedImproves:
    """The parent rule of ``no-self-improvement``, in the paper "DGM w/o self-improve": the seed makes all children.

    In the paper the seed, unchanged, edits the source of a parent drawn as in ``dgm``. Here who edits is who is edited
    (the operator ``self-edit`` runs the parent on its own source), so the seed is the parent of all.
    """

    def __init__(self, kit: Kit) -> None:
        """Needs nothing of the kit."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """The seed, once it is evaluated; nobody while two births are under way."""
        if births_under_way(tree) >= BIRTHS_AT_ONCE or not eligible(tree)[SEED]:
            return ()
        return (SEED,)
