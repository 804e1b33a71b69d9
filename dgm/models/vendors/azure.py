"""Models at Microsoft Azure: OpenAI's and others through deployments, Anthropic's through Foundry.

Without an ``api_version``, requests for OpenAI's models use the version-free API below ``/openai/v1``.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from dgm.config import ModelsSettings
from dgm.config.variables import Variable
from dgm.errors import UserError
from dgm.messages import WireProtocol
from dgm.models.http_client import open_http_client, timeout_of
from dgm.models.provider import ConnectionInputs, Provider, check_url
from dgm.models.vendors import compatible
from dgm.models.vendors.openai import CHAT_UNSTORED, protocol_of

if TYPE_CHECKING:
    from dgm.models.connections import Connection

_TOKEN = "AZURE_OPENAI_AD_TOKEN"
_FOUNDRY_KEY = "ANTHROPIC_FOUNDRY_API_KEY"
_FOUNDRY_URL = "ANTHROPIC_FOUNDRY_BASE_URL"
_FOUNDRY_RESOURCE = "ANTHROPIC_FOUNDRY_RESOURCE"
_VERSION = "api-version"


def _protocol(model: str, models: ModelsSettings) -> WireProtocol:
    messages = "claude" in model.lower()
    return protocol_of(models.azure, WireProtocol.MESSAGES if messages else WireProtocol.CHAT)


def _connect(opening: ConnectionInputs) -> "Connection":
    if _protocol(opening.model, opening.models) is WireProtocol.MESSAGES:
        return _connect_foundry(opening)
    if opening.base_url is None:
        raise UserError(
            f"model '{AZURE.name}/{opening.model}': models.azure.base_url is not set; give the resource's address, "
            "for example https://my-resource.openai.azure.com (or set AZURE_OPENAI_ENDPOINT)"
        )
    root, query = _parse_resource(opening.base_url)
    version = opening.models.azure.api_version or query.get(_VERSION) or os.environ.get("OPENAI_API_VERSION")
    version_free = urlsplit(opening.base_url).path.rstrip("/").endswith("/openai/v1")
    if version and not version_free:
        return _connect_versioned(opening, root, version, query)
    return _connect_version_free(opening, f"{root}/openai/v1", query)


def _connect_version_free(opening: ConnectionInputs, url: str, query: Mapping[str, str]) -> "Connection":
    from dgm.models.connections import Route, VendorConnection, openai_send

    key, variable = _require_key(opening, AZURE.key_env, _TOKEN)
    extras = opening.extras()
    client = compatible.open_client(opening.settings, url, key, extras)
    route = Route(query=urlencode(query), list_path="", key_env=variable, secrets=(key,), extras=extras)
    protocol = _protocol(opening.model, opening.models)
    return VendorConnection(protocol, url, openai_send(client), client.close, route)


def _connect_versioned(
    opening: ConnectionInputs, root: str, version: str, query: Mapping[str, str]
) -> "Connection":
    import openai

    from dgm.models.connections import Route, VendorConnection, openai_send

    key, variable = _require_key(opening, AZURE.key_env, _TOKEN)
    extras = opening.extras()
    client = openai.AsyncAzureOpenAI(
        azure_endpoint=root,
        api_version=version,
        api_key=None if variable == _TOKEN else key,
        azure_ad_token=key if variable == _TOKEN else None,
        default_query={name: value for name, value in query.items() if name != _VERSION},
        max_retries=0,
        timeout=timeout_of(opening.settings),
        http_client=open_http_client(opening.settings, root, extras.headers),
    )
    client.organization = client.project = client.admin_api_key = None
    route = Route(list_path="", key_env=variable, secrets=(key,), extras=extras)
    protocol = _protocol(opening.model, opening.models)
    # The client reads the deployment's name from the body and removes it.
    send = openai_send(client, encoded=False)
    return VendorConnection(protocol, str(client.base_url), send, client.close, route)


def _connect_foundry(opening: ConnectionInputs) -> "Connection":
    import anthropic

    from dgm.models.connections import Route, VendorConnection, anthropic_send
    from dgm.models.vendors.anthropic import VERSION

    url, query = _foundry_address(opening)
    key, variable = _require_key(opening, _FOUNDRY_KEY, AZURE.key_env)
    extras = opening.extras()
    client = anthropic.AsyncAnthropicFoundry(
        base_url=url,
        api_key=key,
        max_retries=0,
        timeout=timeout_of(opening.settings),
        open_telemetry=False,
        http_client=open_http_client(opening.settings, url, extras.headers),
    )
    route = Route(prefix=VERSION, query=query, list_path="", key_env=variable, secrets=(key,), extras=extras)
    return VendorConnection(WireProtocol.MESSAGES, url, anthropic_send(client), client.close, route)


def _foundry_address(opening: ConnectionInputs) -> tuple[str, str]:
    given = opening.settings.base_url or os.environ.get(_FOUNDRY_URL, "").strip()
    resource = os.environ.get(_FOUNDRY_RESOURCE, "").strip()
    if not given and not resource:
        raise UserError(
            f"model '{AZURE.name}/{opening.model}': models.azure.base_url is not set; give the resource's address, for "
            f"example https://my-resource.services.ai.azure.com (or set {_FOUNDRY_RESOURCE})"
        )
    where = "models.azure.base_url" if opening.settings.base_url else _FOUNDRY_URL
    url = check_url(given or f"https://{resource}.services.ai.azure.com", where)
    address, _, query = url.partition("?")
    address = address.rstrip("/").removesuffix("/v1/messages").removesuffix("/v1")
    return address if urlsplit(address).path.endswith("/anthropic") else f"{address}/anthropic", query


def _require_key(opening: ConnectionInputs, *variables: str) -> tuple[str, str]:
    key, variable = opening.optional_key(*variables)
    if not key:
        raise UserError(
            f"{variables[0]} is not set: put the key of the Azure resource into it (export {variables[0]}=...)"
        )
    return key, variable


def _parse_resource(url: str) -> tuple[str, Mapping[str, str]]:
    """Return the resource's address and the query, from any of its addresses."""
    parts = urlsplit(url)
    path = parts.path.partition("/openai")[0].rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}", dict(parse_qsl(parts.query))


AZURE = Provider(
    "azure",
    "azure",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_ENDPOINT",
    lambda models: models.azure,
    _protocol,
    _connect,
    is_cloud=True,
    stored_by_default=CHAT_UNSTORED,
    variables=(
        Variable(
            "OPENAI_API_VERSION", "Version of Azure's API, where models.azure.api_version does not say it."
        ),
    ),
)
