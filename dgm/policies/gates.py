"""Gates that several policies share."""

from random import Random

from dgm.archive.tree import Tree
from dgm.policies.limits import agents_begun, evaluations_begun
from dgm.policies.rules import PolicyContext


class Widening:
    """A gate that expands while N ** alpha >= number of agents (arXiv:2510.21614, section 3).

    N is the number of evaluations. Both numbers include work in flight: parallel workers decide like one worker that
    sees their work done. The seed is evaluated before it has a child. Stillborn children count like born ones (the
    paper does not say): parents that cannot have children must not take all of the budget.
    """

    def __init__(self, kit: PolicyContext) -> None:
        self._alpha = kit.alpha

    def expands(self, tree: Tree, rng: Random) -> bool:  # noqa: ARG002  (nothing is left to chance)
        """Return whether the archive is too small for its evaluations."""
        evaluations = evaluations_begun(tree)
        agents = agents_begun(tree) + sum(tree.stillborn.values())
        return evaluations > 0 and evaluations**self._alpha >= agents
