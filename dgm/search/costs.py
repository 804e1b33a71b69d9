"""The worst-case cost of evaluations by the limits of a run, and the real cost of graded ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dgm.archive.events import TaskGraded
from dgm.archive.run import Run
from dgm.benchmarks.formats import FORMATS, format_of
from dgm.config import Settings
from dgm.domain import Budget, Verdict
from dgm.models.choose import all_names, names_by_role
from dgm.models.pricing import Price
from dgm.search.start import prices_of

TRIES = 200
"""Maximum number of the newest graded evaluations that are read."""


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


def find_priced_models(settings: Settings) -> Mapping[str, Price]:
    """Return the models of a run that are billed, with their prices.

    Raises:
        UserError: one of them has no known price.
    """
    prices = prices_of(settings)
    return {name: prices[name] for name in all_names(settings) if prices[name].most(1, 1) > 0.0}


def max_evaluation_usd(settings: Settings, price: Price) -> float:
    """Return the maximum cost of one evaluation in USD by the limits of the run, if the solver has this price.

    A call that crosses ``limits.tokens`` is still answered: its size is counted if the model's context is
    known.
    """
    limits = settings.limits
    per_reply = price.reply_limit(limits.output_tokens)
    tokens = limits.tokens + (price.context or 0)
    if price.context:
        tokens = min(tokens, limits.calls * price.context)
    output = min(limits.calls * per_reply, tokens)
    usd = max(price.most(tokens - output, output), price.most(tokens, 0))
    if limits.usd is not None:
        usd = min(usd, limits.usd)
    tries = [format_of(name).tries(settings.benchmarks) for name in FORMATS if name in settings.benchmark]
    return usd * max(tries, default=1)


def max_remaining_usd(settings: Settings, budget: Budget, spent_usd: float) -> float | None:
    """Return the USD that a session can still spend at most; None if nothing limits them."""
    prices = find_priced_models(settings)
    bounds = [] if budget.usd is None else [max(0.0, budget.usd - spent_usd)]
    if budget.tokens is not None:
        bounds.append(
            max((price.most(budget.tokens, budget.tokens) for price in prices.values()), default=0.0)
        )
    return min(bounds, default=None)


def solver_price(settings: Settings) -> tuple[str, Price] | None:
    """Return the name and price of the model that works on tasks; None if it costs nothing."""
    name = names_by_role(settings)["solve"]
    price = find_priced_models(settings).get(name)
    return None if price is None else (name, price)


def tries_of(run: Run) -> Sequence[EvaluationSample]:
    """Return the cost and time of each of the newest graded evaluations, over all its tries."""
    events = run.store.events(TaskGraded, until=run.tree.seq)
    graded = [event for event in events if event.outcome.verdict is not Verdict.INVALID]
    return [
        EvaluationSample(run.tree.spend_of(event.action).usd, event.outcome.cost.seconds)
        for event in graded[: -TRIES - 1 : -1]
    ]
