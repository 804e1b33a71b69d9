"""The control that a tree has to beat: as ``hgm`` in everything, but every child is a child of the seed."""

from random import Random

from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId
from dgm.policies.composed import Composition
from dgm.policies.limits import fertile
from dgm.policies.rules import PolicyContext

BEST_OF_N = Composition(gate="hgm", parent="best-of-n", evaluation="hgm")


class AlwaysSeed:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """Return the seed while it is fertile; nobody afterwards."""
        return (SEED,) if fertile(tree)[SEED] else ()
