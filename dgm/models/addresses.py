"""Addresses of providers: what is one, which name this machine, and which variable of the environment names a proxy."""

import ipaddress
import os
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from dgm.errors import UserError


def check_url(url: str, where: str) -> str:
    """Return the address unchanged.

    Raises:
        UserError: it is no address, or it holds something that does not belong in settings.
    """
    try:
        parts = urlsplit(url)
        host, named = parts.hostname, parts.username is not None or parts.password is not None
        _ = parts.port
    except ValueError as error:
        raise UserError(f"{where}: not an address: {error}") from error
    if named:
        raise UserError(
            f"{where}: an address with a user or password in it is not taken; name a key_env instead"
        )
    if parts.scheme not in {"http", "https"} or not host:
        raise UserError(f"{where} = '{url}': expected an address such as http://127.0.0.1:8000/v1")
    return url


def is_loopback(url: str) -> bool:
    """Return whether the text of a URL names this machine itself."""
    try:
        host = (urlsplit(url).hostname or "").lower().rstrip(".")
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def find_proxy(url: str) -> tuple[str, str]:
    """Return the variable that names a proxy for an address, and the proxy; empty: none, or it is this machine's.

    Raises:
        UserError: it is no address of a proxy; the message does not hold it, for it may have a password.
    """
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.netloc):
        return "", ""
    names = (f"{parts.scheme}_proxy", "all_proxy")
    each = (spelled for name in names for spelled in (name, name.upper()))
    variable = next((name for name in each if os.environ.get(name, "").strip()), "")
    if not variable:
        return "", ""
    proxy = os.environ[variable].strip()
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    try:
        named = urlsplit(proxy)
        sound = named.scheme in ("http", "https", "socks5", "socks5h") and named.hostname
        _ = named.port
    except ValueError:
        sound = False
    if not sound:
        raise UserError(f"{variable} holds no address of a proxy, such as http://proxy.example:3128")
    return variable, proxy
