"""Budgets that can never run out, and so end no run: money with models that cost nothing.

Without a limit of evaluations, money, tokens or time a run gets a limit of evaluations
(``BudgetSettings.budget``). So a limit of agents alone needs no check here. With a limit of agents a run ends
when every agent has tried every task. With patience it ends when no better agent is recommended any more.
"""

from collections.abc import Mapping

from dgm.config import Settings
from dgm.domain import Budget
from dgm.errors import UserError
from dgm.models.pricing import Price
from dgm.search.model_checks import prices_of


def check_budget_ends_run(budget: Budget, settings: Settings) -> None:
    """Make sure that the budget ends the run.

    Args:
        budget: of the session that is about to begin.
        settings: of the run, with every ``auto`` replaced by a model.

    Raises:
        UserError: only money limits the run, and all its models are free; or an error of ``prices_of``.
    """
    others = (budget.evaluations, budget.agents, budget.tokens, budget.seconds, budget.patience)
    if budget.usd is None or any(limit is not None for limit in others):
        return
    prices = prices_of(settings)
    if not any(map(_costs_money, prices.values())):
        raise UserError(
            f"{budget.usd:g} never runs out, for {_format_costing_models(prices)} nothing; set a limit on "
            "evaluations, tokens, hours or patience as well",
            argument="budget.usd",
        )


def _costs_money(price: Price) -> bool:
    rates = (price.rates, *(tier.rates for tier in price.long))
    return any(each.dearest_input or each.output for each in rates)


def _format_costing_models(prices: Mapping[str, Price]) -> str:
    names = sorted(prices)
    return f"the model {names[0]} costs" if len(names) == 1 else f"the models {', '.join(names)} cost"
