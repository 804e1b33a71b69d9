"""Addresses of providers: what is one, which name this machine, and which variable of the environment names a proxy."""

import ipaddress
import os
from urllib.parse import urlsplit

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


def find_proxy_variable(url: str) -> str:
    """Return the variable that names a proxy for an address; empty: none, or the address is this machine's."""
    if is_loopback(url):
        return ""
    names = (f"{urlsplit(url).scheme}_proxy", "all_proxy")
    each = (spelled for name in names for spelled in (name, name.upper()))
    return next((name for name in each if os.environ.get(name, "").strip()), "")
