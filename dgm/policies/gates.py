"""Expand or evaluate: the first half of every decision."""

from dgm.archive.tree import Tree


def widening(tree: Tree, alpha: float) -> bool:
    """True when the archive should grow: N ** alpha >= number of agents (arXiv:2510.21614, section 3).

    N counts evaluations and agents count members, each with what is pending, so that parallel workers decide as one
    worker would that sees their work done. N > 0 is needed: the seed is evaluated before it has a child.
    """
    evaluations = tree.evaluations + tree.pending_evaluations_total
    agents = len(tree.agents) + tree.pending_expansions
    return evaluations > 0 and evaluations**alpha >= agents


def may_expand(tree: Tree) -> bool:
    """True while the budget has room for one more agent, pending births counted."""
    limit = tree.budget.agents
    return limit is None or len(tree.agents) + tree.pending_expansions < limit
