"""When a search is over: its goal is reached, or a limit is spent before that.

``evaluations`` is a goal. ``tokens``, ``usd`` and ``seconds`` are limits, which end a run with another exit code.
Failed and stillborn work counts in all of them. ``agents`` only closes the way to more births.
"""

from dataclasses import dataclass
from enum import StrEnum

from dgm.archive.tree import Tree
from dgm.domain import Action, Expand
from dgm.policies.limits import births_in_flight, evaluations_left


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


def ending(tree: Tree, unaffordable: str = "") -> Ending | None:
    """The end that the budget calls for now, or None while there is room.

    Args:
        tree: the run so far.
        unaffordable: why a further model call would cross a limit that is not reached yet; empty where none would.
    """
    budget = tree.budget
    if budget.evaluations is not None and _spent(tree) + 1 > budget.evaluations:
        return Ending(Reason.GOAL, f"{tree.evaluations} evaluations are graded, as asked for")
    spent = [
        f"{used:,.{digits}f} of {limit:,.{digits}f} {unit} are spent"
        for used, limit, unit, digits in (
            (tree.spend.tokens, budget.tokens, "tokens", 0),
            (tree.spend.usd, budget.usd, "USD", 2),
            (tree.wall_seconds, budget.seconds, "seconds", 0),
        )
        if limit is not None and used >= limit
    ]
    reasons = ", ".join(spent) or unaffordable
    return Ending(Reason.LIMIT, f"the budget is spent: {reasons}") if reasons else None


def room_for_evaluation(tree: Tree) -> bool:
    """Whether one more evaluation may start; those in flight count as done."""
    left = evaluations_left(tree)
    return left is None or left >= 1


def room_for(tree: Tree, action: Action) -> bool:
    """Whether the action may start, by the budget of evaluations; those in flight count as done."""
    left = evaluations_left(tree)
    return left is None or left >= (tree.budget.expansion_cost if isinstance(action, Expand) else 1)


def _spent(tree: Tree) -> float:
    """Evaluations that are graded, and what expansions that have ended took of the same budget."""
    ended = tree.expansions_begun - births_in_flight(tree)
    return tree.evaluations + tree.budget.expansion_cost * ended
