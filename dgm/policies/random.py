"""Chance alone, behind the same gate as ``hgm``: what a rule has to beat."""

from random import Random

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import Action, AgentId, Expand
from dgm.policies.gates import may_expand, widening
from dgm.policies.untried import agents_with_untried, draw_task


class RandomChoice:
    """Every agent is as likely a parent as any other, and as likely a target while it has untried tasks."""

    name = "random"
    keeps_state = False

    def __init__(self, operator: str, alpha: float = 0.6) -> None:
        self._operator = operator
        self._alpha = alpha

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """The next step; None when everything is tried and the archive may not grow."""
        targets = agents_with_untried(tree)
        if may_expand(tree) and (widening(tree, self._alpha) or not len(targets)):
            return Expand((AgentId(rng.randrange(len(tree.agents))),), self._operator)
        if not len(targets):
            return None
        return draw_task(tree, AgentId(int(targets[rng.randrange(len(targets))])), rng)

    def observe(self, event: Recorded) -> None:
        """Keeps nothing."""
