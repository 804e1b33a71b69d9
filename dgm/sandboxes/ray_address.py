"""The values of ``engine`` that name a Ray cluster instead of a Docker engine: ``ray`` and ``ray://HOST:PORT``."""

import re

from dgm.errors import UserError

NAME = "ray"
"""Name of the engine, and the address of the cluster that this machine is a node of."""
_PREFIX = "ray://"
_FORM = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})")


def is_ray_address(text: str) -> bool:
    """Return whether a value of ``engine`` names a Ray cluster."""
    return text == NAME or text.startswith(_PREFIX)


def parse_ray_address(text: str, origin: str) -> str:
    """Return the address of a cluster as Ray takes it, ``auto`` or ``HOST:PORT``; ``origin`` is that of the text.

    Raises:
        UserError: it is no such address.
    """
    if text == NAME:
        return "auto"
    address = _FORM.fullmatch(text.removeprefix(_PREFIX))
    if not text.startswith(_PREFIX) or address is None or not 0 < int(address[2]) < 65536:
        raise UserError(
            f"{origin}={text}: write ray, or ray://HOST:PORT with the address that 'ray start --head' prints"
        )
    return address[0]
