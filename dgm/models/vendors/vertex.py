"""Models at Google Vertex AI: Anthropic's through its Messages protocol, Gemini and others through OpenAI's protocols.

Credentials are Google's Application Default Credentials; there is no key.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dgm.config import ModelsSettings
from dgm.config.variables import Variable
from dgm.errors import ProviderRefuses, UserError
from dgm.messages import JsonObject, WireProtocol
from dgm.models.http_client import open_http_client, timeout_of
from dgm.models.provider import ConnectionInputs, Provider, check_url
from dgm.models.vendors.openai import protocol_of
from dgm.models.vendors.packages import require_packages

if TYPE_CHECKING:
    from dgm.models.connections import Connection, Send

_PROJECTS = ("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID")
_REGIONS = ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION")
_ANTHROPIC_URL = "ANTHROPIC_VERTEX_BASE_URL"


def _protocol(model: str, models: ModelsSettings) -> WireProtocol:
    if model.startswith("claude"):
        default = WireProtocol.MESSAGES
    else:
        default = WireProtocol.RESPONSES if model.startswith("gpt") else WireProtocol.CHAT
    return protocol_of(models.vertex, default)


def _connect(opening: ConnectionInputs) -> "Connection":
    require_packages(("google.auth", "requests"), "vertex", f"{VERTEX.name}/{opening.model}")
    settings = opening.models.vertex
    project = _require_value(settings.project, _PROJECTS, "project", opening)
    region = _require_value(settings.region, _REGIONS, "region", opening)
    if _protocol(opening.model, opening.models) is WireProtocol.MESSAGES:
        return _connect_messages(opening, project, region)
    return _connect_openai(opening, project, region)


def _connect_messages(opening: ConnectionInputs, project: str, region: str) -> "Connection":
    import anthropic

    from dgm.models.connections import Route, VendorConnection, anthropic_send
    from dgm.models.vendors.anthropic import VERSION

    given = opening.base_url or os.environ.get(_ANTHROPIC_URL, "").strip()
    url = check_url(given, _ANTHROPIC_URL) if given else None
    extras = opening.extras()
    client = anthropic.AsyncAnthropicVertex(
        project_id=project,
        region=region,
        base_url=url,
        max_retries=0,
        timeout=timeout_of(opening.settings),
        open_telemetry=False,
        http_client=open_http_client(opening.settings, url or _host_url(region), extras.headers),
    )
    route = Route(prefix=VERSION, list_path="", extras=extras)
    # The client reads the model from the body and removes it.
    send = _with_credentials(anthropic_send(client, encoded=False))
    return VendorConnection(WireProtocol.MESSAGES, str(client.base_url), send, client.close, route)


def _connect_openai(opening: ConnectionInputs, project: str, region: str) -> "Connection":
    import openai
    from openai.providers import vertex

    from dgm.models.connections import Route, VendorConnection, openai_send

    protocol = _protocol(opening.model, opening.models)
    below = "publishers/openai/v1" if protocol is WireProtocol.RESPONSES else "endpoints/openapi"
    default = f"{_host_url(region)}/v1/projects/{project}/locations/{region}/{below}"
    url = opening.base_url or default
    extras = opening.extras()
    try:
        client = openai.AsyncOpenAI(
            provider=vertex(base_url=url),
            max_retries=0,
            timeout=timeout_of(opening.settings),
            http_client=open_http_client(opening.settings, url, extras.headers),
        )
    except openai.OpenAIError as error:
        raise UserError(f"models.vertex.base_url: {error}") from error
    route = Route(list_path="", extras=extras)
    return VendorConnection(protocol, url, _with_credentials(openai_send(client)), client.close, route)


def _host_url(region: str) -> str:
    return f"https://{'' if region == 'global' else f'{region}-'}aiplatform.googleapis.com"


def _require_value(
    setting: str | None, variables: tuple[str, ...], name: str, opening: ConnectionInputs
) -> str:
    value = setting or next((os.environ[one].strip() for one in variables if os.environ.get(one)), "")
    if not value:
        raise UserError(
            f"model '{VERTEX.name}/{opening.model}': models.vertex.{name} is not set (nor {' or '.join(variables)})"
        )
    return value


def _with_credentials(send: "Send") -> "Send":
    import httpx2
    from google.auth.exceptions import GoogleAuthError, TransportError

    async def send_authenticated(
        path: str, body: JsonObject | None, headers: Mapping[str, str]
    ) -> httpx2.Response:
        try:
            return await send(path, body, headers)
        except TransportError as error:
            raise httpx2.ConnectError(f"Google credentials could not be renewed: {error}") from error
        except GoogleAuthError as error:
            raise ProviderRefuses(f"Google credentials: {error}") from error

    return send_authenticated


VERTEX = Provider(
    "vertex",
    "vertex",
    "",
    "",
    lambda models: models.vertex,
    _protocol,
    _connect,
    key_is_optional=True,
    is_cloud=True,
    variables=(
        Variable(
            "GOOGLE_CLOUD_PROJECT", "Project of Vertex AI, where models.vertex.project does not say it."
        ),
        Variable("GOOGLE_CLOUD_LOCATION", "Region of Vertex AI, where models.vertex.region does not say it."),
    ),
)
