"""Lines and questions about the cost of a session, before it starts and after its first evaluations."""

import sys
from collections.abc import Callable

from dgm.archive.events import Recorded, TaskGraded
from dgm.archive.run import Run, RunKind
from dgm.config import Settings
from dgm.domain import Budget
from dgm.errors import UserError
from dgm.models.auto import Offer
from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.search.start import (
    BudgetReach,
    compute_reach,
    find_priced_models,
    max_evaluation_usd,
    max_remaining_usd,
    solver_price,
    tries_of,
)

TRIES = 2
"""Number of graded evaluations after which their cost is reported."""
INPUT_TOKENS, OUTPUT_TOKENS = 10_000, 1_000
"""Tokens of the example call whose price a question names."""


def consent_question(offer: Offer) -> str:
    """Return the question whether ``auto`` may stand for a paid model."""
    rates = offer.price.rates
    where = f" at {offer.base_url}" if offer.base_url else ""
    call = f"{offer.price.most(INPUT_TOKENS, OUTPUT_TOKENS):.2g} USD"
    return (
        f"use {offer.model}{where} with {offer.key_variable}? it costs money: {rates.input:g} USD per million tokens "
        f"in, {rates.output:g} out; about {call} per call of {INPUT_TOKENS:,} tokens in and {OUTPUT_TOKENS:,} out"
    )


def print_prices(settings: Settings) -> None:
    """Print the price of the model that works on tasks, and the most that one evaluation can cost.

    Without a limit in USD or tokens, print the worst case of the session as well.
    """
    try:
        solver = solver_price(settings)
        if solver is None:
            return
        name, price = solver
        most = fmt.money(max_evaluation_usd(settings, price))
        budget = settings.budget.budget()
        unlimited = max_remaining_usd(settings, budget, 0.0) is None
    except UserError:
        # The check of the models reports a model without a price, before anything costs.
        return
    sys.stderr.write(
        f"price: {price.rates.input:g} USD per million tokens in, {price.rates.output:g} out ({one_line(name, 80)}); "
        f"one evaluation costs at most {most} by the limits of the run; "
        f"its real cost is reported after {TRIES} evaluations\n"
    )
    if unlimited:
        sys.stderr.write(f"no --max-usd limits the cost{_worst_case(settings, budget)}\n")


def spending_question(settings: Settings, budget: Budget, spent_usd: float) -> str:
    """Return the question before a session; empty if it can spend no more than may be spent unasked.

    Args:
        settings: of the run.
        budget: of the session.
        spent_usd: in earlier sessions.
    """
    above = settings.budget.confirm_above_usd
    try:
        if above is None or not find_priced_models(settings):
            return ""
    except UserError:
        return ""
    most = max_remaining_usd(settings, budget, spent_usd)
    limit = f"budget.confirm_above_usd = {above:g}"
    if most is None:
        return f"no --max-usd limits the cost{_worst_case(settings, budget)} ({limit}); go on?"
    return f"this may cost up to {fmt.money(most)} ({limit}); go on?" if most > above else ""


def _worst_case(settings: Settings, budget: Budget) -> str:
    solver = solver_price(settings)
    if solver is None or budget.evaluations is None:
        return ""
    usd = budget.evaluations * max_evaluation_usd(settings, solver[1])
    return f"; {fmt.count(budget.evaluations, 'evaluation')} alone can cost {fmt.money(usd)}"


class FirstCosts:
    """Reports once the cost of the first evaluations, and how far the budget goes at that price."""

    def __init__(self, run: Run, settings: Settings, tell: Callable[[str], None]) -> None:
        """Report at once if earlier sessions of the run have enough graded evaluations.

        Args:
            run: open to write, in its new session.
            settings: of the session.
            tell: shows one line.
        """
        self._run, self._workers, self._tell = run, settings.workers, tell
        self._wanted = bool(find_priced_models(settings))
        self._tell_if_known()

    def event(self, recorded: Recorded) -> None:
        """Take note of an event that the run's tree has read."""
        if self._wanted and isinstance(recorded.event, TaskGraded):
            self._tell_if_known()

    def _tell_if_known(self) -> None:
        tree = self._run.tree
        if not self._wanted or tree.evaluations < TRIES:
            return
        self._wanted = False
        reach = compute_reach(
            tries_of(self._run), tree.budget, tree.spend.usd, tree.evaluations, self._workers
        )
        has_children = self._run.kind is RunKind.SEARCH
        self._tell(
            forecast_text(reach, tree.budget, tree.spend.usd, self._workers, has_children=has_children)
        )


def forecast_text(
    reach: BudgetReach, budget: Budget, spent_usd: float, workers: int, *, has_children: bool = True
) -> str:
    """Return the forecast from the first few evaluations as one line."""
    tries = fmt.count(reach.tries, "try", "tries")
    text = f"forecast: about {fmt.money(reach.usd)} an evaluation by {tries}"
    if reach.evaluations is None or reach.seconds is None:
        return f"{text}; nothing limits their number"
    time = f"{fmt.duration(reach.seconds)} with {fmt.count(workers, 'worker')}"
    evaluations = fmt.count(reach.evaluations, "evaluation")
    if reach.by == "usd" and budget.usd is not None:
        left = fmt.money_of(round(max(0.0, budget.usd - spent_usd), 6), budget.usd)
        rest = f"{left} are left, enough for some {evaluations}, {time}"
    else:
        rest = f"the remaining {evaluations} take about {fmt.money(reach.evaluations * reach.usd)}, {time}"
    return f"{text}; {rest}{' (making children comes on top)' if has_children else ''}"
