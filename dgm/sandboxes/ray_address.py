"""The values of ``--engine`` that name a Ray cluster instead of a Docker engine: ``ray`` and ``ray://HOST:PORT``."""

import os
import re
from collections.abc import Mapping

from dgm.errors import UserError

NAME = "ray"
"""Name of the engine, and the address of the cluster that this machine is a node of."""
_PREFIX = "ray://"
_FORM = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})")


def is_ray_address(text: str) -> bool:
    """Return whether a value of ``--engine`` names a Ray cluster."""
    return text == NAME or text.startswith(_PREFIX)


def parse_ray_address(text: str, origin: str) -> str:
    """Return the address of a cluster as Ray takes it: ``auto`` or ``HOST:PORT``.

    Args:
        text: ``ray`` or ``ray://HOST:PORT``.
        origin: of the text, for people.

    Raises:
        UserError: it is no such address.
    """
    if text == NAME:
        return "auto"
    found = _FORM.fullmatch(text.removeprefix(_PREFIX))
    if not text.startswith(_PREFIX) or found is None or not 0 < int(found[2]) < 65536:
        raise UserError(
            f"{origin}={text}: write ray, or ray://HOST:PORT with the address that 'ray start --head' prints"
        )
    return found[0]


def named_cluster(variable: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the address of the Ray cluster that an environment variable names; None if it names none.

    Raises:
        UserError: it begins as the address of a cluster, and is none.
    """
    given = environment.get(variable, "").strip()
    return parse_ray_address(given, variable) if is_ray_address(given) else None
