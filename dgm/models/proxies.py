"""The proxy for one address, as HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name it.

Lower-case names win over upper-case ones. A loopback address never has a proxy. A proxy that fails is named in the
error by its variable and host, never by its password.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from dgm.errors import UserError

if TYPE_CHECKING:
    import httpx2

_ALIASES = {"socks": "socks5"}
"""Aliases of schemes; desktop settings write ``socks://`` for SOCKS 5."""
_SCHEMES = ("http", "https", "socks5", "socks5h")
_PROXY_AUTHENTICATION_REQUIRED = 407
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """A proxy and the environment variable that names it."""

    variable: str
    url: str
    """URL with user and password, if the variable holds them."""
    host: str
    """Host and port, for messages."""

    @property
    def shown(self) -> str:
        """The proxy in a message."""
        return f"the proxy {self.host} (from {self.variable})"


def find_proxy(url: str, environment: Mapping[str, str]) -> ProxyAddress | None:
    """Return the proxy through which to reach ``url``; None for a direct connection.

    Raises:
        UserError: the variable holds no address of a proxy, or a kind of proxy that cannot be used.
    """
    target = urlsplit(url)
    host = (target.hostname or "").rstrip(".")
    if is_loopback_host(host):
        return None
    for name in (f"{target.scheme}_proxy", "all_proxy"):
        variable, value = _look_up(name, environment)
        if value:
            break
    else:
        return None
    if _is_excluded(target, host, _look_up("no_proxy", environment)[1]):
        return None
    return _parse_proxy(variable, value)


def is_loopback(url: str) -> bool:
    """Return whether the text of a URL names this machine itself."""
    try:
        return is_loopback_host(urlsplit(url).hostname or "")
    except ValueError:
        return False


def is_loopback_host(host: str) -> bool:
    """Return whether a host's name or address is this machine's own."""
    host = host.lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address_of(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address is not None and address.is_loopback


def name_proxy(transport: "httpx2.AsyncBaseTransport", proxy: ProxyAddress) -> "httpx2.AsyncBaseTransport":
    """Return the transport with the proxy's name in its connection errors."""
    import httpx2

    class NamedProxyTransport(httpx2.AsyncBaseTransport):
        """A transport whose errors name its proxy."""

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            try:
                response = await transport.handle_async_request(request)
            except (httpx2.ProxyError, httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                detail = str(error) or type(error).__name__
                raise type(error)(f"{proxy.shown}: {detail}") from error
            if response.status_code == _PROXY_AUTHENTICATION_REQUIRED:
                await response.aclose()
                raise httpx2.ProxyError(f"{proxy.shown}: 407 Proxy Authentication Required")
            return response

        async def aclose(self) -> None:
            await transport.aclose()

    return NamedProxyTransport()


def _look_up(name: str, environment: Mapping[str, str]) -> tuple[str, str]:
    for variable in (name, name.upper()):
        if variable in environment:
            return variable, environment[variable].strip()
    return name.upper(), ""


def _parse_proxy(variable: str, value: str) -> ProxyAddress:
    # The value may hold a password, so no message shows it.
    expected = "expected an address such as http://proxy.example:3128 or socks5h://proxy.example:1080"
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UserError(f"{variable} holds no address of a proxy: {expected}") from error
    scheme = _ALIASES.get(parts.scheme, parts.scheme)
    if scheme in {"socks4", "socks4a"}:
        raise UserError(f"{variable}: {scheme} proxies cannot be used; {expected}")
    if scheme not in _SCHEMES or not host or re.search(r"[\s\x00-\x1f]", value):
        raise UserError(f"{variable} holds no address of a proxy: {expected}")
    if scheme.startswith("socks") and find_spec("socksio") is None:
        raise UserError(f"{variable} names a SOCKS proxy, which needs a package: pip install 'httpx2[socks]'")
    bracketed = f"[{host}]" if ":" in host else host
    place = f"{bracketed}:{port}" if port else bracketed
    proxy = ProxyAddress(variable, f"{scheme}://{parts.netloc}", place)
    _check_with_client(proxy, expected)
    return proxy


def _check_with_client(proxy: ProxyAddress, expected: str) -> None:
    import httpx2

    try:
        httpx2.Proxy(proxy.url)
    except (ValueError, httpx2.InvalidURL):
        # Raise without the cause, whose text holds the address with its password.
        raise UserError(f"{proxy.variable} holds no address of a proxy: {expected}") from None


def _is_excluded(target: SplitResult, host: str, no_proxy: str) -> bool:
    port = target.port or _PORTS.get(target.scheme)
    return any(
        _matches(entry.lower(), host.lower(), port) for entry in re.split(r"[,\s]+", no_proxy) if entry
    )


def _matches(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    entry = entry.partition("://")[2] or entry
    address = _address_of(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            pass
    name, _, wanted = entry.rpartition(":")
    if name and wanted.isdecimal() and (not name.count(":") or name.endswith("]")):
        if int(wanted) != port:
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").removeprefix(".").rstrip(".")
    return bool(entry) and (host == entry or (address is None and host.endswith(f".{entry}")))


def _address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0].strip("[]"))
    except ValueError:
        return None
