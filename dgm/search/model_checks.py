"""Checks of a run's models before money is spent, and the record of their costs and findings."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from dgm.archive.live import end_checks, read_earlier_checks
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Usage
from dgm.errors import Hint, ProviderRefuses, ProviderWaits, UserError
from dgm.gateway.journal import RunJournal
from dgm.models.check import NullListener
from dgm.models.choose import all_names, open_models
from dgm.models.pricing import Price, Prices, is_free
from dgm.protocols import Checked, Sleep, WireModel

CHECK_TOKENS = 4_000
"""Bound on the input tokens of a check, which differs between models only by their names."""
LONGEST_WAIT_S = 900.0
"""Maximum wait in seconds of a check, at the request of a provider; one that asks for more ends the command."""
CUT_CHECK = "a check of it was cut off and is counted at its worst case"

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


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
