"""Forecast of a search's end: rates of the recent past, and the time that each budget lasts at these rates.

The functions are pure: they read no log and no clock, so that a list of runs, a panel and ``dgm status`` agree.
Nothing is predicted if too little has happened, or for a budget that is not used at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dgm.analysis.budget_use import BudgetUse
from dgm.domain import Budget

LEAST_ENDED = 3
"""Minimum number of ended steps in the measured time for rates to count."""


@dataclass(frozen=True, slots=True)
class ObservedProgress:
    """Counts of events and spend in a stretch of time."""

    seconds: float
    events: int = 0
    ended: int = 0
    """Steps that ended with an outcome: verdicts, births, stillbirths."""
    evaluations: int = 0
    """Graded evaluations."""
    expansions: int = 0
    """Ended expansions, whatever their results."""
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class ProgressRates:
    """Events and spend per unit of time."""

    window_s: float
    """Length, in seconds, of the time in which the rates were measured."""
    events_per_hour: float
    evaluations_per_hour: float
    expansions_per_hour: float
    tokens_per_second: float
    usd_per_hour: float


class NoForecastReason(StrEnum):
    """Why there is no forecast for a budget."""

    TOO_LITTLE = "not yet known"
    UNUSED = "not used at the present rate"


@dataclass(frozen=True, slots=True)
class BudgetEnd:
    """The time that one budget lasts."""

    budget: str
    """``evaluations``, ``usd``, ``tokens`` or ``seconds``."""
    use: BudgetUse
    left_s: float | None
    """Seconds from now; None if not known."""
    unknown: NoForecastReason | None = None
    """Why the time is not known."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The end by each budget."""

    ends: tuple[BudgetEnd, ...]
    binding: BudgetEnd | None
    """The known budget that ends the search first; None if none is known."""
    complete: bool
    """Whether every budget is known; else an unknown one may end the search earlier."""


def compute_rates(observed: ObservedProgress) -> ProgressRates | None:
    """Return the rates of a stretch of time; None if too little happened in it."""
    if observed.ended < LEAST_ENDED or observed.seconds <= 0.0:
        return None
    per_hour = 3600.0 / observed.seconds
    return ProgressRates(
        window_s=observed.seconds,
        events_per_hour=observed.events * per_hour,
        evaluations_per_hour=observed.evaluations * per_hour,
        expansions_per_hour=observed.expansions * per_hour,
        tokens_per_second=observed.tokens / observed.seconds,
        usd_per_hour=observed.usd * per_hour,
    )


def predict_ends(
    uses: Sequence[BudgetUse], rates: ProgressRates | None, expansion_cost: float = 0.0
) -> Forecast:
    """Predict the end by each budget, with all rates unchanged.

    Args:
        uses: the use of each limit; one of ``agents`` only prevents births and is left out.
        rates: from ``compute_rates``; None if not known.
        expansion_cost: evaluations of the budget that one expansion takes.
    """
    ends = tuple(_predict_end(use, rates, expansion_cost) for use in uses if use.name != "agents")
    known = [end for end in ends if end.left_s is not None]
    binding = min(known, key=lambda end: end.left_s or 0.0, default=None)
    return Forecast(ends, binding, all(end.unknown is not NoForecastReason.TOO_LITTLE for end in ends))


def _predict_end(use: BudgetUse, rates: ProgressRates | None, expansion_cost: float) -> BudgetEnd:
    name, left = use.name, use.left
    if left == 0.0 or name == "seconds":
        return BudgetEnd(name, use, left)
    if rates is None:
        return BudgetEnd(name, use, None, NoForecastReason.TOO_LITTLE)
    per_second = {
        "evaluations": (rates.evaluations_per_hour + expansion_cost * rates.expansions_per_hour) / 3600.0,
        "usd": rates.usd_per_hour / 3600.0,
        "tokens": rates.tokens_per_second,
    }[name]
    return (
        BudgetEnd(name, use, left / per_second)
        if per_second > 0.0
        else BudgetEnd(name, use, None, NoForecastReason.UNUSED)
    )


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
