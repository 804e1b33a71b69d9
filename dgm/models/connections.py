"""A connection to one model of a provider: requests go out as JSON, and replies come back as they were sent.

Nothing is retried here, no redirect is followed, and no status is an error: ``faults`` decides the outcome of a reply.
"""

import asyncio
import importlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from dgm.config import ProviderSettings
from dgm.errors import UserError
from dgm.messages import JsonObject, WireProtocol
from dgm.models.addresses import find_proxy
from dgm.models.extras import Extras
from dgm.wires.values import dump_json

if TYPE_CHECKING:
    import ssl

    import aiohttp

CONNECT_S = 30.0
"""Maximum time to connect, in seconds; ``timeout_s`` bounds the time without a byte from a provider that thinks."""
MAX_REFUSAL_BYTES = 1_000_000
NO_KEY = "none"
"""Key for a server that asks for none."""
VERTEX_VERSION = "vertex-2023-10-16"
ANTHROPIC_VERSION = "2023-06-01"
_VENDORS_OWN = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
"""Headers that OpenAI alone gets, and their variables."""

Ready = Callable[[], Awaitable[None]]
"""Awaited before the last byte of a request is sent: until then the provider can neither begin nor bill."""


class Authentication(Protocol):
    """Authentication that is not a key."""

    async def headers(self, url: str, headers: Mapping[str, str], content: bytes) -> Mapping[str, str]:
        """Return the headers that authenticate a request; its method is POST."""
        ...


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
    auth: Authentication | None = None
    is_vendor: bool = False
    """Whether it is OpenAI or Anthropic, whom the packages' own variables (``OPENAI_ORG_ID`` …) are meant for."""
    is_vertex: bool = False
    """Whether the model's name stands in the path of a message, as Vertex wants it."""
    extras: Extras = field(default_factory=Extras)
    also: tuple[WireProtocol, ...] = ()
    """Further protocols that the model speaks at the same address."""


class Connection:
    """A connection to one model of one provider.

    Attributes:
        protocol: the usual protocol of its requests.
        protocols: all that it carries.
        base_url: without its query; the paths of ``post`` and ``get`` are below it.
        secrets: secrets that no message may hold.
        key_env: environment variable of the key; empty: there is no key, or not in one variable.
        list_path: path of the list of models; empty: there is no list of usable models.
        proxy: the variable of the environment that names the proxy in between; empty: there is none.
    """

    def __init__(self, plan: ConnectionPlan, settings: ProviderSettings) -> None:
        """Prepare the connection; send no request.

        Raises:
            UserError: a variable of the environment names a proxy that cannot be used.
        """
        importlib.import_module("aiohttp")  # Here, for it takes too long for a loop that serves agents.
        self.protocol = plan.protocol
        self.protocols = (plan.protocol, *plan.also)
        self.base_url = plan.base_url.rstrip("/")
        self.key_env = plan.key_env
        self.list_path = plan.list_path
        self.proxy, self._proxy_url = find_proxy(plan.base_url)
        parts = urlsplit(self._proxy_url)
        self.secrets = (*plan.secrets, *plan.extras.secrets, *filter(None, (parts.password,)))
        self._plan = plan
        self._timeout_s = settings.timeout_s
        is_messages = plan.protocol is WireProtocol.MESSAGES
        self._prefix = "/v1" if is_messages and not plan.is_vertex else ""
        self._package = "anthropic" if is_messages else "openai"
        self._session: aiohttp.ClientSession | None = None
        if parts.scheme.startswith("socks") and importlib.util.find_spec("aiohttp_socks") is None:
            raise UserError(
                f"{self.proxy} names a SOCKS proxy, which needs a package: pip install 'dgm[socks]'"
            )

    async def post(
        self, path: str, body: JsonObject, *, headers: Mapping[str, str], ready: Ready, own: bool = False
    ) -> "aiohttp.ClientResponse":
        """Send a request and return the reply, not read yet and whatever its status; close it after reading.

        Args:
            path: of the protocol, such as ``/chat/completions``, ``/responses`` or ``/messages``.
            body: sent unchanged, with the ``extra_body`` of the settings.
            headers: sent beside the connection's own.
            ready: awaited before the last byte is sent.
            own: whether the question is dgm's own: it goes through the vendor's package.

        Raises:
            ProviderRefuses: no credentials are found, or they cannot be renewed.
            aiohttp.ClientError, OSError: no reply.
            Exception: from ``ready``.
        """
        whole = self._plan.extras.add_to_body(body)
        if self._plan.is_vertex:
            method = "streamRawPredict" if body.get("stream") else "rawPredict"
            path = f"/publishers/anthropic/models/{whole.pop('model')}:{method}"
            whole.setdefault("anthropic_version", VERTEX_VERSION)
        url = self._place(path)
        sent = self._headers(headers)
        if own:
            return await self._post_by_package(url, whole, sent, ready)
        return await self._post(url, dump_json(whole), sent, ready)

    async def get(self, path: str) -> bytes:
        """Return the body of the reply to a GET, whatever its status; raises as ``post``."""
        session, url = self._open_session(), self._place(path)
        headers = await self._sign(url, self._headers({}), b"")
        async with session.get(
            url, headers=headers, allow_redirects=False, proxy=self._http_proxy
        ) as response:
            return await response.read()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _post(
        self, url: str, content: bytes, headers: Mapping[str, str], ready: Ready
    ) -> "aiohttp.ClientResponse":
        signed = await self._sign(url, headers, content)
        failure: list[Exception] = []

        async def hold_back() -> AsyncIterator[bytes]:
            yield content[:-1]
            try:
                await ready()
            except Exception as error:
                failure.append(error)
                raise
            yield content[-1:]

        try:
            return await self._open_session().post(
                url,
                data=hold_back(),
                headers={**signed, "content-length": str(len(content))},
                allow_redirects=False,
                proxy=self._http_proxy,
            )
        except Exception:
            if failure:
                raise failure[0] from None
            raise

    async def _post_by_package(
        self, url: str, body: dict[str, Any], headers: Mapping[str, str], ready: Ready
    ) -> "aiohttp.ClientResponse":
        """Let the vendor's package make the request; only the transport is ours."""
        import httpx2

        package = await asyncio.to_thread(importlib.import_module, self._package)
        replies: list[aiohttp.ClientResponse] = []

        async def transport(request: httpx2.Request) -> httpx2.Response:
            told = {name: value for name, value in request.headers.items() if name.startswith("x-stainless")}
            replies.append(await self._post(url, await request.aread(), {**told, **headers}, ready))
            return httpx2.Response(200, json={})

        http = httpx2.AsyncClient(transport=httpx2.MockTransport(transport), trust_env=False)
        kind = package.AsyncAnthropic if self._package == "anthropic" else package.AsyncOpenAI
        async with kind(api_key=NO_KEY, base_url=self.base_url, max_retries=0, http_client=http) as client:
            try:
                await client.post(url, body=body, cast_to=httpx2.Response)
            except package.APIConnectionError as error:
                raise error.__cause__ or error from None
        return replies[0]

    @property
    def _http_proxy(self) -> str | None:
        return None if self._proxy_url.startswith("socks") else self._proxy_url or None

    def _open_session(self) -> "aiohttp.ClientSession":
        """Return the session, which belongs to the running loop."""
        if self._session is None:
            import aiohttp

            connect_s = min(CONNECT_S, self._timeout_s)
            connector: aiohttp.BaseConnector
            if self._proxy_url.startswith("socks"):
                from aiohttp_socks import ProxyConnector

                address = self._proxy_url.replace("socks5h://", "socks5://")
                connector = ProxyConnector.from_url(address, rdns=True, limit=0, ssl=self._make_ssl())
            else:
                connector = aiohttp.TCPConnector(limit=0, ssl=self._make_ssl())
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(None, connect=connect_s, sock_read=self._timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=2**18,
                max_line_size=2**16,
                max_field_size=2**16,
            )
        return self._session

    def _make_ssl(self) -> "ssl.SSLContext | bool":
        """Return whom to trust: the certificates of the environment or of the system, wherever it keeps them."""
        if not any(url.startswith("https:") for url in (self.base_url, self._proxy_url)):
            return True
        import httpx2

        return httpx2.create_ssl_context()

    def _headers(self, given: Mapping[str, str]) -> dict[str, str]:
        plan = self._plan
        own = {"content-type": "application/json", "accept": "application/json", "user-agent": "dgm"}
        if plan.auth is None:
            key = plan.key or NO_KEY
            own |= {plan.key_header: key} if plan.key_header else {"authorization": f"Bearer {key}"}
        if plan.protocol is WireProtocol.MESSAGES:
            own["anthropic-version"] = ANTHROPIC_VERSION
        elif plan.is_vendor:
            own |= {
                name: os.environ[variable]
                for name, variable in _VENDORS_OWN.items()
                if os.environ.get(variable)
            }
        return plan.extras.add_to_headers({**own, **{name.lower(): value for name, value in given.items()}})

    async def _sign(self, url: str, headers: Mapping[str, str], content: bytes) -> Mapping[str, str]:
        auth = self._plan.auth
        return {**headers, **await auth.headers(url, headers, content)} if auth else headers

    def _place(self, path: str) -> str:
        query = self._plan.query
        placed = self.base_url + self._prefix + path
        return f"{placed}{'&' if '?' in placed else '?'}{query}" if query else placed


async def read_beginning(response: "aiohttp.ClientResponse") -> bytes:
    """Return the body of a refusal, or the beginning of one that does not end."""
    content = bytearray()
    async for piece in response.content.iter_any():
        content += piece
        if len(content) > MAX_REFUSAL_BYTES:
            break
    return bytes(content)


async def read_pieces(response: "aiohttp.ClientResponse") -> AsyncIterator[bytes]:
    """Yield what each read of the network brings; also what came before the connection broke, then raise the error."""
    content: Any = response.content
    try:
        async for piece in content.iter_any():
            yield piece
    except Exception:
        content.set_exception(None)  # Else it does not give what it has.
        if rest := content.read_nowait():
            yield rest
        raise
