"""The providers that dgm speaks to: how their models are named, and where their keys and addresses are looked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from dgm.config import ModelsSettings, ProviderSettings
from dgm.errors import UserError


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider of models."""

    name: str
    """What stands before the slash in a model's name."""
    section: str
    """Its settings: ``models.<section>``."""
    key_env: str
    """Environment variable that holds the key unless the settings name another."""
    url_env: str
    """Environment variable that holds the address where the settings have none, as for the provider's own package;
    empty: there is none."""

    def settings(self, models: ModelsSettings) -> ProviderSettings:
        """How it is reached."""
        match self.section:
            case "openai":
                return models.openai
            case "anthropic":
                return models.anthropic
            case _:
                return models.compatible

    def key_variable(self, models: ModelsSettings) -> str:
        """Name of the environment variable that holds its key."""
        return self.settings(models).key_env or self.key_env

    def base_url(self, models: ModelsSettings, environment: Mapping[str, str]) -> str | None:
        """Address of its API; None is the provider's own.

        Raises:
            UserError: it is no address, or it holds a password.
        """
        if url := self.settings(models).base_url:
            return checked_url(url, f"models.{self.section}.base_url")
        url = environment.get(self.url_env, "").strip() if self.url_env else ""
        return checked_url(url, self.url_env) if url else None


OPENAI = Provider("openai", "openai", "OPENAI_API_KEY", "OPENAI_BASE_URL")
ANTHROPIC = Provider("anthropic", "anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
COMPATIBLE = Provider("openai-compatible", "compatible", "OPENAI_COMPATIBLE_API_KEY", "")
PROVIDERS: Mapping[str, Provider] = {one.name: one for one in (OPENAI, ANTHROPIC, COMPATIBLE)}


def provider_of(model: str) -> Provider | None:
    """The provider that a model's name names, if it names one."""
    provider, slash, _ = model.partition("/")
    return PROVIDERS.get(provider) if slash else None


def checked_url(url: str, where: str) -> str:
    """The address as it is.

    Raises:
        UserError: it is none, or it holds what does not belong into settings.
    """
    try:
        parts = urlsplit(url)
        host, named = parts.hostname, parts.username is not None or parts.password is not None
    except ValueError as error:
        raise UserError(f"{where}: not an address: {error}") from error
    if named:
        raise UserError(
            f"{where}: an address with a user or password in it is not taken; name a key_env instead"
        )
    if parts.scheme not in {"http", "https"} or not host:
        raise UserError(f"{where} = '{url}': expected an address such as http://127.0.0.1:8000/v1")
    return url
