"""When a search is over: its goal is reached, or a limit is spent before that.

``evaluations`` is a goal. ``tokens``, ``usd`` and ``seconds`` are limits: a run that they end has not reached its
goal, if it had one. Failed and stillborn work counts in all of them. ``agents`` only closes the way to more births.
"""

from dataclasses import dataclass
from enum import StrEnum

from dgm.archive.tree import Tree
from dgm.domain import Expand


class Reason(StrEnum):
    """Why a session of a run ended."""

    GOAL = "goal reached"
    LIMIT = "budget spent"
    NOTHING_LEFT = "nothing left to do"
    STOPPED = "stopped"
    OUTAGE = "infrastructure failed"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended; ``message`` is one line for people."""

    reason: Reason
    message: str


def ending(tree: Tree) -> Ending | None:
    """The end that the budget calls for now, or None while there is room."""
    budget = tree.budget
    if budget.evaluations is not None and tree.evaluations >= budget.evaluations:
        return Ending(Reason.GOAL, f"{tree.evaluations} evaluations are graded, as asked for")
    spent = [
        f"{used:,.{digits}f} of {limit:,.{digits}f} {unit}"
        for used, limit, unit, digits in (
            (tree.spend.tokens, budget.tokens, "tokens", 0),
            (tree.spend.usd, budget.usd, "USD", 2),
            (tree.wall_seconds, budget.seconds, "seconds", 0),
        )
        if limit is not None and used >= limit
    ]
    if not spent:
        return None
    reason = Reason.GOAL if budget.evaluations is None else Reason.LIMIT
    return Ending(reason, f"the budget is spent: {', '.join(spent)}")


def room_for_evaluation(tree: Tree) -> bool:
    """Whether one more evaluation may start; those in flight count as done."""
    limit = tree.budget.evaluations
    if limit is None:
        return True
    waiting = [*tree.pending.values(), *tree.to_redo().values()]
    return tree.evaluations + sum(not isinstance(action, Expand) for action in waiting) < limit
