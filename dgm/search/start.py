"""What a session checks before it starts: the run's settings, its budget, and its models."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from dgm.archive.finding import unpacked_copies_folder
from dgm.archive.live import end_checks, read_earlier_checks
from dgm.archive.run import Run
from dgm.config import Settings, read_frozen
from dgm.consents import ConsentNeeded
from dgm.domain import ActionId, Budget, Usage
from dgm.errors import Hint, ProviderRefuses, ProviderWaits, UserError
from dgm.gateway.journal import RunJournal
from dgm.models.check import NullListener
from dgm.models.choose import all_names, open_models
from dgm.models.pricing import Price, Prices, is_free
from dgm.models.providers import without_addresses
from dgm.models.reach import list_unagreed
from dgm.protocols import Checked, Sleep, WireModel

CHECK_TOKENS = 4_000
"""Bound on the input tokens of a check, which differs between models only by their names."""
LONGEST_WAIT_S = 900.0
"""Maximum wait in seconds of a check, at the request of a provider; one that asks for more ends the command."""
CUT_CHECK = "a check of it was cut off and is counted at its worst case"

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


def settings_of(run: Run, until: int | None = None) -> Settings:
    """Return the settings of a run; for a packed run, without the addresses of its maker's models.

    A stranger's address cannot be trusted, nor the name of the variable whose value would be sent there.

    Args:
        run: the run.
        until: number of the last event whose changes count; None for all that the run's tree has read.
    """
    settings = read_frozen(run.settings(until), str(run.folder / "run.json"))
    if not run.folder.resolve().is_relative_to(unpacked_copies_folder().resolve()):
        return settings
    return without_addresses(settings)


def require_consent(run: Run, settings: Settings) -> None:
    """Make sure that this user has agreed to where a run would send keys, and to the prices that it counts with.

    Whoever made the run on this machine has. Values that this user chose now, instead of the run's, need no consent.

    Args:
        run: whose settings are used.
        settings: those that are about to be used.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names an address, a variable or a price of its own.
    """
    unagreed = list_unagreed(settings, settings_of(run))
    if unagreed:
        words = "; ".join(one.words for one in unagreed)
        raise ConsentNeeded(
            f"{run.name}: was not made by you on this machine, and would use its own {words}",
            f"{run.name} was not made by you on this machine. Use its {words}",
            unagreed,
        )


def group_by_settings(run: Run, actions: Iterable[ActionId]) -> Sequence[tuple[int, Sequence[ActionId]]]:
    """Group actions by the settings that they were performed with.

    Returns:
        For each group the number of an event at which its settings held, and its actions in the order given.
        There is one group if the settings were never changed.
    """
    if not run.tree.changes:
        return [(run.tree.seq, list(actions))]
    groups: dict[int, list[ActionId]] = {}
    for action in actions:
        starts = run.store.starts_of_action(action)
        # The last change before the last start; 0: before all of them.
        change = max((seq for seq, _ in run.tree.changes if starts and seq < starts[-1][0]), default=0)
        groups.setdefault(change, []).append(action)
    return sorted(groups.items())


def current_settings_at(run: Run, until: int) -> Settings:
    """Return the settings at event ``until``, with the present place of the benchmark."""
    place: Mapping[str, str] = {"benchmark": run.settings()["benchmark"]}
    return settings_of(run, until).model_copy(update=place)


def prices_of(settings: Settings) -> Mapping[str, Price]:
    """Return the price of each model of the settings, by its name.

    Raises:
        UserError: there is no such model, or it has no known price.
    """
    prices = Prices.load(settings)
    return {name: prices.of(name) for name in all_names(settings)}


async def check_models(
    settings: Settings, known: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> Sequence[Checked]:
    """Make one small real call to every model, and return its cost and findings.

    Args:
        settings: name the models.
        known: model → its abilities, as an earlier session recorded them.

    Raises:
        UserError: a key is missing or wrong, there is no such model, or it has no known price.
        Infrastructure: one does not answer now.
    """
    if "recorded" in all_names(settings):
        raise UserError(
            "model 'recorded' answers in replays only",
            hint=Hint("to let agents work on recorded replies", "replay", ("RUN",), {"what": "work"}),
        )
    # Opened before they are priced: a model that does not exist has no price.
    models = set(open_models(settings).values())
    try:
        prices_of(settings)
        for model in models:
            if isinstance(model, WireModel):
                model.adopt(NullListener(), known.get(model.name))
        checked = await asyncio.gather(*(check_patiently(model.check) for model in models))
    except ProviderRefuses as error:
        raise UserError(str(error)) from error
    finally:
        await asyncio.gather(*(model.close() for model in models))
    return [one for one in checked if one is not None]


async def check_patiently(
    check: Callable[[], Awaitable[_Result]],
    sleep: Sleep = asyncio.sleep,
    now: Callable[[], float] = time.time,
) -> _Result:
    """Make a check, and make it again after the wait that a provider asks for.

    Raises:
        ProviderWaits: the provider asks for a wait of more than ``LONGEST_WAIT_S``.
    """
    while True:
        try:
            return await check()
        except ProviderWaits as wait:
            seconds = wait.until - now()
            if seconds > LONGEST_WAIT_S:
                raise
            log.warning("%s; waiting", wait)
            await sleep(max(seconds, 0.0))


def worst_of_checks(settings: Settings) -> Mapping[str, Usage]:
    """Return the maximum usage of each billed model's check."""
    worst = {}
    for name, price in prices_of(settings).items():
        if not is_free(name):
            output = price.reply_limit(settings.limits.output_tokens)
            worst[name] = Usage(1, CHECK_TOKENS, output, price.most(CHECK_TOKENS, output))
    return worst


def note_checks(run: Run, settings: Settings, checks: Sequence[Checked]) -> None:
    """Record the costs and findings of the models' checks in the log of a run.

    Checks that a process's death cut off are counted at their worst case: they may have been answered.
    """
    prices = prices_of(settings)
    journal = RunJournal(run)
    for model, worst in read_earlier_checks(run.folder):
        journal.learned(model, run.tree.model_facts.abilities.get(model, {}), CUT_CHECK, worst)
    for one in checks:
        usage = replace(one.usage, usd=prices[one.model].cost(one.usage))
        journal.learned(one.model, one.abilities, "; ".join(one.words), usage)
    end_checks(run.folder, counted=True)


def check_budget_ends_run(budget: Budget, settings: Settings) -> None:
    """Make sure that the budget ends the run: money never runs out with models that cost nothing.

    Without a limit of evaluations, money, tokens or time a run gets a limit of evaluations
    (``BudgetSettings.budget``). So a limit of agents alone needs no check here.

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
