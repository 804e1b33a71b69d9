"""Servers that speak OpenAI's Chat Completions: vLLM, Ollama, llama.cpp, OpenRouter, LiteLLM's proxy …."""

import os
from typing import TYPE_CHECKING

from dgm.config import ModelsSettings, ProviderSettings
from dgm.config.variables import Variable
from dgm.errors import UserError
from dgm.messages import WireProtocol
from dgm.models.http_client import open_http_client, timeout_of
from dgm.models.provider import ConnectionInputs, Provider

if TYPE_CHECKING:
    import openai

    from dgm.models.connections import Connection
    from dgm.models.extras import Extras

NO_KEY = "none"
"""Key for a server that asks for none: the package refuses to send no key."""


def open_client(settings: ProviderSettings, url: str, key: str, extras: "Extras") -> "openai.AsyncOpenAI":
    """Return OpenAI's client for a server that is not OpenAI's; none of OpenAI's own credentials go there."""
    import openai

    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    for_openai = [line.partition(":")[0].strip() for line in lines if ":" in line]
    client = openai.AsyncOpenAI(
        api_key=key or NO_KEY,
        base_url=url,
        max_retries=0,
        timeout=timeout_of(settings),
        # The package reads these from the environment, where they are meant for OpenAI.
        default_headers=dict.fromkeys(for_openai, openai.Omit()),  # type: ignore[arg-type]  # as the package's own
        http_client=open_http_client(settings, url, extras.headers),
    )
    client.organization = client.project = client.admin_api_key = None
    return client


def _protocol(_model: str, _models: ModelsSettings) -> WireProtocol:
    return WireProtocol.CHAT


def _connect(opening: ConnectionInputs) -> "Connection":
    from dgm.models.connections import Route, VendorConnection, openai_send

    if opening.base_url is None:
        raise UserError(
            f"model '{COMPATIBLE.name}/{opening.model}': models.compatible.base_url is not set; give the server's "
            "address, for example --set models.compatible.base_url=http://127.0.0.1:8000/v1"
        )
    key, variable = opening.optional_key(COMPATIBLE.key_env)
    url, query = opening.address("")
    extras = opening.extras()
    client = open_client(opening.settings, url, key, extras)
    route = Route(query=query, key_env=variable, secrets=(key,) if key else (), extras=extras)
    return VendorConnection(WireProtocol.CHAT, url, openai_send(client), client.close, route)


COMPATIBLE = Provider(
    "openai-compatible",
    "compatible",
    "OPENAI_COMPATIBLE_API_KEY",
    "",
    lambda models: models.compatible,
    _protocol,
    _connect,
    key_is_optional=True,
    variables=(
        Variable(
            "OPENAI_COMPATIBLE_API_KEY", "Key for openai-compatible/… models, where the server wants one."
        ),
    ),
)
