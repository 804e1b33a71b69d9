"""Expand or evaluate: the first half of every decision."""

from itertools import chain

from dgm.archive.tree import Tree
from dgm.domain import Expand

BARREN = 10
"""So many stillborn children in a row end a search that has nothing left to evaluate."""


def evaluations_begun(tree: Tree) -> int:
    """Evaluations that are graded, running, or waiting to be performed again."""
    return tree.evaluations + _in_flight(tree) - _births_in_flight(tree)


def agents_begun(tree: Tree) -> int:
    """Members of the archive and those being made."""
    return len(tree.agents) + _births_in_flight(tree)


def _in_flight(tree: Tree) -> int:
    return len(tree.pending) + len(tree.to_redo())


def _births_in_flight(tree: Tree) -> int:
    actions = chain(tree.pending.values(), tree.to_redo().values())
    return sum(isinstance(action, Expand) for action in actions)


def widening(tree: Tree, alpha: float) -> bool:
    """True when the archive should grow: N ** alpha >= number of agents (arXiv:2510.21614, section 3).

    N counts evaluations and agents count members, each with what is in flight, so that parallel workers decide as
    one worker would that sees their work done. The seed is evaluated before it has a child. Stillborn children count
    like born ones (the paper does not say): parents that cannot have children must not take all of the budget.
    """
    evaluations = evaluations_begun(tree)
    return evaluations > 0 and evaluations**alpha >= agents_begun(tree) + sum(tree.stillborn.values())


def may_expand(tree: Tree) -> bool:
    """True while the budget has room for one more agent, and there is hope for one."""
    limit = tree.budget.agents
    if tree.stillborn_in_a_row >= BARREN and not evaluations_possible(tree):
        return False
    return limit is None or agents_begun(tree) < limit


def evaluations_possible(tree: Tree) -> bool:
    """Whether some agent has a task that it has not tried."""
    return any(count < len(tree.tasks) for count in tree.tried_count)


def evaluations_left(tree: Tree) -> int | None:
    """What is left of the budget of evaluations, in-flight ones counted as spent; None without such a budget."""
    limit = tree.budget.evaluations
    return None if limit is None else max(limit - evaluations_begun(tree), 0)
