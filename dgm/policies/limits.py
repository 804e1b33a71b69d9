"""Rules of the budget that hold for every policy, work in flight counted as done: so many workers decide as one would.

The seed may not take all of a budget. One more evaluation of a seed that is alone must keep it within ``SEED_SHARE`` of
every limit of the run; while its first children are made, within ``MEANWHILE_SHARE``. Several roots share this part.
The cost of an evaluation is learned from the log.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import Evaluate

BARREN = 10
"""After so many stillborn children in a row an agent is no parent any more."""
WAITING = 10
"""While so many children wait for a person, no more are made: a search that nobody answers does not spend on."""
SEED_SHARE = 0.3
"""Share of every budget that evaluations of the seed may use before its first child is begun."""
MEANWHILE_SHARE = 0.4
"""The same while the seed's first children are being made, or wait for a person."""
UNPRICED = 2
"""Evaluations that run before one is graded, where money or tokens are limited: nobody knows yet what one takes."""
SOLVE_ROLE = "solve"
"""The role of model calls in evaluations."""
SLACK = 1e-9
"""Relative; above rounding."""


def evaluations_begun(tree: Tree) -> int:
    """Count the evaluations that are graded, running, or waiting to be performed again."""
    return tree.evaluations + len(tree.pending) + len(tree.to_redo()) - tree.expansions_in_flight


def births_in_flight(tree: Tree) -> int:
    """Count the expansions that run, or wait to be performed again."""
    return tree.expansions_in_flight


def births_under_way(tree: Tree) -> int:
    """Count the births in flight, and the children that wait for a person's answer."""
    return tree.expansions_in_flight + len(tree.waiting)


def agents_begun(tree: Tree) -> int:
    """Count the members of the archive, the children being made, and the children that wait for a person."""
    return len(tree.agents) + births_under_way(tree)


def is_busy(tree: Tree) -> bool:
    """Return whether an action is under way or to be performed again, or a child waits for a person."""
    return bool(tree.pending or tree.to_redo() or tree.waiting)


def may_expand(tree: Tree) -> bool:
    """Return whether the budget has room for one more agent, somebody is fertile, and not too many children wait."""
    limit = tree.budget.agents
    if not fertile(tree).any() or len(tree.waiting) >= WAITING:
        return False
    remaining = evaluations_left(tree)
    if remaining is not None and remaining < tree.budget.expansion_cost:
        return False
    return limit is None or agents_begun(tree) < limit


def fertile(tree: Tree) -> NDArray[np.bool_]:
    """Return per agent whether it may be a parent; shape (agents,).

    An agent may not after ``BARREN`` stillborn children since its last birth. With the gate ``flips`` it may not either
    while it has lost more of its parents' resolved tasks than it gained.
    """
    may = tree.barren < BARREN
    return may & (tree.flip_balance >= 0) if tree.counts_flips else may


def evaluations_left(tree: Tree) -> float | None:
    """Return the rest of the budget of evaluations, less the cost of expansions; None without such a budget."""
    limit = tree.budget.evaluations
    if limit is None:
        return None
    return max(limit - evaluations_begun(tree) - tree.budget.expansion_cost * tree.expansions_begun, 0)


def share_left(tree: Tree) -> float:
    """Return the smallest remaining share of all budgets, from 1.0 down to 0.0; 1.0 where there is no budget.

    The money, tokens and time of promotion evaluations are left out: they tell of tasks that no policy may learn from.
    """
    budget = tree.budget
    remaining = evaluations_left(tree)
    shares = [1.0]
    if remaining is not None and budget.evaluations:
        shares.append(remaining / budget.evaluations)
    for used, limit in (
        (tree.spend.usd - tree.promotion_spend.usd, budget.usd),
        (tree.spend.tokens - tree.promotion_spend.tokens, budget.tokens),
        (tree.wall_seconds - tree.promotion_seconds, budget.seconds),
    ):
        if limit is not None:
            shares.append(max(1.0 - used / limit, 0.0))
    return min(shares)


def seed_has_room(tree: Tree) -> bool:
    """Return whether one more evaluation keeps childless roots within their share of every limit.

    The first evaluation of each always does.
    """
    begun = evaluations_begun(tree)
    if begun < len(tree.roots):
        return True
    share = MEANWHILE_SHARE if births_under_way(tree) else SEED_SHARE
    return all(spend <= share * limit * (1 + SLACK) for spend, limit in _spend_after_one_more(tree, begun))


def _spend_after_one_more(tree: Tree, begun: int) -> Iterator[tuple[float, float]]:
    """Yield for each limit of the run the seed's spend after one more evaluation, and the limit."""
    budget = tree.budget
    if budget.evaluations is not None:
        yield begun + 1, budget.evaluations
    if budget.usd is not None:
        yield _price_evaluations(tree, begun, "usd"), budget.usd
    if budget.tokens is not None:
        yield _price_evaluations(tree, begun, "tokens"), budget.tokens
    if budget.seconds is not None:
        yield tree.wall_seconds + _evaluation_seconds(tree), budget.seconds


def _price_evaluations(tree: Tree, begun: int, unit: str) -> float:
    """Return the cost of the evaluations begun and one more, in ``usd`` or ``tokens``; infinite where it is unknown."""
    spent = sum(
        float(getattr(usage, unit)) for (role, _), usage in tree.spend_by.items() if role == SOLVE_ROLE
    )
    if not tree.evaluations:
        return spent if begun < UNPRICED else float("inf")
    unfinished = [
        float(getattr(tree.spend_of(action), unit))
        for actions in (tree.pending, tree.to_redo())
        for action, what in actions.items()
        if isinstance(what, Evaluate)
    ]
    finished = spent - sum(unfinished)
    mean = finished / tree.evaluations
    return finished + mean + sum(max(mean, cost) for cost in unfinished)


def _evaluation_seconds(tree: Tree) -> float:
    """Return about how many seconds an evaluation takes; 0.0 before one is graded.

    This is the busy time of all workers divided by the evaluations that it went into; those under way count half. With
    one worker it is the mean.
    """
    running = sum(isinstance(what, Evaluate) for what in tree.pending.values())
    if not tree.evaluations:
        return 0.0
    return tree.wall_seconds * (running + 1) / (tree.evaluations + running / 2)
