"""Which agent to hand out: the one we have most reason to believe in, never the luckiest."""

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.stats import lower_bound


def best_belief(tree: Tree) -> AgentId:
    """The agent whose own tally has the highest lower credible bound.

    The bound is the 1st percentile of Beta(1 + resolved, 1 + unresolved) (arXiv:2510.21614, section 3); among equals
    the one with more evaluations, then the oldest. An agent without an evaluation is only chosen where no
    agent has any.
    """
    own = [(tree.own(agent.id), agent.id) for agent in tree.agents]
    return max(own, key=lambda item: (item[0].n > 0, lower_bound(item[0]), item[0].n, -item[1]))[1]
