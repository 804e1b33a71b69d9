"""What is left to do and to spend, work in flight counted as done: so many workers decide as one would."""

from dgm.archive.tree import Tree

BARREN = 10
"""So many stillborn children in a row end a search that has nothing left to evaluate."""


def evaluations_begun(tree: Tree) -> int:
    """Evaluations that are graded, running, or waiting to be performed again."""
    return tree.evaluations + _in_flight(tree) - births_in_flight(tree)


def agents_begun(tree: Tree) -> int:
    """Members of the archive and those being made."""
    return len(tree.agents) + births_in_flight(tree)


def births_in_flight(tree: Tree) -> int:
    """Expansions that run, or wait to be performed again."""
    return tree.expansions_in_flight


def may_expand(tree: Tree) -> bool:
    """True while the budget has room for one more agent, and there is hope for one."""
    limit = tree.budget.agents
    if tree.stillborn_in_a_row >= BARREN and not evaluations_possible(tree):
        return False
    left = evaluations_left(tree)
    if left is not None and left < tree.budget.expansion_cost:
        return False
    return limit is None or agents_begun(tree) < limit


def evaluations_possible(tree: Tree) -> bool:
    """Whether some agent has a task that it has not tried."""
    return any(count < len(tree.tasks) for count in tree.tried_count)


def evaluations_left(tree: Tree) -> float | None:
    """What is left of the budget of evaluations, what expansions take of it included; None without such a budget."""
    limit = tree.budget.evaluations
    if limit is None:
        return None
    begun = evaluations_begun(tree) + tree.budget.expansion_cost * tree.expansions_begun
    return max(limit - begun, 0)


def share_left(tree: Tree) -> float:
    """The smallest share of a budget that is left, from 1 down to 0; 1 where there is no budget."""
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
