"""Chance alone, behind the same gate as ``hgm``: every agent is as likely as any other."""

from random import Random

import numpy as np

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composition
from dgm.policies.limits import fertile
from dgm.policies.rules import PolicyContext
from dgm.policies.tasks import agents_with_untried

RANDOM = Composition(gate="hgm", parent="random", evaluation="random")


class AnyParent:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """Return one parent; none where nobody is fertile."""
        among = np.flatnonzero(fertile(tree))
        return (AgentId(int(among[rng.randrange(len(among))])),) if len(among) else ()


class AnyTarget:
    """The evaluation rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def target(self, tree: Tree, rng: Random) -> AgentId | None:
        """Return an agent with an untried task; ``None`` where there is none."""
        targets = agents_with_untried(tree)
        return AgentId(int(targets[rng.randrange(len(targets))])) if len(targets) else None
