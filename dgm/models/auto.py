"""Choice of the model behind ``auto``, with the reason.

The order is: an endpoint from the settings, a provider whose key is set, a local server that answers, ``offline``. The
search spends nothing, and it takes no paid provider before the user has agreed to it.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dgm.config import Settings
from dgm.errors import UserError
from dgm.models.addresses import check_url
from dgm.models.choose import AUTO, ROLES
from dgm.models.local_servers import USUAL, LocalServer, Probe, probe
from dgm.models.pricing import Price, Prices
from dgm.models.providers import ANTHROPIC, COMPATIBLE, OPENAI, Provider

PAID = (OPENAI, ANTHROPIC)
"""Paid providers, in the order of preference."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that could be used and costs money."""

    provider: str
    model: str
    key_variable: str
    base_url: str | None
    """Address of the API; None is the provider's own address."""
    price: Price


Ask = Callable[[Offer], bool]
"""Question whether the user agrees. Raises ``UserError`` if nobody can be asked."""


def settle_auto(
    settings: Settings, ask: Ask, environment: Mapping[str, str] = os.environ, probe: Probe = probe
) -> tuple[Settings, str]:
    """Return the settings with a model in place of ``auto``, and one line with the model and the reason.

    Roles with a model of their own keep it; the others follow. Settings that name their models are returned unchanged.

    Args:
        settings: with ``auto`` for the model or for a role of it, or without.
        ask: asks whether a paid provider may be used, one at a time.
        environment: holds the keys and addresses of providers.
        probe: asks local servers for their models.

    Raises:
        UserError: only a paid provider could be used, and nobody can be asked.
    """
    settings = _clear_auto_roles(settings)
    if settings.model != AUTO:
        return settings, f"{settings.model}: as the settings say"
    if every := _solver_if_all_named(settings):
        return settings.model_copy(update={"model": every}), "every role has a model of its own"
    return (
        _choose_configured(settings, probe)
        or _choose_paid(settings, ask, environment)
        or _choose_local(settings, probe)
        or _choose_offline(settings)
    )


def key_is_set(provider: Provider, settings: Settings, environment: Mapping[str, str]) -> bool:
    """Return whether the variable of the provider's key has a value."""
    return bool(environment.get(provider.key_variable(settings.models), "").strip())


def _clear_auto_roles(settings: Settings) -> Settings:
    own = settings.models.model_dump(include=set(ROLES))
    asked = {role: None for role, name in own.items() if name == AUTO}
    return (
        settings.model_copy(update={"models": settings.models.model_copy(update=asked)})
        if asked
        else settings
    )


def _solver_if_all_named(settings: Settings) -> str | None:
    own = settings.models
    return own.solve if own.solve and own.improve and own.diagnose else None


def _choose_configured(settings: Settings, probe: Probe) -> tuple[Settings, str] | None:
    """Return the settings for the configured endpoint, if there is one: a user who gives an address wants no other."""
    url = settings.models.compatible.base_url
    if not url:
        return None
    where = f"models.compatible.base_url = {check_url(url, 'models.compatible.base_url')}"
    prices = Prices.load(settings.models.prices, url)
    offered = probe([url]).get(url, ())
    for name in offered:
        if prices.knows(f"{COMPATIBLE.name}/{name}"):
            return _settings_for_server(settings, LocalServer("the server of the settings", url), name)
    if offered:
        some = ", ".join(offered[:3])
        raise UserError(
            f"{where} offers {some}{' …' if len(offered) > 3 else ''}, and nobody has said what they cost: name one "
            f'with --model {COMPATIBLE.name}/… and add [models.prices."{COMPATIBLE.name}/…"] to the settings'
        )
    raise UserError(
        f"{where} does not answer with a list of models: start that server, or name the model with "
        f"--model {COMPATIBLE.name}/…"
    )


def _choose_paid(settings: Settings, ask: Ask, environment: Mapping[str, str]) -> tuple[Settings, str] | None:
    prices = Prices.load(settings.models.prices)
    for provider in PAID:
        if not key_is_set(provider, settings, environment):
            continue
        model = prices.defaults[provider.name]
        offer = Offer(
            provider.name,
            model,
            provider.key_variable(settings.models),
            provider.base_url(settings.models, environment),
            prices.of(model),
        )
        if ask(offer):
            return settings.model_copy(update={"model": model}), f"{model}: {offer.key_variable} is set"
    return None


def _choose_local(settings: Settings, probe: Probe) -> tuple[Settings, str] | None:
    answering = probe([server.base_url for server in USUAL])
    for server in USUAL:
        if server.base_url in answering:
            return _settings_for_server(settings, server, answering[server.base_url][0])
    return None


def _settings_for_server(settings: Settings, server: LocalServer, name: str) -> tuple[Settings, str]:
    model = f"{COMPATIBLE.name}/{name}"
    compatible = settings.models.compatible.model_copy(update={"base_url": server.base_url})
    models = settings.models.model_copy(update={"compatible": compatible})
    return (
        settings.model_copy(update={"model": model, "models": models}),
        f"{model}: {server.name} answers at {server.base_url}",
    )


def _choose_offline(settings: Settings) -> tuple[Settings, str]:
    why = "no provider's key may be used and no local server answers; name a model with --model"
    return settings.model_copy(update={"model": "offline"}), f"offline (rule-based, a demonstration): {why}"
