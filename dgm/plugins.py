"""Finds a policy, operator or benchmark by name: the built-in ones first, then installed entry points.

A distribution offers one with an entry point in the group ``dgm.policies``, ``dgm.operators`` … whose name is the
name that users type.
"""

import difflib
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from dgm.errors import UserError


def find(group: str, name: str, builtin: Mapping[str, str]) -> Any:  # noqa: ANN401  (whatever the plug-in names)
    """The object that ``name`` stands for.

    Args:
        group: the kind in the plural: ``policies``, ``operators``.
        name: what the user typed.
        builtin: name → ``module:attribute``.

    Raises:
        UserError: nothing of that name; the message lists what there is.
    """
    if name in builtin:
        module, _, attribute = builtin[name].partition(":")
        return getattr(import_module(module), attribute)
    installed = {point.name: point for point in entry_points(group=f"dgm.{group}")}
    if name in installed:
        return installed[name].load()
    known = sorted([*builtin, *installed])
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise UserError(f"unknown name '{name}' among the {group} ({hint}there are: {', '.join(known)})")
