"""The providers that dgm supports: a table of addresses, keys, protocols and signing.

A new one is a row here and a section of ``ModelsSettings``.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from dgm.config import AzureSettings, BedrockSettings, ModelsSettings, ProviderSettings, VertexSettings
from dgm.config.variables import OWN_VARIABLES, SYSTEM_VARIABLES, Variable
from dgm.errors import UserError
from dgm.messages import WireProtocol
from dgm.models.addresses import check_url
from dgm.models.connections import Connection, ConnectionPlan
from dgm.models.extras import read_extras
from dgm.models.keys import read_key

CHAT, RESPONSES, MESSAGES = WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.MESSAGES
CHAT_UNSTORED = {CHAT: {"store": False}}
"""Body keys for accounts that keep every answer of Chat Completions unless told not to."""
_AWS_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_AZURE_VERSION = "api-version"
_AZURE_TOKEN = "AZURE_OPENAI_AD_TOKEN"


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
class Provider:
    """One provider of models."""

    name: str
    """Text before the slash in a model's name."""
    section: str
    """Its settings: ``models.<section>``."""
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
    """Protocol → body keys that keep an account from storing every answer.

    A server that may not know the keys has none.
    """
    variables: tuple[Variable, ...] = ()
    """The environment variables that ``dgm settings`` lists for it."""

    def settings(self, models: ModelsSettings) -> ProviderSettings:
        """Return its section of the settings."""
        section: ProviderSettings = getattr(models, self.section)
        return section

    def route(self, models: ModelsSettings, own_name: str) -> Route:
        """Return the route to a model, by the setting ``api`` where there is a choice, or else by the model's own name.

        Raises:
            UserError: the provider does not speak the protocol that ``api`` names.
        """
        api = self.settings(models).api
        if api is None or len(self.routes) == 1:
            return next(route for route in self.routes if re.search(route.models, own_name, re.IGNORECASE))
        for route in self.routes:
            if route.protocol == api:
                return route
        spoken = " and ".join(f"'{route.protocol}'" for route in self.routes)
        raise UserError(f"models.{self.section}.api = '{api}': {self.name} speaks {spoken}")

    def takes_form(self, models: ModelsSettings, own_name: str) -> bool:
        """Return whether a model may be asked to answer by a JSON schema: by the settings, else as documented."""
        wanted = self.settings(models).answer_schema
        if isinstance(wanted, bool):
            return wanted
        documented = bool(self.forms) and re.match(self.forms, own_name) is not None
        return wanted.get(own_name, documented)

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


OPENAI = Provider(
    "openai",
    "openai",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    (Route(RESPONSES, "https://api.openai.com/v1"), Route(CHAT, "https://api.openai.com/v1")),
    is_vendor=True,
    own_names=r"(gpt|chatgpt|codex|o\d)\b",
    forms=r"gpt-(4o(?!-2024-05-13|-(audio|realtime))|4\.1|[5-9])|o1(?!-(mini|preview))\b|o[34]\b",
    stored_by_default=CHAT_UNSTORED,
    variables=(
        Variable("OPENAI_API_KEY", "Key for openai/… models; models.openai.key_env names another variable."),
        Variable("OPENAI_BASE_URL", "Address of OpenAI's API, where models.openai.base_url does not say it."),
    ),
)
ANTHROPIC = Provider(
    "anthropic",
    "anthropic",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    (Route(MESSAGES, "https://api.anthropic.com", list_path="/models?limit=1000"),),
    is_vendor=True,
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
COMPATIBLE = Provider(
    "openai-compatible",
    "compatible",
    "OPENAI_COMPATIBLE_API_KEY",
    "",
    (Route(CHAT),),
    key_is_optional=True,
    variables=(
        Variable(
            "OPENAI_COMPATIBLE_API_KEY", "Key for openai-compatible/… models, where the server wants one."
        ),
    ),
)
AZURE = Provider(
    "azure",
    "azure",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_ENDPOINT",
    (
        Route(MESSAGES, models="claude", list_path="", keys=("ANTHROPIC_FOUNDRY_API_KEY",)),
        Route(CHAT, list_path="", keys=(_AZURE_TOKEN,)),
        Route(RESPONSES, list_path="", keys=(_AZURE_TOKEN,)),
    ),
    is_cloud=True,
    stored_by_default=CHAT_UNSTORED,
    variables=(
        Variable(
            "OPENAI_API_VERSION", "Version of Azure's API, where models.azure.api_version does not say it."
        ),
    ),
)
BEDROCK = Provider(
    "bedrock",
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
    variables=(
        Variable("AWS_REGION", "Region of Amazon Bedrock, where models.bedrock.region does not say it."),
        Variable(
            "AWS_PROFILE", "Profile of AWS's credentials, where models.bedrock.profile does not say it."
        ),
    ),
)
_VERTEX = "https://{host}aiplatform.googleapis.com/v1/projects/{project}/locations/{region}"
VERTEX = Provider(
    "vertex",
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
    variables=(
        Variable(
            "GOOGLE_CLOUD_PROJECT", "Project of Vertex AI, where models.vertex.project does not say it."
        ),
        Variable("GOOGLE_CLOUD_LOCATION", "Region of Vertex AI, where models.vertex.region does not say it."),
    ),
)
PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider for provider in (OPENAI, ANTHROPIC, COMPATIBLE, AZURE, BEDROCK, VERTEX)
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


def open_connection(provider: Provider, models: ModelsSettings, own_name: str) -> Connection:
    """Open a connection to one model; send no request.

    Args:
        provider: of the model.
        models: settings of all providers.
        own_name: the provider's own name of the model, without ``openai/``.

    Raises:
        UserError: a key, an address, a package or a setting is missing or wrong; the message says what to do.
    """
    settings, route = provider.settings(models), provider.route(models, own_name)
    model = f"{provider.name}/{own_name}"
    address = provider.base_url(models, os.environ)
    if not address and not route.address:
        example = "https://my-resource.openai.azure.com" if provider is AZURE else "http://127.0.0.1:8000/v1"
        name = f"models.{provider.section}.base_url"
        raise UserError(
            f"model '{model}': {name} is not set; give the address, for example --set {name}={example}"
        )
    match settings:
        case BedrockSettings():
            return _open_bedrock(settings, route, model, address)
        case VertexSettings():
            return _open_vertex(settings, route, model, address)
    key, variable = _read_first_key(provider, settings, route)
    url, _, query = (address or route.address).partition("?")
    key_header = ""
    if isinstance(settings, AzureSettings):
        url, query = _find_azure_address(settings, route, own_name, url, query)
        bearer = url.endswith("/v1") or variable == _AZURE_TOKEN
        key_header = "x-api-key" if route.protocol is MESSAGES else "" if bearer else "api-key"
    url = url.rstrip("/").removesuffix("/v1") if route.protocol is MESSAGES else url.rstrip("/")
    plan = ConnectionPlan(
        route.protocol,
        url,
        query,
        key,
        variable,
        key_header,
        (key,) if key else (),
        route.list_path,
        is_vendor=provider.is_vendor,
        extras=read_extras(settings, f"models.{provider.section}"),
    )
    return Connection(plan, settings)


def _read_first_key(provider: Provider, settings: ProviderSettings, route: Route) -> tuple[str, str]:
    """Return the first key that is set, and its variable; empty strings if there is none and none is needed."""
    if settings.key_env:
        return read_key(settings.key_env), settings.key_env
    for variable in (*route.keys, provider.key_env):
        if os.environ.get(variable, "").strip():
            return read_key(variable), variable
    if provider.key_is_optional:
        return "", ""
    return read_key(provider.key_env), provider.key_env  # raises


def _find_azure_address(
    settings: AzureSettings, route: Route, own_name: str, url: str, query: str
) -> tuple[str, str]:
    """Return the API's address and query, from any address of the resource."""
    parts = urlsplit(url)
    root = f"{parts.scheme}://{parts.netloc}"
    if route.protocol is MESSAGES:
        return f"{root}/anthropic", query
    more = dict(parse_qsl(query))
    version = settings.api_version or more.pop(_AZURE_VERSION, None) or os.environ.get("OPENAI_API_VERSION")
    if not version or parts.path.rstrip("/").endswith("/openai/v1"):
        return f"{root}/openai/v1", query
    below = f"/deployments/{own_name}" if route.protocol is CHAT else ""
    return f"{root}/openai{below}", urlencode({_AZURE_VERSION: version, **more})


def _open_bedrock(settings: BedrockSettings, route: Route, model: str, address: str | None) -> Connection:
    from dgm.models.signing import AwsSigner, find_aws_region, require_packages

    require_packages(("botocore", "boto3"), "bedrock", model)
    region = settings.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    region = region or find_aws_region(settings.profile)
    if not region:
        raise UserError(
            f"model '{model}': no region: set models.bedrock.region, for example us-east-1 (or AWS_REGION)"
        )
    key, variable = _read_first_key(BEDROCK, settings, route)
    more = (os.environ.get(name, "").strip() for name in _AWS_SECRETS)
    plan = ConnectionPlan(
        route.protocol,
        (address or route.address.format(region=region)).rstrip("/"),
        key=key,
        key_env=variable,
        secrets=tuple(secret for secret in (key, *more) if secret),
        list_path=route.list_path,
        auth=None if key else AwsSigner(region, settings.profile),
        extras=read_extras(settings, "models.bedrock"),
    )
    return Connection(plan, settings)


def _open_vertex(settings: VertexSettings, route: Route, model: str, address: str | None) -> Connection:
    from dgm.models.signing import GoogleToken, require_packages

    require_packages(("google.auth", "requests"), "vertex", model)
    names = {
        "project": ("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"),
        "region": ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"),
    }
    values = {}
    for name, variables in names.items():
        values[name] = getattr(settings, name) or next(filter(None, map(os.environ.get, variables)), "")
        if not values[name]:
            missing = f"models.vertex.{name} is not set (nor {' or '.join(variables)})"
            raise UserError(f"model '{model}': {missing}")
    region = values["region"]
    usual = route.address.format(host="" if region == "global" else f"{region}-", **values)
    is_claude = route.protocol is MESSAGES
    if address and is_claude:
        address = f"{address.rstrip('/')}/projects/{values['project']}/locations/{region}"
    plan = ConnectionPlan(
        route.protocol,
        address or usual,
        list_path="",
        auth=GoogleToken(),
        is_vertex=is_claude,
        extras=read_extras(settings, "models.vertex"),
    )
    return Connection(plan, settings)
