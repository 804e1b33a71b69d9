"""The providers that dgm supports: a table of addresses, keys, protocols and signing by kind.

A provider of a run is a row of the table, a name and the settings ``providers.<name>``.
"""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from dgm.config import ProviderSettings, Settings
from dgm.config.listing import OWN_VARIABLES, SYSTEM_VARIABLES, Variable
from dgm.errors import ProviderRefuses, UserError
from dgm.messages import WireProtocol
from dgm.models.addresses import check_url
from dgm.models.connections import Authentication, Connection, ConnectionPlan
from dgm.models.extras import read_extras
from dgm.models.keys import read_key

CHAT, RESPONSES, MESSAGES = WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.MESSAGES
CHAT_UNSTORED = {CHAT: {"store": False}}
"""Body keys for accounts that keep every answer of Chat Completions unless told not to."""


@dataclass(frozen=True, slots=True)
class Route:
    """How one kind of a provider's models is reached."""

    protocol: WireProtocol
    address: str = ""
    """The provider's own address, with ``{region}``, ``{host}`` and ``{project}``; empty: the settings name it."""
    models: str = ""
    """Regular expression of the models' names; empty: all."""
    list_path: str = "/models"
    """Path of the list of models; empty: there is no list of usable models."""
    keys: tuple[str, ...] = ()
    """Environment variables that hold its key, beside that of the provider."""


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """One kind of providers."""

    name: str
    """Its ``kind`` in the settings, and the name of the provider of this kind that needs none."""
    key_env: str
    """Environment variable that holds the key unless the settings name another; empty: it has no key of its own."""
    url_env: str
    """Environment variable of the address if the settings have none, as its own package names it; empty: none."""
    routes: tuple[Route, ...]
    """The first that fits a model's name is the default; the setting ``api`` chooses another one."""
    key_is_optional: bool = False
    """Whether the provider also works without a key in ``key_env``."""
    is_cloud: bool = False
    """Whether ``dgm doctor`` is silent about a key that is not set, because only the cloud's users have one."""
    is_vendor: bool = False
    """Whether the packages' own variables of the environment are meant for it."""
    own_names: str = ""
    """Regular expression for the beginning of its own model names, to guess a provider left out; empty: no guess."""
    forms: str = ""
    """Regular expression for its names of models that answer by a JSON schema, as it documents; empty: none known."""
    stored_by_default: Mapping[WireProtocol, Mapping[str, object]] = field(default_factory=dict)
    """Protocol → body keys that keep an account from storing every answer; none where a server may not know them."""


OPENAI = ProviderKind(
    "openai",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    (Route(RESPONSES, "https://api.openai.com/v1"), Route(CHAT, "https://api.openai.com/v1")),
    is_vendor=True,
    own_names=r"(gpt|chatgpt|codex|o\d)\b",
    forms=r"gpt-(4o(?!-2024-05-13|-(audio|realtime))|4\.1|[5-9])|o1(?!-(mini|preview))\b|o[34]\b",
    stored_by_default=CHAT_UNSTORED,
)
ANTHROPIC = ProviderKind(
    "anthropic",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    (Route(MESSAGES, "https://api.anthropic.com", list_path="/models?limit=1000"),),
    is_vendor=True,
    own_names=r"claude\b",
    forms=r"claude-(opus|sonnet|haiku)-(4-[5-9]\b|[5-9])|claude-fable-",
)
COMPATIBLE = ProviderKind(
    "openai-compatible", "OPENAI_COMPATIBLE_API_KEY", "", (Route(CHAT),), key_is_optional=True
)
AZURE = ProviderKind(
    "azure",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_ENDPOINT",
    (
        Route(MESSAGES, models="claude", list_path="", keys=("ANTHROPIC_FOUNDRY_API_KEY",)),
        Route(CHAT, list_path="", keys=("AZURE_OPENAI_AD_TOKEN",)),
        Route(RESPONSES, list_path="", keys=("AZURE_OPENAI_AD_TOKEN",)),
    ),
    is_cloud=True,
    stored_by_default=CHAT_UNSTORED,
)
BEDROCK = ProviderKind(
    "bedrock",
    "AWS_BEARER_TOKEN_BEDROCK",
    "",
    (
        Route(MESSAGES, "https://bedrock-mantle.{region}.api.aws/anthropic", r"anthropic\.|claude", ""),
        Route(CHAT, "https://bedrock-mantle.{region}.api.aws/openai/v1"),
        Route(RESPONSES, "https://bedrock-mantle.{region}.api.aws/openai/v1"),
    ),
    key_is_optional=True,
    is_cloud=True,
)
_VERTEX = "https://{host}aiplatform.googleapis.com/v1/projects/{project}/locations/{region}"
VERTEX = ProviderKind(
    "vertex",
    "",
    "",
    (
        Route(MESSAGES, _VERTEX, "^claude", ""),
        Route(RESPONSES, f"{_VERTEX}/publishers/openai/v1", "^gpt", ""),
        Route(CHAT, f"{_VERTEX}/endpoints/openapi", list_path=""),
    ),
    key_is_optional=True,
    is_cloud=True,
)
PROVIDER_KINDS: Mapping[str, ProviderKind] = {
    kind.name: kind for kind in (OPENAI, ANTHROPIC, COMPATIBLE, AZURE, BEDROCK, VERTEX)
}

_CLOUD_VARIABLES = (
    Variable("AWS_REGION", "Region of Amazon Bedrock, where providers.bedrock.region does not say it."),
    Variable("AWS_PROFILE", "Profile of AWS's credentials."),
    Variable("GOOGLE_CLOUD_PROJECT", "Project of Vertex AI, where providers.vertex.project does not say it."),
    Variable("GOOGLE_CLOUD_LOCATION", "Region of Vertex AI, where providers.vertex.region does not say it."),
)
_RESPONSES_ONLY = re.compile(r"codex|-pro\b|deep-research|computer-use")
"""Names of OpenAI's models that Chat Completions does not serve."""
_OWN = ("base_url", "key_env", "extra_headers", "extra_body", "project")
"""Settings that determine where requests go, and which variables of the environment go with them."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider of a run."""

    name: str
    """Text before the slash in a model's name."""
    kind: ProviderKind
    settings: ProviderSettings

    @property
    def section(self) -> str:
        """The name of its settings."""
        return f"providers.{self.name}"

    @property
    def key_env(self) -> str:
        """The environment variable that holds its key; empty: none.

        A compatible server with a name of its own gets no other server's key.
        """
        shared = self.kind is not COMPATIBLE or self.name == COMPATIBLE.name
        return self.settings.key_env or (self.kind.key_env if shared else "")

    def route(self, own_name: str) -> Route:
        """Return the route to a model, by the setting ``api`` where there is a choice, or else by the model's own name.

        Raises:
            UserError: the provider does not speak the protocol that ``api`` names.
        """
        api, routes = self.settings.api, self.kind.routes
        if api is None or len(routes) == 1:
            return next(route for route in routes if re.search(route.models, own_name, re.IGNORECASE))
        for route in routes:
            if route.protocol == api:
                return route
        spoken = " and ".join(f"'{route.protocol}'" for route in routes)
        raise UserError(f"{self.section}.api = '{api}': {self.name} speaks {spoken}")

    def takes_form(self, own_name: str) -> bool:
        """Return whether a model may be asked to answer by a JSON schema: by the settings, else as documented."""
        wanted, forms = self.settings.answer_schema, self.kind.forms
        if isinstance(wanted, bool):
            return wanted
        return wanted.get(own_name, bool(forms) and re.match(forms, own_name) is not None)

    def base_url(self, environment: Mapping[str, str] = os.environ) -> str | None:
        """Return the address of its API; None is the provider's own.

        Raises:
            UserError: it is no address, or it holds a password.
        """
        if url := self.settings.base_url:
            return check_url(url, f"{self.section}.base_url")
        url = environment.get(self.kind.url_env, "").strip() if self.kind.url_env else ""
        return check_url(url, self.kind.url_env) if url else None


def providers_of(settings: Settings) -> Mapping[str, Provider]:
    """Return name → provider: one of each kind, and those of the user's own names."""
    usual = ProviderSettings()
    rows = {
        name: Provider(name, kind, settings.providers.get(name, usual))
        for name, kind in PROVIDER_KINDS.items()
    }
    return rows | {
        name: Provider(name, PROVIDER_KINDS[one.kind], one)
        for name, one in settings.providers.items()
        if one.kind and name not in rows
    }


def provider_of(settings: Settings, model: str) -> Provider | None:
    """Return the provider in a model's name, or None."""
    name, slash, _ = model.partition("/")
    return providers_of(settings).get(name) if slash else None


def all_variables() -> Sequence[Variable]:
    """Return the environment variables that dgm reads; of the providers', first keys, then addresses, then others."""
    kinds = [kind for kind in PROVIDER_KINDS.values() if kind.key_env]
    keys = [
        Variable(
            kind.key_env,
            f"Key for {kind.name}/… models; providers.{kind.name}.key_env names another variable.",
        )
        for kind in kinds
    ]
    addresses = [
        Variable(kind.url_env, f"Address for {kind.name}/… models, where the settings have no base_url.")
        for kind in kinds
        if kind.url_env
    ]
    return (*OWN_VARIABLES, *keys, *addresses, *_CLOUD_VARIABLES, *SYSTEM_VARIABLES)


def without_addresses(settings: Settings) -> Settings:
    """Return the settings of a stranger's run without addresses that would receive this machine's secrets."""
    usual = {name: ProviderSettings.model_fields[name].default for name in _OWN}
    kept = {name: one.model_copy(update=usual) for name, one in settings.providers.items()}
    return settings.model_copy(update={"providers": kept})


def open_connection(provider: Provider, own_name: str) -> Connection:
    """Open a connection to one model; send no request.

    Args:
        provider: of the model.
        own_name: the provider's own name of the model, without ``openai/``.

    Raises:
        UserError: a key, an address, a package or a setting is missing or wrong; the message says what to do.
    """
    kind, route, model = provider.kind, provider.route(own_name), f"{provider.name}/{own_name}"
    own_address = provider.base_url()
    if not (own_address or route.address):
        example = "https://my-resource.openai.azure.com" if kind is AZURE else "http://127.0.0.1:8000/v1"
        raise _missing(model, f"{provider.section}.base_url", example)
    key = variable = ""
    secrets: list[str] = []
    auth: Authentication | None = None
    places: Mapping[str, str] = {}
    if kind is VERTEX:
        auth, places = _open_vertex(provider, model)
    else:
        key, variable = _read_first_key(provider, route)
        secrets += [key] if key else []
    if kind is BEDROCK:
        signer, places = _open_bedrock(provider, model)
        auth = None if key else signer
        secrets += filter(None, map(_value_of, ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")))
    url, _, query = (own_address or route.address.format(**places)).partition("?")
    if kind is AZURE:
        parts = urlsplit(url)
        url = f"{parts.scheme}://{parts.netloc}/{'anthropic' if route.protocol is MESSAGES else 'openai/v1'}"
    elif kind is VERTEX and own_address and route.protocol is MESSAGES:
        url = f"{url.rstrip('/')}/projects/{places['project']}/locations/{places['region']}"
    url = url.rstrip("/").removesuffix("/v1") if route.protocol is MESSAGES else url.rstrip("/")
    follows_agent = kind is OPENAI and not provider.settings.api and not _RESPONSES_ONLY.search(own_name)
    plan = ConnectionPlan(
        route.protocol,
        url,
        query,
        key,
        variable,
        "x-api-key" if kind is AZURE and route.protocol is MESSAGES else "",
        tuple(secrets),
        route.list_path,
        auth,
        is_vendor=kind.is_vendor,
        is_vertex=kind is VERTEX and route.protocol is MESSAGES,
        extras=read_extras(provider.settings, provider.section),
        also=(CHAT,) if follows_agent else (),
    )
    return Connection(plan, provider.settings)


def _open_bedrock(provider: Provider, model: str) -> tuple[Authentication, Mapping[str, str]]:
    require_packages(("botocore", "boto3"), "bedrock", model)
    region = provider.settings.region or _value_of("AWS_REGION", "AWS_DEFAULT_REGION")
    signer = AwsSigner(region)
    if not signer.region:
        raise _missing(model, f"{provider.section}.region (or AWS_REGION)", "us-east-1")
    return signer, {"region": signer.region}


def _open_vertex(provider: Provider, model: str) -> tuple[Authentication, Mapping[str, str]]:
    require_packages(("google.auth", "requests"), "vertex", model)
    settings, section = provider.settings, provider.section
    if not (project := settings.project or _value_of("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID")):
        raise _missing(model, f"{section}.project (or GOOGLE_CLOUD_PROJECT)", "my-project")
    if not (region := settings.region or _value_of("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION")):
        raise _missing(model, f"{section}.region (or GOOGLE_CLOUD_LOCATION)", "global")
    host = "" if region == "global" else f"{region}-"
    return GoogleToken(), {"project": project, "region": region, "host": host}


def _missing(model: str, setting: str, example: str) -> UserError:
    return UserError(
        f"model '{model}': {setting} is not set; for example {setting.partition(' ')[0]}={example}"
    )


def _value_of(*variables: str) -> str:
    return next((value for name in variables if (value := os.environ.get(name, "").strip())), "")


def _read_first_key(provider: Provider, route: Route) -> tuple[str, str]:
    """Return the first key that is set, and its variable; empty strings if there is none and none is needed."""
    if provider.settings.key_env:
        return read_key(provider.settings.key_env), provider.settings.key_env
    for variable in filter(None, (*route.keys, provider.key_env)):
        if _value_of(variable):
            return read_key(variable), variable
    if provider.kind.key_is_optional:
        return "", ""
    return read_key(provider.key_env), provider.key_env  # raises


_NO_AWS = (
    "no AWS credentials were found: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "or AWS_PROFILE"
)


def require_packages(modules: tuple[str, ...], extra: str, model: str) -> None:
    """Check that the packages of an extra are installed, without importing them.

    Raises:
        UserError: one is missing.
    """
    for module in modules:
        try:
            installed = find_spec(module) is not None
        except ModuleNotFoundError:
            installed = False
        if not installed:
            raise UserError(f"model '{model}' needs the package {module}: pip install 'dgm[{extra}]'")


class AwsSigner:
    """Signs requests for Amazon Bedrock (SigV4) with the credentials of AWS's usual chain.

    Args:
        region: empty: that of the AWS profile, if it has one.

    Raises:
        UserError: there is no such profile.
    """

    def __init__(self, region: str) -> None:
        import boto3
        from botocore.exceptions import BotoCoreError

        try:
            self._session = boto3.Session(region_name=region or None)
        except BotoCoreError as error:
            raise UserError(f"AWS_PROFILE: {error}") from error
        self.region = str(self._session.region_name or "")

    async def headers(self, url: str, headers: Mapping[str, str], content: bytes) -> Mapping[str, str]:
        """Return the signature; a request without content is a GET."""
        return await asyncio.to_thread(self._sign, url, headers, content)

    def _sign(self, url: str, headers: Mapping[str, str], content: bytes) -> Mapping[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        host = urlsplit(url).netloc
        service = "bedrock" if host.startswith("bedrock-runtime") else "bedrock-mantle"
        unsigned = {"host": host, "content-type": headers["content-type"]}
        signed = AWSRequest("POST" if content else "GET", url, unsigned, content)
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise ProviderRefuses(_NO_AWS)
            SigV4Auth(credentials.get_frozen_credentials(), service, self.region).add_auth(signed)
        except HTTPClientError as error:
            raise ConnectionError(f"AWS credentials could not be renewed: {error}") from error
        except (BotoCoreError, ClientError) as error:
            raise ProviderRefuses(f"AWS credentials: {error}") from error
        return {name: str(value) for name, value in signed.headers.items()}


class GoogleToken:
    """Sends a token of Google's Application Default Credentials."""

    def __init__(self) -> None:
        self._credentials: Any = None

    async def headers(self, url: str, headers: Mapping[str, str], content: bytes) -> Mapping[str, str]:  # noqa: ARG002
        """Return the token, renewed if it has expired."""
        return {"authorization": f"Bearer {await asyncio.to_thread(self._token)}"}

    def _token(self) -> str:
        import google.auth
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.auth.transport.requests import Request

        try:
            if self._credentials is None:
                scopes = ["https://www.googleapis.com/auth/cloud-platform"]
                self._credentials, _ = google.auth.default(scopes=scopes)
            if not self._credentials.valid:
                self._credentials.refresh(Request())
        except TransportError as error:
            raise ConnectionError(f"Google credentials could not be renewed: {error}") from error
        except GoogleAuthError as error:
            raise ProviderRefuses(f"Google credentials: {error}") from error
        return str(self._credentials.token)
