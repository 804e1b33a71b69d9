"""Connections to providers: they send requests as unchanged JSON through the vendor's own client.

The client authenticates, routes and signs; it does not change the body or the reply. Nothing is retried here, and no
status is an error: ``faults`` decides the meaning of a reply.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dgm.errors import ProviderRefuses
from dgm.messages import JsonObject, WireProtocol
from dgm.models.extras import Extras

if TYPE_CHECKING:
    import anthropic
    import httpx2
    import openai

_UNREAD = {"x-stainless-raw-response": "stream"}
"""Header that tells the vendors' clients that the caller reads the reply."""


class Connection(Protocol):
    """A connection to one model of one provider."""

    protocol: WireProtocol
    base_url: str
    """Base URL without its query; the paths of ``post`` and ``get`` are below it."""
    secrets: tuple[str, ...]
    """Secrets that no message may hold."""
    key_env: str
    """Environment variable of the key; empty: there is no key, or not in one variable."""
    list_path: str
    """Path of the list of models; empty: there is no list of usable models."""

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
        ...

    async def get(self, path: str) -> "httpx2.Response":
        """Return the fully read reply to a GET, whatever its status; raises as ``post``.

        Args:
            path: below the base URL, or a whole URL at the same server.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class Send(Protocol):
    """An untyped request of a vendor's client; its reply has any status."""

    async def __call__(
        self, path: str, body: JsonObject | None, headers: Mapping[str, str]
    ) -> "httpx2.Response":
        """Send a POST with the body, or a GET where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """The differences between providers that use the same vendor's client."""

    prefix: str = ""
    """Prefix of every path, below the base URL."""
    query: str = ""
    """Query after every path, without its question mark."""
    read_reply: Callable[["httpx2.Response"], "httpx2.Response"] | None = None
    """Converter of a streamed reply to server-sent events."""
    list_path: str = "/models"
    key_env: str = ""
    secrets: tuple[str, ...] = ()
    extras: Extras = field(default_factory=Extras)


class VendorConnection:
    """A connection through a vendor's client."""

    def __init__(
        self,
        protocol: WireProtocol,
        base_url: str,
        send: Send,
        close: Callable[[], Awaitable[None]],
        route: Route,
    ) -> None:
        """Take over the client behind ``send`` and ``close``."""
        self.protocol = protocol
        self.base_url = base_url.rstrip("/")
        self.secrets = (*route.secrets, *route.extras.secrets)
        self.key_env = route.key_env
        self.list_path = route.list_path
        self._send = send
        self._close = close
        self._route = route

    async def post(
        self, path: str, body: JsonObject, *, stream: bool, headers: Mapping[str, str]
    ) -> "httpx2.Response":
        """Send a request; see ``Connection.post``."""
        extras = self._route.extras
        sent = extras.add_to_headers(headers)
        if stream:
            sent |= _UNREAD
        response = await self._send(self._place(path), extras.add_to_body(body), sent)
        convert = self._route.read_reply
        return convert(response) if convert and stream and response.is_success else response

    async def get(self, path: str) -> "httpx2.Response":
        """Return the reply to a GET; see ``Connection.get``."""
        return await self._send(self._place(path), None, self._route.extras.headers)

    async def close(self) -> None:
        """Close the connections."""
        await self._close()

    def _place(self, path: str) -> str:
        placed = path if path.startswith(("http://", "https://")) else self._route.prefix + path
        if not self._route.query:
            return placed
        return f"{placed}{'&' if '?' in placed else '?'}{self._route.query}"


def openai_send(client: "openai.AsyncOpenAI", *, encoded: bool = True) -> Send:
    """Return the untyped requests of OpenAI's client.

    Args:
        client: sends once (``max_retries`` is 0).
        encoded: pass it the body as bytes, which is faster; not possible if the client itself reads the body.
    """
    import httpx2
    import openai

    async def send(path: str, body: JsonObject | None, headers: Mapping[str, str]) -> httpx2.Response:
        try:
            if body is None:
                return await client.get(path, cast_to=httpx2.Response, options={"headers": headers})
            if encoded:
                return await client.post(
                    path, content=encode(body), cast_to=httpx2.Response, options={"headers": headers}
                )
            return await client.post(
                path, body=replace_surrogates(body), cast_to=httpx2.Response, options={"headers": headers}
            )
        except openai.APIStatusError as error:
            return error.response
        except openai.APIError:
            raise
        except openai.OpenAIError as error:
            raise ProviderRefuses(str(error)) from error

    return send


def anthropic_send(
    client: "anthropic.AsyncAnthropic | anthropic.AsyncAnthropicBedrock | anthropic.AsyncAnthropicVertex",
    *,
    encoded: bool = True,
) -> Send:
    """Return the untyped requests of Anthropic's client; the arguments are those of ``openai_send``."""
    import anthropic
    import httpx2

    async def send(path: str, body: JsonObject | None, headers: Mapping[str, str]) -> httpx2.Response:
        options: anthropic.RequestOptions = {"headers": headers}
        try:
            if body is None:
                return await client.get(path, cast_to=httpx2.Response, options=options)
            if encoded:
                return await client.post(path, content=encode(body), cast_to=httpx2.Response, options=options)
            return await client.post(
                path, body=replace_surrogates(body), cast_to=httpx2.Response, options=options
            )
        except anthropic.APIStatusError as error:
            return error.response
        except anthropic.APIError:
            raise
        except anthropic.AnthropicError as error:
            raise ProviderRefuses(str(error)) from error

    return send


def encode(body: JsonObject) -> bytes:
    """Return the body as JSON; half a surrogate pair, which has no UTF-8 form, becomes a question mark."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def replace_surrogates(body: JsonObject) -> dict[str, Any]:
    """Return the body without half surrogate pairs; a dictionary, for clients that read it."""
    decoded: dict[str, Any] = json.loads(encode(body))
    return decoded
