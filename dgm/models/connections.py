"""A connection to one model of a provider: requests go out as unchanged JSON through the vendor's own client.

The client authenticates and times out; it does not change the body or the reply. Nothing is retried here, and no
status is an error: ``faults`` decides the outcome of a reply.
"""

import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dgm.config import ProviderSettings
from dgm.errors import DgmError, UserError
from dgm.messages import JsonObject, WireProtocol
from dgm.models.addresses import find_proxy_variable, is_loopback
from dgm.models.extras import Extras

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 30.0
"""Maximum time to connect, in seconds; ``timeout_s`` bounds the time without a byte from a provider that thinks."""
NO_KEY = "none"
"""Key for a server that asks for none: the vendors' packages refuse to send no key."""
VERTEX_VERSION = "vertex-2023-10-16"
_UNREAD = {"x-stainless-raw-response": "stream"}
"""Header that tells the vendors' clients that the caller reads the reply."""
_KEPT_CONNECTIONS = 100
_KEY_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})
_ORIGIN = "dgm.origin"


@dataclass(frozen=True, slots=True)
class ConnectionPlan:
    """All that distinguishes the connection to one model from another."""

    protocol: WireProtocol
    base_url: str
    query: str = ""
    """Query after every path, without its question mark."""
    key: str = ""
    key_env: str = ""
    """Environment variable of the key; empty: there is no key, or not in one variable."""
    key_header: str = ""
    """Header of the key; empty: it goes as a bearer token."""
    secrets: tuple[str, ...] = ()
    list_path: str = "/models"
    auth: "httpx2.Auth | None" = None
    """Authentication that is not a key."""
    is_vendor: bool = False
    """Whether it is OpenAI or Anthropic, whom the packages' own variables (``OPENAI_ORG_ID`` …) are meant for."""
    is_vertex: bool = False
    """Whether the model's name stands in the path of a message, as Vertex wants it."""
    extras: Extras = field(default_factory=Extras)


class Connection:
    """A connection to one model of one provider.

    Attributes:
        protocol: the protocol of its requests.
        base_url: without its query; the paths of ``post`` and ``get`` are below it.
        secrets: secrets that no message may hold.
        key_env: environment variable of the key; empty: there is no key, or not in one variable.
        list_path: path of the list of models; empty: there is no list of usable models.
        proxy: the variable of the environment that names the proxy in between; empty: there is none.
    """

    def __init__(self, plan: ConnectionPlan, settings: ProviderSettings) -> None:
        """Open the vendor's client; send no request.

        Raises:
            UserError: a variable of the environment names a proxy that cannot be used.
        """
        self.protocol = plan.protocol
        self.base_url = plan.base_url.rstrip("/")
        self.secrets = (*plan.secrets, *plan.extras.secrets)
        self.key_env = plan.key_env
        self.list_path = plan.list_path
        self.proxy = find_proxy_variable(plan.base_url)
        self._plan = plan
        messages = plan.protocol is WireProtocol.MESSAGES
        self._prefix = "/v1" if messages and not plan.is_vertex else ""
        self._package: Any = importlib.import_module("anthropic" if messages else "openai")
        http = _open_http_client(plan, settings, self.proxy)
        options = {
            "api_key": plan.key or NO_KEY,
            "base_url": plan.base_url,
            "max_retries": 0,
            "timeout": http.timeout,
            "http_client": http,
        }
        if messages:
            self._client = self._package.AsyncAnthropic(**options, open_telemetry=False)
        else:
            self._client = self._package.AsyncOpenAI(**options)
            if not plan.is_vendor:
                self._client.admin_api_key = None

    async def post(
        self, path: str, body: JsonObject, *, stream: bool, headers: Mapping[str, str]
    ) -> "httpx2.Response":
        """Send a request and return the reply, whatever its status.

        Args:
            path: of the protocol, such as ``/chat/completions``, ``/responses`` or ``/messages``.
            body: sent unchanged, with the ``extra_body`` of the settings.
            stream: return before the reply is read, if the status is a success; close it after reading.
            headers: sent beside the client's own.

        Raises:
            ProviderRefuses: no credentials are found, or they cannot be renewed.
            openai.APIConnectionError: no reply; the cause is the HTTP client's error. Likewise Anthropic's.
        """
        extras = self._plan.extras
        sent = extras.add_to_headers(headers) | (_UNREAD if stream else {})
        whole = extras.add_to_body(body)
        if self._plan.is_vertex:
            method = "streamRawPredict" if stream else "rawPredict"
            path = f"/publishers/anthropic/models/{whole.pop('model')}:{method}"
            whole.setdefault("anthropic_version", VERTEX_VERSION)
        return await self._send(self._place(path), encode(whole), sent)

    async def get(self, path: str) -> "httpx2.Response":
        """Return the fully read reply to a GET, whatever its status; raises as ``post``.

        Args:
            path: below the base URL, or a whole URL at the same server.
        """
        return await self._send(self._place(path), None, self._plan.extras.headers)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send(self, path: str, content: bytes | None, headers: Mapping[str, str]) -> "httpx2.Response":
        import httpx2

        ask = self._client.get if content is None else self._client.post
        body = {} if content is None else {"content": content}
        try:
            response: httpx2.Response = await ask(
                path, **body, cast_to=httpx2.Response, options={"headers": headers}
            )
        except self._package.APIStatusError as error:
            response = error.response
        except self._package.APIConnectionError as error:
            if isinstance(error.__cause__, DgmError):
                raise error.__cause__ from error
            raise
        return response

    def _place(self, path: str) -> str:
        placed = path if path.startswith(("http://", "https://")) else self._prefix + path
        query = self._plan.query
        return f"{placed}{'&' if '?' in placed else '?'}{query}" if query else placed


def _open_http_client(plan: ConnectionPlan, settings: ProviderSettings, proxy: str) -> "httpx2.AsyncClient":
    """Return the HTTP client under the vendor's: its time-outs and proxy, and the headers that it may carry."""
    import httpx2

    key_headers = _KEY_HEADERS | set(plan.extras.headers)
    foreign = () if plan.is_vendor else _headers_for_vendors()

    async def choose_headers(request: httpx2.Request) -> None:
        for name in foreign:
            if name not in plan.extras.headers:
                request.headers.pop(name, None)
        if plan.key_header:
            request.headers.pop("authorization", None)
            request.headers[plan.key_header] = plan.key
        origin = request.extensions.setdefault(_ORIGIN, request.url.origin)
        if origin != request.url.origin:  # a redirect to another server
            for name in key_headers:
                request.headers.pop(name, None)

    timeout = httpx2.Timeout(settings.timeout_s, connect=min(CONNECT_S, settings.timeout_s), pool=None)
    try:
        return httpx2.AsyncClient(
            auth=plan.auth,
            timeout=timeout,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS),
            follow_redirects=True,
            event_hooks={"request": [choose_headers]},
            trust_env=not is_loopback(plan.base_url),
        )
    except ImportError as error:
        hint = "names a SOCKS proxy, which needs a package: pip install 'httpx2[socks]'"
        raise UserError(f"{proxy} {hint}") from error
    except (ValueError, httpx2.InvalidURL):
        # Raise without the cause, whose text holds the address with its password.
        raise UserError(f"{proxy} holds no address of a proxy, such as http://proxy.example:3128") from None


def _headers_for_vendors() -> frozenset[str]:
    """Return the headers that the packages read from the environment for their own vendor."""
    names = {"openai-organization", "openai-project"}
    for variable in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        lines = os.environ.get(variable, "").split("\n")
        names |= {line.partition(":")[0].strip().lower() for line in lines if ":" in line}
    return frozenset(names)


def encode(body: JsonObject) -> bytes:
    """Return the body as JSON; half a surrogate pair, which has no UTF-8 form, becomes a question mark."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
