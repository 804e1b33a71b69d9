"""The worst-case cost of evaluations by the limits of a run, and the real cost of graded ones."""

from collections.abc import Mapping, Sequence

from dgm.analysis.forecast import EvaluationSample
from dgm.archive.run import Run
from dgm.benchmarks.formats import FORMATS, format_of
from dgm.config import Settings
from dgm.domain import ActionId, Budget
from dgm.models.choose import all_names, names_by_role
from dgm.models.pricing import Price
from dgm.search.model_checks import prices_of

TRIES = 200
"""Maximum number of the newest graded evaluations that are read."""
_GRADED = """
SELECT action, coalesce(json_extract(body, '$.seconds'), 0.0) FROM events
WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid' AND seq <= ? ORDER BY seq DESC LIMIT ?
"""


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
    rows = run.store.query(_GRADED, (run.tree.seq, TRIES))
    return [EvaluationSample(run.tree.spend_of(ActionId(action)).usd, seconds) for action, seconds in rows]
