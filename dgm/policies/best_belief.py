"""Which agent to hand out: the one we have most reason to believe in, never the luckiest."""

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Tally
from dgm.policies.rules import Kit
from dgm.stats import lower_bound


def best_belief(tree: Tree) -> AgentId:
    """The agent whose own tally has the highest lower credible bound.

    The bound is the 1st percentile of Beta(1 + resolved, 1 + unresolved) (arXiv:2510.21614, section 3); among equals
    the one with more evaluations, then the oldest. An agent without an evaluation is only chosen where no
    agent has any.
    """
    oldest: dict[tuple[int, int], AgentId] = {}
    for agent, counts in enumerate(zip(tree.own_resolved, tree.own_unresolved, strict=True)):
        oldest.setdefault(counts, AgentId(agent))
    return oldest[max(oldest, key=lambda counts: _belief(Tally(*counts)))]


def _belief(own: Tally) -> tuple[bool, float, int]:
    return own.n > 0, lower_bound(own), own.n


class BestBelief:
    """The recommendation of most policies."""

    def __init__(self, kit: Kit) -> None:
        """Needs nothing of the kit."""

    def recommend(self, tree: Tree) -> AgentId:
        """As ``best_belief``."""
        return best_belief(tree)
