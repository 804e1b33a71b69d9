"""The end of a search: its goal is reached, or a limit is spent before that.

``evaluations`` is a goal. ``tokens``, ``usd`` and ``seconds`` are limits, which end a run with another exit
code. Failed and stillborn work counts in all of them. ``agents`` only prevents more births.

A limit that the run's steps do not use ends the run as well, once that is plain (a model that reports no
tokens). ``endless`` refuses the cases that are known before.
"""

from dataclasses import dataclass
from enum import StrEnum

from dgm.archive.tree import CANNOT_GO_ON, Tree
from dgm.domain import Action, Expand
from dgm.policies.limits import births_in_flight, evaluations_left

NO_ROOM = (
    "the budget of {budget.evaluations} evaluations is as good as spent: it has no room for an expansion, which takes "
    "{budget.expansion_cost:g}, and the policy wants nothing else"
)

UNSPENT_EVALUATIONS, UNSPENT_EXPANSIONS = 50, 10
"""A budget of money or tokens counts as endless after this many of both without any spend."""


class Reason(StrEnum):
    """Why a session of a run ended."""

    GOAL = "goal reached"
    STANDSTILL = "no better agent"
    LIMIT = "budget spent"
    NOTHING_LEFT = "nothing left to do"
    STOPPED = "stopped"
    OUTAGE = "infrastructure failed"
    REFUSED = "provider refuses"
    CANNOT_GO_ON = CANNOT_GO_ON
    ENDLESS = "budget never runs out"


@dataclass(frozen=True, slots=True)
class Ending:
    """End of a session; ``message`` is one line for people."""

    reason: Reason
    message: str


def find_ending(tree: Tree, unaffordable: str = "") -> Ending | None:
    """Return the end that the budget demands now, or None while there is room.

    Args:
        tree: the run so far.
        unaffordable: why a further model call would cross a limit that is not reached yet; empty if none would.
    """
    budget = tree.budget
    if budget.evaluations is not None and sum_evaluations_spent(tree) + 1 > budget.evaluations:
        return Ending(
            Reason.GOAL,
            describe_budget_use(tree) or f"{tree.evaluations} evaluations are graded, as asked for",
        )
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
    if reasons:
        return Ending(Reason.LIMIT, f"the budget is spent: {reasons}")
    return Ending(Reason.ENDLESS, _endless_message(tree)) if _is_endless(tree) else None


def has_evaluation_room(tree: Tree) -> bool:
    """Return whether one more evaluation may start; those in flight count as done."""
    left = evaluations_left(tree)
    return left is None or left >= 1


def has_room_for(tree: Tree, action: Action) -> bool:
    """Return whether the action may start, by the budget of evaluations; those in flight count as done."""
    left = evaluations_left(tree)
    return left is None or left >= (tree.budget.expansion_cost if isinstance(action, Expand) else 1)


def sum_evaluations_spent(tree: Tree) -> float:
    """Return the graded evaluations plus the cost of ended expansions, in evaluations of the same budget."""
    return tree.evaluations + tree.budget.expansion_cost * count_ended_expansions(tree)


def count_ended_expansions(tree: Tree) -> int:
    """Return the number of expansions that do not run any more, whatever their results."""
    return tree.expansions_begun - births_in_flight(tree)


def describe_budget_use(tree: Tree) -> str:
    """Return a text on the use of the budget of evaluations; empty if only evaluations use it."""
    budget = tree.budget
    if budget.evaluations is None or not budget.expansion_cost:
        return ""
    expansions, each = count_ended_expansions(tree), budget.expansion_cost
    took = f"{sum_evaluations_spent(tree):g} of" if sum_evaluations_spent(tree) != budget.evaluations else ""
    priced = f" (each as {each:g})" if each != 1 else ""
    return (
        f"{tree.evaluations} evaluations and {expansions} expansions{priced} took "
        f"{took or 'the budget of'} {budget.evaluations} evaluations"
    )


def _is_endless(tree: Tree) -> bool:
    """Return whether only money or tokens limit the run, and many steps have spent none."""
    budget = tree.budget
    if budget.evaluations is not None or budget.seconds is not None or budget.patience is not None:
        return False
    taken = [
        used
        for used, limit in ((tree.spend.usd, budget.usd), (tree.spend.tokens, budget.tokens))
        if limit is not None
    ]
    enough = tree.evaluations >= UNSPENT_EVALUATIONS and count_ended_expansions(tree) >= UNSPENT_EXPANSIONS
    return enough and bool(taken) and not any(taken)


def _endless_message(tree: Tree) -> str:
    unit = (
        "money" if tree.budget.tokens is None else "tokens" if tree.budget.usd is None else "money or tokens"
    )
    return (
        f"{tree.evaluations} evaluations and {count_ended_expansions(tree)} expansions took no {unit}, so the budget"
        " never runs out; set a limit on evaluations or hours as well"
    )
