"""The record of a provider: the names of its models, the places of its key and address, and its connection."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dgm.config import ModelsSettings, ProviderSettings
from dgm.config.variables import Variable
from dgm.errors import UserError
from dgm.messages import WireProtocol
from dgm.models.extras import Extras, read_extras
from dgm.models.keys import read_key

if TYPE_CHECKING:
    from dgm.models.connections import Connection


@dataclass(frozen=True, slots=True)
class ConnectionInputs:
    """The inputs for opening a connection to one model."""

    provider: "Provider"
    model: str
    """The provider's own name of the model, without ``openai/``."""
    models: ModelsSettings
    base_url: str | None
    """Validated address; None: the provider's own."""

    @property
    def settings(self) -> ProviderSettings:
        """The settings of the provider."""
        return self.provider.settings(self.models)

    @property
    def key_variable(self) -> str:
        """Environment variable of the key."""
        return self.provider.key_variable(self.models)

    def address(self, default: str) -> tuple[str, str]:
        """Return the address without its query, and the query; the default if the settings name none."""
        url, _, query = (self.base_url or default).partition("?")
        return url.rstrip("/"), query

    def optional_key(self, *variables: str) -> tuple[str, str]:
        """Return the first key that is set, and its variable; empty strings if there is none.

        A variable that the settings name must be set.

        Raises:
            UserError: that variable is not set, or it holds characters that no key has.
        """
        if named := self.settings.key_env:
            return read_key(named), named
        for variable in variables:
            if os.environ.get(variable, "").strip():
                return read_key(variable), variable
        return "", ""

    def extras(self) -> Extras:
        """Return the additions of the settings to every request.

        Raises:
            UserError: an addition cannot be sent.
        """
        return read_extras(self.settings, f"models.{self.provider.section}")


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider of models."""

    name: str
    """Text before the slash in a model's name."""
    section: str
    """Its settings: ``models.<section>``."""
    key_env: str
    """Environment variable that holds the key unless the settings name another; empty: it has no key of its own."""
    url_env: str
    """Environment variable of the address if the settings have none, as the provider's own package names it.

    Empty: there is none.
    """
    settings: Callable[[ModelsSettings], ProviderSettings]
    """Getter of its section of the settings."""
    protocol: Callable[[str, ModelsSettings], WireProtocol]
    """The protocol for one of its models, by the model's own name."""
    connect: Callable[[ConnectionInputs], "Connection"]
    """Opener of a connection; sends no request. Raises UserError if a key, an address or a package is missing."""
    key_is_optional: bool = False
    """Whether the provider also works without a key in ``key_env``."""
    is_cloud: bool = False
    """Whether ``dgm doctor`` is silent about a key that is not set, because only the cloud's users have one."""
    own_names: str = ""
    """Regular expression for the beginning of its own model names, to guess a provider left out; empty: no guess."""
    stored_by_default: Mapping[WireProtocol, Mapping[str, object]] = field(default_factory=dict)
    """Protocol → body keys that keep an account from storing every answer.

    A server that may not know the keys has none.
    """
    variables: Sequence[Variable] = ()
    """The environment variables that ``dgm settings`` lists for it."""
    forms: str = ""
    """Regular expression for its names of models that answer by a JSON schema, as it documents; empty: none known."""

    def takes_form(self, models: ModelsSettings, own_name: str) -> bool:
        """Return whether a model may be asked to answer by a JSON schema: by the settings, else as documented."""
        said = self.settings(models).answer_schema
        if isinstance(said, bool):
            return said
        documented = bool(self.forms) and re.match(self.forms, own_name) is not None
        return said.get(own_name, documented)

    def key_variable(self, models: ModelsSettings) -> str:
        """Return the name of the environment variable that holds its key."""
        return self.settings(models).key_env or self.key_env

    def base_url(self, models: ModelsSettings, environment: Mapping[str, str]) -> str | None:
        """Return the address of its API; None is the provider's own.

        Raises:
            UserError: it is no address, or it holds a password.
        """
        if url := self.settings(models).base_url:
            return check_url(url, f"models.{self.section}.base_url")
        url = environment.get(self.url_env, "").strip() if self.url_env else ""
        return check_url(url, self.url_env) if url else None


def check_url(url: str, where: str) -> str:
    """Return the address unchanged.

    Raises:
        UserError: it is no address, or it holds something that does not belong in settings.
    """
    try:
        parts = urlsplit(url)
        host, named = parts.hostname, parts.username is not None or parts.password is not None
        _ = parts.port
    except ValueError as error:
        raise UserError(f"{where}: not an address: {error}") from error
    if named:
        raise UserError(
            f"{where}: an address with a user or password in it is not taken; name a key_env instead"
        )
    if parts.scheme not in {"http", "https"} or not host:
        raise UserError(f"{where} = '{url}': expected an address such as http://127.0.0.1:8000/v1")
    return url
