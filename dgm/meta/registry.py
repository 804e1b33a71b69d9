"""The built-in operators by name, and how one is made from settings."""

from typing import cast

from dgm.config import Settings
from dgm.plugins import find
from dgm.protocols import Operator

BUILTIN = {"self-edit": "dgm.meta.self_edit:SelfEdit"}


def open_operator(settings: Settings, image: str) -> Operator:
    """The operator that the settings name, for agents that run in ``image``.

    Raises:
        UserError: there is none of that name.
    """
    make = find("operators", settings.operator, BUILTIN)
    return cast("Operator", make(image=image, time_limit_s=settings.limits.improve_s))
