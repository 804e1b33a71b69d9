"""OpenAI, through its Responses or Chat Completions protocol."""

from typing import TYPE_CHECKING

from dgm.config import ModelsSettings, ProviderSettings
from dgm.config.variables import Variable
from dgm.errors import UserError
from dgm.messages import WireProtocol
from dgm.models.http_client import open_http_client, timeout_of
from dgm.models.keys import read_key
from dgm.models.provider import ConnectionInputs, Provider

if TYPE_CHECKING:
    import openai

    from dgm.models.connections import Connection
    from dgm.models.extras import Extras

_ADDRESS = "https://api.openai.com/v1"
FORMS = r"gpt-(4o(?!-2024-05-13|-(audio|realtime))|4\.1|[5-9])|o1(?!-(mini|preview))\b|o[34]\b"
"""Models that answer by a JSON schema: those since gpt-4o-2024-08-06."""
CHAT_UNSTORED = {WireProtocol.CHAT: {"store": False}}
"""Body keys for accounts that keep every answer of Chat Completions unless told not to."""


def open_client(settings: ProviderSettings, url: str, key: str, extras: "Extras") -> "openai.AsyncOpenAI":
    """Return OpenAI's client for an address; it does not retry."""
    import openai

    return openai.AsyncOpenAI(
        api_key=key,
        base_url=url,
        max_retries=0,
        timeout=timeout_of(settings),
        http_client=open_http_client(settings, url, extras.headers),
    )


def protocol_of(settings: ProviderSettings, default: WireProtocol) -> WireProtocol:
    """Return the protocol that the setting ``api`` names."""
    return WireProtocol(settings.api) if settings.api else default


def _protocol(_model: str, models: ModelsSettings) -> WireProtocol:
    return protocol_of(models.openai, WireProtocol.RESPONSES)


def _connect(opening: ConnectionInputs) -> "Connection":
    from dgm.models.connections import Route, VendorConnection, openai_send

    if opening.settings.api == "messages":
        raise UserError("models.openai.api = 'messages': OpenAI speaks 'responses' and 'chat'")
    key = read_key(opening.key_variable)
    url, query = opening.address(_ADDRESS)
    extras = opening.extras()
    client = open_client(opening.settings, url, key, extras)
    route = Route(query=query, key_env=opening.key_variable, secrets=(key,), extras=extras)
    return VendorConnection(
        _protocol(opening.model, opening.models), url, openai_send(client), client.close, route
    )


OPENAI = Provider(
    "openai",
    "openai",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    lambda models: models.openai,
    _protocol,
    _connect,
    own_names=r"(gpt|chatgpt|codex|o\d)\b",
    stored_by_default=CHAT_UNSTORED,
    forms=FORMS,
    variables=(
        Variable("OPENAI_API_KEY", "Key for openai/… models; models.openai.key_env names another variable."),
        Variable("OPENAI_BASE_URL", "Address of OpenAI's API, where models.openai.base_url does not say it."),
    ),
)
