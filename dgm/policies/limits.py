"""What is left to do and to spend, work in flight counted as done: so many workers decide as one would."""

from typing import TYPE_CHECKING

from dgm.archive.tree import Tree

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BARREN = 10
"""After so many stillborn children in a row an agent is no parent any more."""
WAITING = 10
"""While so many children wait for a person, no more are made: a search that nobody answers does not spend on."""


def evaluations_begun(tree: Tree) -> int:
    """Count the evaluations that are graded, running, or waiting to be performed again."""
    return tree.evaluations + _in_flight(tree) - births_in_flight(tree)


def agents_begun(tree: Tree) -> int:
    """Count the members of the archive, the children being made, and the children that wait for a person."""
    return len(tree.agents) + births_under_way(tree)


def births_in_flight(tree: Tree) -> int:
    """Count the expansions that run, or wait to be performed again."""
    return tree.expansions_in_flight


def births_under_way(tree: Tree) -> int:
    """Count the births in flight, and the children that wait for a person's answer."""
    return births_in_flight(tree) + len(tree.waiting)


def may_expand(tree: Tree) -> bool:
    """Return whether the budget has room for one more agent, somebody is fertile, and not too many children wait."""
    limit = tree.budget.agents
    if not _somebody_fertile(tree) or len(tree.waiting) >= WAITING:
        return False
    left = evaluations_left(tree)
    if left is not None and left < tree.budget.expansion_cost:
        return False
    return limit is None or agents_begun(tree) < limit


def fertile(tree: Tree) -> "NDArray[np.bool_]":
    """Return per agent whether it may be a parent; shape (agents,).

    An agent may not after ``BARREN`` stillborn children since its last birth. With the gate ``flips`` it may not either
    while it has lost more of its parents' resolved tasks than it gained.

    Every parent rule chooses among the fertile agents. So an agent that can have no child does not block the others,
    and a search with nothing left to evaluate ends.
    """
    may = tree.barren < BARREN
    return may & (tree.flip_balance >= 0) if tree.counts_flips else may


def _somebody_fertile(tree: Tree) -> bool:
    if not tree.counts_flips:
        return bool((tree.barren < BARREN).any())
    return bool(((tree.barren < BARREN) & (tree.flip_balance >= 0)).any())


def evaluations_left(tree: Tree) -> float | None:
    """Return the rest of the budget of evaluations, less the cost of expansions; None without such a budget."""
    limit = tree.budget.evaluations
    if limit is None:
        return None
    begun = evaluations_begun(tree) + tree.budget.expansion_cost * tree.expansions_begun
    return max(limit - begun, 0)


def share_left(tree: Tree) -> float:
    """Return the smallest remaining share of all budgets, from 1.0 down to 0.0; 1.0 where there is no budget."""
    budget = tree.budget
    left = evaluations_left(tree)
    shares = [1.0]
    if left is not None and budget.evaluations:
        shares.append(left / budget.evaluations)
    for used, limit in (
        (tree.spend.usd, budget.usd),
        (tree.spend.tokens, budget.tokens),
        (tree.wall_seconds, budget.seconds),
    ):
        if limit is not None:
            shares.append(max(1.0 - used / limit, 0.0))
    return min(shares)


def _in_flight(tree: Tree) -> int:
    return len(tree.pending) + len(tree.to_redo())
