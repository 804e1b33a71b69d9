"""Finds a policy, operator, model or benchmark by name: the built-in ones first, then installed entry points.

A distribution offers one with an entry point in the group ``dgm.policies``, ``dgm.operators``, ``dgm.models`` or
``dgm.benchmarks`` whose name is what users type (``docs/library.md``).
"""

import difflib
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
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
    points = installed(group)
    if name in points:
        return _loaded(group, points[name])
    known = sorted([*builtin, *points])
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    kind = group.replace("_", " ")
    raise UserError(f"unknown name '{name}' among the {kind} ({hint}there are: {', '.join(known)})")


def installed(group: str) -> Mapping[str, EntryPoint]:
    """The plug-ins of a kind by name."""
    return {point.name: point for point in entry_points(group=f"dgm.{group}")}


def _loaded(group: str, point: EntryPoint) -> Any:  # noqa: ANN401  (whatever the plug-in names)
    try:
        return point.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        where = point.dist.name if point.dist else "an unknown distribution"
        raise UserError(
            f"plug-in '{point.name}' among the {group} ({point.value}, of {where}) cannot be loaded: {error}"
        ) from error
