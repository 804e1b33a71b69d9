"""Number of evaluations that a budget still pays for, by the cost of the first ones.

The functions are pure: they read no log and no clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.domain import Budget


@dataclass(frozen=True, slots=True)
class EvaluationSample:
    """The cost and time of one graded evaluation."""

    usd: float
    seconds: float


@dataclass(frozen=True, slots=True)
class BudgetReach:
    """The mean cost of an evaluation by a few tries, and the evaluations left in the budget."""

    tries: int
    usd: float
    """Mean cost of one evaluation in USD."""
    evaluations: int | None
    """Evaluations left in the budget, by the limit reached first; None if neither money nor their number is limited."""
    by: str
    """The limit reached first: ``usd`` or ``evaluations``; empty if there is none."""
    seconds: float | None
    """Time for these evaluations in seconds, with all workers at work; None if nothing limits them."""


def compute_reach(
    tries: Sequence[EvaluationSample], budget: Budget, spent_usd: float, graded: int, workers: int
) -> BudgetReach:
    """Return the mean cost of evaluations by ``tries``, and the number of further ones in the budget.

    The making of children is left out: it costs something else, and the policy decides how many are made.

    Args:
        tries: at least one.
        budget: of the session.
        spent_usd: so far, for everything.
        graded: evaluations so far.
        workers: steps at once.
    """
    usd = sum(one.usd for one in tries) / len(tries)
    seconds = sum(one.seconds for one in tries) / len(tries)
    limits: dict[str, int] = {}
    if budget.usd is not None and usd > 0.0:
        limits["usd"] = int(max(0.0, budget.usd - spent_usd) / usd)
    if budget.evaluations is not None:
        limits["evaluations"] = max(0, budget.evaluations - graded)
    by = min(limits, key=limits.__getitem__, default="")
    left = limits.get(by)
    return BudgetReach(len(tries), usd, left, by, None if left is None else left * seconds / max(workers, 1))
