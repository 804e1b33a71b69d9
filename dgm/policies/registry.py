"""The built-in policies by name, and how one is made from settings."""

from typing import cast

from dgm.config import Settings
from dgm.plugins import find
from dgm.protocols import Policy

BUILTIN = {
    "hgm": "dgm.policies.hgm:Hgm",
    "random": "dgm.policies.random:RandomChoice",
}


def open_policy(settings: Settings) -> Policy:
    """The policy that the settings name.

    Raises:
        UserError: there is none of that name.
    """
    make = find("policies", settings.policy.name, BUILTIN)
    return cast("Policy", make(operator=settings.operator, alpha=settings.policy.alpha))
