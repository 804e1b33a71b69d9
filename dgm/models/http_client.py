"""The HTTP client under every vendor's client: its time-outs, its proxy, and the headers that a redirect may carry."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dgm.config import ProviderSettings
from dgm.models.proxies import find_proxy, name_proxy

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 30.0
"""Maximum time to connect, in seconds; ``timeout_s`` bounds the time without a byte from a provider that thinks."""
_KEPT_CONNECTIONS = 100
_KEY_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})
_ORIGIN = "dgm.origin"


def timeout_of(settings: ProviderSettings) -> "httpx2.Timeout":
    """Return the time-outs of one request."""
    import httpx2

    return httpx2.Timeout(settings.timeout_s, connect=min(CONNECT_S, settings.timeout_s), pool=None)


def open_http_client(
    settings: ProviderSettings, url: str, secret_headers: Iterable[str] = ()
) -> "httpx2.AsyncClient":
    """Return an HTTP client for the provider at ``url``.

    Args:
        settings: how the provider is reached.
        url: address of the provider; decides whether a proxy is used.
        secret_headers: names of further headers that no other server may see.

    Raises:
        UserError: a variable of the environment names a proxy that cannot be used.
    """
    import httpx2

    proxy = find_proxy(url, os.environ)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS)
    # A transport of our own keeps the client from interpreting the proxies' variables in its own way.
    transport: httpx2.AsyncBaseTransport = httpx2.AsyncHTTPTransport(
        limits=limits, proxy=proxy.url if proxy else None
    )
    if proxy:
        transport = name_proxy(transport, proxy)
    kept_here = _KEY_HEADERS | {name.lower() for name in secret_headers}

    async def guard_redirects(request: httpx2.Request) -> None:
        origin = request.extensions.setdefault(_ORIGIN, request.url.origin)
        if origin != request.url.origin:
            for name in kept_here:
                request.headers.pop(name, None)

    return httpx2.AsyncClient(
        transport=transport,
        timeout=timeout_of(settings),
        follow_redirects=True,
        event_hooks={"request": [guard_redirects]},
    )
