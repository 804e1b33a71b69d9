"""Models at Amazon Bedrock: Anthropic's through its Messages protocol, all others through OpenAI's protocols.

Credentials are AWS's own: a bearer token in ``AWS_BEARER_TOKEN_BEDROCK``, else the usual chain of environment, profile
and role.
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

_SECRETS = ("AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_OPENAI_URL = "AWS_BEDROCK_BASE_URL"
_ANTHROPIC_URL = "ANTHROPIC_BEDROCK_BASE_URL"


def _protocol(model: str, models: ModelsSettings) -> WireProtocol:
    messages = "anthropic." in model or "claude" in model
    return protocol_of(models.bedrock, WireProtocol.MESSAGES if messages else WireProtocol.CHAT)


def _connect(opening: ConnectionInputs) -> "Connection":
    require_packages(("botocore", "boto3"), "bedrock", f"{BEDROCK.name}/{opening.model}")
    from botocore.exceptions import BotoCoreError

    try:
        if _protocol(opening.model, opening.models) is WireProtocol.MESSAGES:
            return _connect_messages(opening)
        return _connect_openai(opening)
    except (BotoCoreError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"model '{BEDROCK.name}/{opening.model}': {error}") from error


def _connect_messages(opening: ConnectionInputs) -> "Connection":
    import anthropic

    from dgm.models.connections import Route, VendorConnection, anthropic_send
    from dgm.models.event_stream import as_server_sent_events
    from dgm.models.vendors.anthropic import VERSION

    settings = opening.models.bedrock
    url = _find_address(opening, _ANTHROPIC_URL)
    region = _find_region(opening)
    key, variable = opening.optional_key(BEDROCK.key_env)
    extras = opening.extras()
    client = anthropic.AsyncAnthropicBedrock(
        aws_region=region,
        aws_profile=settings.profile,
        api_key=key or None,
        base_url=url,
        max_retries=0,
        timeout=timeout_of(settings),
        open_telemetry=False,
        http_client=open_http_client(settings, url or _runtime_url(region), extras.headers),
    )
    route = Route(
        prefix=VERSION,
        read_reply=as_server_sent_events,
        list_path="",
        key_env=variable,
        secrets=_find_secrets(key),
        extras=extras,
    )
    # The client reads the model and ``stream`` from the body and removes them.
    send = _with_credentials(anthropic_send(client, encoded=False))
    return VendorConnection(WireProtocol.MESSAGES, str(client.base_url), send, client.close, route)


def _connect_openai(opening: ConnectionInputs) -> "Connection":
    import openai

    from dgm.models.connections import Route, VendorConnection, openai_send

    settings = opening.models.bedrock
    url = _find_address(opening, _OPENAI_URL)
    region = _find_region(opening)
    key, variable = opening.optional_key(BEDROCK.key_env)
    extras = opening.extras()
    try:
        client = openai.AsyncBedrockOpenAI(
            api_key=key or None,
            aws_region=region,
            aws_profile=None if key else settings.profile,
            base_url=url,
            max_retries=0,
            timeout=timeout_of(settings),
            http_client=open_http_client(settings, url or _mantle_url(region), extras.headers),
        )
    except openai.OpenAIError as error:
        raise UserError(f"model '{BEDROCK.name}/{opening.model}': {error}") from error
    route = Route(key_env=variable, secrets=_find_secrets(key), extras=extras)
    protocol = _protocol(opening.model, opening.models)
    return VendorConnection(
        protocol, str(client.base_url), _with_credentials(openai_send(client)), client.close, route
    )


def _find_region(opening: ConnectionInputs) -> str:
    settings = opening.models.bedrock
    region = settings.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        import boto3

        region = boto3.Session(profile_name=settings.profile).region_name
    if not region:
        raise UserError(
            f"model '{BEDROCK.name}/{opening.model}': no region: set models.bedrock.region, for example us-east-1 "
            "(or AWS_REGION)"
        )
    return str(region)


def _find_address(opening: ConnectionInputs, variable: str) -> str | None:
    given = opening.base_url or os.environ.get(variable, "").strip()
    return check_url(given, variable).rstrip("/") if given else None


def _runtime_url(region: str) -> str:
    return f"https://bedrock-runtime.{region}.amazonaws.com"


def _mantle_url(region: str) -> str:
    return f"https://bedrock-mantle.{region}.api.aws"


def _find_secrets(key: str) -> tuple[str, ...]:
    kept = [key, *(os.environ.get(name, "").strip() for name in _SECRETS)]
    return tuple(dict.fromkeys(secret for secret in kept if secret))


def _with_credentials(send: "Send") -> "Send":
    import httpx2
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

    async def send_signed(path: str, body: JsonObject | None, headers: Mapping[str, str]) -> httpx2.Response:
        try:
            return await send(path, body, headers)
        except HTTPClientError as error:
            raise httpx2.ConnectError(f"AWS credentials could not be renewed: {error}") from error
        except (BotoCoreError, ClientError) as error:
            raise ProviderRefuses(f"AWS credentials: {error}") from error
        except RuntimeError as error:
            if "credentials" not in str(error):
                raise
            raise ProviderRefuses(
                "no AWS credentials were found: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or models.bedrock.profile"
            ) from error

    return send_signed


BEDROCK = Provider(
    "bedrock",
    "bedrock",
    "AWS_BEARER_TOKEN_BEDROCK",
    "",
    lambda models: models.bedrock,
    _protocol,
    _connect,
    key_is_optional=True,
    is_cloud=True,
    variables=(
        Variable("AWS_REGION", "Region of Amazon Bedrock, where models.bedrock.region does not say it."),
        Variable(
            "AWS_PROFILE", "Profile of AWS's credentials, where models.bedrock.profile does not say it."
        ),
    ),
)
