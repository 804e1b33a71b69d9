"""The providers that dgm supports.

A new one is a module in ``dgm.models.vendors``, a name in this list, and a section of ``ModelsSettings``.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dgm.config import ModelsSettings
from dgm.config.variables import OWN_VARIABLES, SYSTEM_VARIABLES, Variable
from dgm.models.provider import ConnectionInputs, Provider, check_url
from dgm.models.vendors.anthropic import ANTHROPIC
from dgm.models.vendors.azure import AZURE
from dgm.models.vendors.bedrock import BEDROCK
from dgm.models.vendors.compatible import COMPATIBLE
from dgm.models.vendors.openai import OPENAI
from dgm.models.vendors.vertex import VERTEX

if TYPE_CHECKING:
    from dgm.models.connections import Connection

__all__ = [
    "ANTHROPIC",
    "COMPATIBLE",
    "OPENAI",
    "PROVIDERS",
    "Provider",
    "all_variables",
    "check_url",
    "native_name",
    "open_connection",
    "provider_of",
    "without_addresses",
]

PROVIDERS: Mapping[str, Provider] = {
    one.name: one for one in (OPENAI, ANTHROPIC, COMPATIBLE, AZURE, BEDROCK, VERTEX)
}

_OWN = ("base_url", "key_env", "extra_headers", "extra_body", "profile", "project")
"""Settings that determine where requests go, and which variables of the environment go with them."""


def provider_of(model: str) -> Provider | None:
    """Return the provider in a model's name, or None."""
    provider, slash, _ = model.partition("/")
    return PROVIDERS.get(provider) if slash else None


def native_name(model: str) -> str:
    """Return the provider's own name of a model: ``gpt-5.2`` of ``openai/gpt-5.2``."""
    return model.partition("/")[2] if provider_of(model) else model


def all_variables() -> Sequence[Variable]:
    """Return the environment variables that dgm reads; of the providers', first keys, then addresses, then others."""
    rows = [(one, provider) for provider in PROVIDERS.values() for one in provider.variables]
    rows.sort(key=lambda row: (row[0].name != row[1].key_env, row[0].name != row[1].url_env))
    return (*OWN_VARIABLES, *(one for one, _ in rows), *SYSTEM_VARIABLES)


def open_connection(provider: Provider, models: ModelsSettings, own_name: str) -> "Connection":
    """Open a connection to one model; send no request.

    Args:
        provider: of the model.
        models: settings of all providers.
        own_name: the provider's own name of the model, without ``openai/``.

    Raises:
        UserError: a key, an address, a package or a setting is missing or wrong; the message says what to do.
    """
    url = provider.base_url(models, os.environ)
    return provider.connect(ConnectionInputs(provider, own_name, models, url))


def without_addresses(models: ModelsSettings) -> ModelsSettings:
    """Return the settings of a stranger's run without addresses that would receive this machine's secrets."""
    kept = {}
    for provider in PROVIDERS.values():
        section = provider.settings(models)
        fields = type(section).model_fields
        kept[provider.section] = section.model_copy(
            update={name: fields[name].default for name in _OWN if name in fields}
        )
    return models.model_copy(update=kept)
