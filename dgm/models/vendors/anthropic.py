"""Anthropic, through its Messages protocol."""

from typing import TYPE_CHECKING

from dgm.config import ModelsSettings
from dgm.config.variables import Variable
from dgm.messages import WireProtocol
from dgm.models.http_client import open_http_client, timeout_of
from dgm.models.keys import read_key
from dgm.models.provider import ConnectionInputs, Provider

if TYPE_CHECKING:
    from dgm.models.connections import Connection

VERSION = "/v1"
"""Path below Anthropic's base URL, which is configured without it."""
_ADDRESS = "https://api.anthropic.com"


def _protocol(_model: str, _models: ModelsSettings) -> WireProtocol:
    return WireProtocol.MESSAGES


def _connect(opening: ConnectionInputs) -> "Connection":
    import anthropic

    from dgm.models.connections import Route, VendorConnection, anthropic_send

    key = read_key(opening.key_variable)
    address, query = opening.address(_ADDRESS)
    url = address.removesuffix(VERSION)
    extras = opening.extras()
    client = anthropic.AsyncAnthropic(
        api_key=key,
        base_url=url,
        max_retries=0,
        timeout=timeout_of(opening.settings),
        open_telemetry=False,
        http_client=open_http_client(opening.settings, url, extras.headers),
    )
    route = Route(
        prefix=VERSION,
        query=query,
        list_path="/models?limit=1000",
        key_env=opening.key_variable,
        secrets=(key,),
        extras=extras,
    )
    return VendorConnection(WireProtocol.MESSAGES, url, anthropic_send(client), client.close, route)


ANTHROPIC = Provider(
    "anthropic",
    "anthropic",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    lambda models: models.anthropic,
    _protocol,
    _connect,
    own_names=r"claude\b",
    forms=r"claude-(opus|sonnet|haiku)-(4-[5-9]\b|[5-9])|claude-fable-",
    variables=(
        Variable(
            "ANTHROPIC_API_KEY",
            "Key for anthropic/… models; models.anthropic.key_env names another variable.",
        ),
        Variable(
            "ANTHROPIC_BASE_URL",
            "Address of Anthropic's API, where models.anthropic.base_url does not say it.",
        ),
    ),
)
