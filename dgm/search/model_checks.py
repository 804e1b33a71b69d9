"""Checks the models of a run before money flows, and keeps what the checks took and taught."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dgm.archive.begun_checks import earlier_checks, end_checks
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Usage
from dgm.errors import ProviderRefuses, UserError
from dgm.gateway.journal import RunJournal
from dgm.models.choose import all_names, open_models
from dgm.models.listening import Silent
from dgm.models.pricing import FREE_MODELS, Price, Prices
from dgm.protocols import Checked, WireModel

CHECK_TOKENS = 4_000
"""Bound on the input of a check, which is the same for all models but for their names."""
CUT_CHECK = "a check of it was cut off and is counted at its worst case"


def prices_of(settings: Settings) -> Mapping[str, Price]:
    """What each model of the settings costs, by its name.

    Raises:
        UserError: there is no such model, or nobody has said what it costs.
    """
    prices = Prices.load(settings.models.prices, settings.models.compatible.base_url)
    return {name: prices.of(name) for name in all_names(settings)}


async def check_models(
    settings: Settings, known: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> Sequence[Checked]:
    """Make one small real call to every model, and return what it took and taught.

    Args:
        settings: name the models.
        known: model → its abilities, as an earlier session recorded them.

    Raises:
        UserError: a key is missing or wrong, there is no such model, or nobody has said what it costs.
        Infrastructure: one does not answer now.
    """
    if "recorded" in all_names(settings):
        raise UserError("model 'recorded' answers in replays only: dgm replay RUN evaluations --perform")
    # Opened before they are priced: of a model that does not exist, nobody could say what it costs.
    models = set(open_models(settings).values())
    try:
        prices_of(settings)
        for model in models:
            if isinstance(model, WireModel):
                model.adopt(Silent(), known.get(model.name))
        checked = await asyncio.gather(*(model.check() for model in models))
    except ProviderRefuses as error:
        raise UserError(str(error)) from error
    finally:
        await asyncio.gather(*(model.close() for model in models))
    return [one for one in checked if one is not None]


def worst_of_checks(settings: Settings) -> Mapping[str, Usage]:
    """Return the most that the check of each model can take that somebody sends a bill for."""
    prices, output = prices_of(settings), settings.limits.output_tokens
    return {
        name: Usage(1, CHECK_TOKENS, output, price.most(CHECK_TOKENS, output))
        for name, price in prices.items()
        if name not in FREE_MODELS
    }


def note_checks(run: Run, settings: Settings, checks: Sequence[Checked]) -> None:
    """Write into the log of a run what the checks of its models took and taught.

    Those that the death of a process cut off are counted at their worst case: they may have been answered.
    """
    prices = prices_of(settings)
    journal = RunJournal(run)
    for model, most in earlier_checks(run.folder):
        journal.learned(model, run.tree.model_facts.abilities.get(model, {}), CUT_CHECK, most)
    for one in checks:
        usage = replace(one.usage, usd=prices[one.model].cost(one.usage))
        journal.learned(one.model, one.abilities, "; ".join(one.words), usage)
    end_checks(run.folder, counted=True)
