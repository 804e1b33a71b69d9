"""When a search will end: rates of the recent past, and for each budget the time that it lasts at these rates.

Pure: it reads no log and no clock, so that a list of runs, a panel and ``dgm status`` can say the same. Where too
little has happened, or a budget is not used at all, nothing is predicted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dgm.domain import Budget

LEAST_ENDED = 3
"""Steps that must have ended in the time that is looked at, before rates are believed."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What happened in a stretch of time."""

    seconds: float
    events: int = 0
    ended: int = 0
    """Steps that ended with an outcome: verdicts, births, stillbirths."""
    evaluations: int = 0
    """Graded ones."""
    expansions: int = 0
    """Ended ones, whatever came of them."""
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """What happens in a unit of time."""

    window_s: float
    """Length of the time that the rates were measured in."""
    events_per_hour: float
    evaluations_per_hour: float
    expansions_per_hour: float
    tokens_per_second: float
    usd_per_hour: float


class Unknown(StrEnum):
    """Why there is no forecast for a budget."""

    TOO_LITTLE = "not yet known"
    UNUSED = "not used at the present rate"


@dataclass(frozen=True, slots=True)
class Use:
    """A budget and what is used of it."""

    used: float
    limit: float


@dataclass(frozen=True, slots=True)
class End:
    """How long one budget lasts."""

    budget: str
    """``evaluations``, ``usd``, ``tokens`` or ``seconds``."""
    use: Use
    left_s: float | None
    """Seconds from now; None where it is not known."""
    unknown: Unknown | None = None
    """Why it is not known."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The end by each budget."""

    ends: tuple[End, ...]
    binding: End | None
    """The budget that ends the search first, among those that are known; None where none is."""
    complete: bool
    """Whether no budget is left out for want of knowledge: another one may bind otherwise."""


def rates_of(observed: Observed) -> Rates | None:
    """Return the rates of a stretch of time; None where too little happened in it to believe them."""
    if observed.ended < LEAST_ENDED or observed.seconds <= 0.0:
        return None
    per_hour = 3600.0 / observed.seconds
    return Rates(
        window_s=observed.seconds,
        events_per_hour=observed.events * per_hour,
        evaluations_per_hour=observed.evaluations * per_hour,
        expansions_per_hour=observed.expansions * per_hour,
        tokens_per_second=observed.tokens / observed.seconds,
        usd_per_hour=observed.usd * per_hour,
    )


def uses_of(budget: Budget, evaluations: float, usd: float, tokens: int, seconds: float) -> Mapping[str, Use]:
    """Return the budgets that can end a search, with what is used of each.

    Args:
        budget: the limits; ``agents`` only closes the way to births and is left out.
        evaluations: used of that budget, what expansions take of it included.
        usd: spent.
        tokens: spent.
        seconds: of the run's sessions, until now.
    """
    pairs = {
        "evaluations": (evaluations, budget.evaluations),
        "usd": (usd, budget.usd),
        "tokens": (tokens, budget.tokens),
        "seconds": (seconds, budget.seconds),
    }
    return {name: Use(used, limit) for name, (used, limit) in pairs.items() if limit is not None}


def forecast(uses: Mapping[str, Use], rates: Rates | None, expansion_cost: float = 0.0) -> Forecast:
    """Predict the end by each budget, as if everything went on at the same rates.

    Args:
        uses: of ``uses_of``.
        rates: of ``rates_of``; None where they are not known.
        expansion_cost: evaluations of the budget that one expansion takes.
    """
    ends = tuple(_end(name, use, rates, expansion_cost) for name, use in uses.items())
    known = [end for end in ends if end.left_s is not None]
    binding = min(known, key=lambda end: end.left_s or 0.0, default=None)
    return Forecast(ends, binding, all(end.unknown is not Unknown.TOO_LITTLE for end in ends))


def _end(name: str, use: Use, rates: Rates | None, expansion_cost: float) -> End:
    left = max(0.0, use.limit - use.used)
    if left == 0.0 or name == "seconds":
        return End(name, use, left)
    if rates is None:
        return End(name, use, None, Unknown.TOO_LITTLE)
    per_second = {
        "evaluations": (rates.evaluations_per_hour + expansion_cost * rates.expansions_per_hour) / 3600.0,
        "usd": rates.usd_per_hour / 3600.0,
        "tokens": rates.tokens_per_second,
    }[name]
    return End(name, use, left / per_second) if per_second > 0.0 else End(name, use, None, Unknown.UNUSED)


@dataclass(frozen=True, slots=True)
class Try:
    """What one graded evaluation took."""

    usd: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Reach:
    """What an evaluation costs by a few tries, and how far the budget goes."""

    tries: int
    usd: float
    """Of one evaluation, in the mean."""
    evaluations: int | None
    """That the budget leaves, by the limit that is reached first; None where neither money nor a number limits them."""
    by: str
    """That limit: ``usd`` or ``evaluations``; empty where there is none."""
    seconds: float | None
    """For these evaluations, with all workers at work; None where nothing limits them."""


def reach_of(tries: Sequence[Try], budget: Budget, spent_usd: float, graded: int, workers: int) -> Reach:
    """Return what evaluations cost by ``tries``, and how many more of them the budget has room for.

    Making children is left out: it costs something else, and how many are made is the policy's to say.

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
    return Reach(len(tries), usd, left, by, None if left is None else left * seconds / max(workers, 1))
