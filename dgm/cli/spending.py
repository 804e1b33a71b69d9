"""The cost of a search, reported before it starts and after its first evaluations; asks if the user's limit says so."""

import sys
from collections.abc import Callable

import click

from dgm.archive.events import Recorded, TaskGraded
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Budget
from dgm.errors import UserError
from dgm.evaluation.control import ControlCost
from dgm.evaluation.evaluating import PLAN
from dgm.report.drawing import short_number
from dgm.search.costs import (
    BudgetReach,
    compute_reach,
    find_priced_models,
    max_evaluation_usd,
    max_remaining_usd,
    solver_price,
    tries_of,
)
from dgm.show.safe import one_line
from dgm.show.times import duration_text
from dgm.show.words import count_text, usd_text

TRIES = 2
"""Number of graded evaluations after which their cost is reported."""

yes_option = click.option(
    "--yes", is_flag=True, help="Do not ask, also where more may be spent than budget.confirm_above_usd."
)


def tell_prices(settings: Settings) -> None:
    """Print on stderr the price of the model that works on tasks, and the maximum cost of one evaluation.

    Without a limit in USD or tokens, print what is spent at worst.
    """
    solver = solver_price(settings)
    if solver is None:
        return
    name, price = solver
    most = max_evaluation_usd(settings, price)
    sys.stderr.write(
        f"price: {price.rates.input:g} USD per million tokens in, {price.rates.output:g} out ({one_line(name, 80)}); "
        f"by the limits of the run one evaluation costs at most about {money_text(most)} USD; what it really costs "
        f"is told after {TRIES} evaluations\n"
    )
    budget = settings.budget.budget()
    if max_remaining_usd(settings, budget, 0.0) is None:
        sys.stderr.write(f"no --max-usd bounds what this costs{_worst_cost_text(settings, budget)}\n")


def confirm_spending(settings: Settings, budget: Budget, spent_usd: float, *, yes: bool) -> None:
    """Ask on a terminal whether a session may spend more than ``budget.confirm_above_usd``; elsewhere do not ask.

    Raises:
        UserError: the answer is no.
    """
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    asked = spending_question(settings, budget, spent_usd)
    if asked and not click.confirm(asked, default=False, err=True):
        raise UserError(
            "not confirmed: nothing was begun, and nothing was spent; set --max-usd to spend less"
        )


def confirm_grader(change: str, *, yes: bool) -> None:
    """Ask on a terminal whether a search may go on under another grader, unless ``yes``.

    Raises:
        UserError: the answer is no, or there is no terminal to ask on.
    """
    if yes:
        sys.stderr.write(f"{change}\n")
    elif not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(f"{change}; add --yes to go on, or start a new run")
    elif not click.confirm(f"{change}; go on?", default=False, err=True):
        raise UserError("not confirmed: nothing was begun, and nothing was spent")


def confirm_control(cost: ControlCost, workers: int, *, yes: bool) -> None:
    """Show on stderr what the control costs at most, and ask on a terminal unless ``yes``.

    Raises:
        UserError: the answer is no, or there is no terminal to ask on.
    """
    price = (
        f"the control gives the seed up to {count_text(cost.attempts, 'further attempt')}: about "
        f"{money_text(cost.usd)} USD, {short_number(cost.tokens)} tokens and {duration_text(cost.seconds / workers)} "
        f"with {count_text(workers, 'worker')} at most"
    )
    if yes:
        sys.stderr.write(f"{price}\n")
    elif not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(f"{price}; add --yes to perform it")
    elif not click.confirm(f"{price}; perform it?", default=False, err=True):
        raise UserError("not confirmed: nothing was performed, and nothing was spent")


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
        # The check of the models reports a model without a price, before anything costs.
        return ""
    most = max_remaining_usd(settings, budget, spent_usd)
    limit = f"budget.confirm_above_usd = {above:g}"
    if most is None:
        return f"no --max-usd bounds what this costs{_worst_cost_text(settings, budget)} ({limit}); go on?"
    return f"this may cost up to {money_text(most)} USD ({limit}); go on?" if most > above else ""


def _worst_cost_text(settings: Settings, budget: Budget) -> str:
    solver = solver_price(settings)
    if solver is None or budget.evaluations is None:
        return ""
    usd = budget.evaluations * max_evaluation_usd(settings, solver[1])
    return (
        f", and {count_text(budget.evaluations, 'evaluation')} alone can cost {money_text(usd)} USD at worst"
    )


class FirstCosts:
    """A listener that reports once the cost of the first evaluations, and the reach of the budget at that price."""

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
        has_children = PLAN not in self._run.config
        self._tell(
            forecast_text(reach, tree.budget, tree.spend.usd, self._workers, has_children=has_children)
        )


def forecast_text(
    reach: BudgetReach, budget: Budget, spent_usd: float, workers: int, *, has_children: bool = True
) -> str:
    """Return the forecast from the first few evaluations as one line."""
    said = f"forecast: about {money_text(reach.usd)} USD an evaluation by {count_text(reach.tries, 'try', 'tries')}"
    if reach.evaluations is None or reach.seconds is None:
        return f"{said}; nothing limits how many there will be"
    time = f"{duration_text(reach.seconds)} with {count_text(workers, 'worker')}"
    if reach.by == "usd" and budget.usd is not None:
        left = f"{money_text(max(0.0, budget.usd - spent_usd))} of {usd_text(budget.usd)} USD"
        much = f"{left} are left and last for some {count_text(reach.evaluations, 'evaluation')}, {time}"
    else:
        usd = money_text(reach.evaluations * reach.usd)
        much = f"the {count_text(reach.evaluations, 'evaluation')} that are left take about {usd} USD, {time}"
    return f"{said}; {much}{' (making children comes on top)' if has_children else ''}"


def money_text(usd: float) -> str:
    """Return an amount with two decimals, or with two significant digits: ``12.40``, ``0.0025``."""
    if usd >= 0.1 or usd <= 0.0:
        return f"{usd:,.2f}"
    digits = 1
    while digits < 12 and round(usd, digits) * 10**digits < 9.5:
        digits += 1
    return f"{usd:.{digits}f}"
