"""Settings changed after a run was created: nested tables, laid over the frozen settings in the order of the log."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Table = Mapping[str, Any]
"""Settings in their JSON form: section → name → value."""


def merge_tables(base: Table, over: Table) -> dict[str, Any]:
    """Return ``base`` overlaid with ``over``: tables are merged, other values are replaced."""
    found = dict(base)
    for key, value in over.items():
        inner = found.get(key)
        found[key] = (
            merge_tables(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
        )
    return found


def diff_tables(before: Table, after: Table) -> dict[str, Any]:
    """Return the table that turns ``before`` into ``after`` by ``merge_tables``.

    ``merge_tables`` cannot remove keys, so keys that ``after`` lacks are ignored.
    """
    found: dict[str, Any] = {}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            if inner := diff_tables(old, value):
                found[key] = inner
        elif key not in before or old != value:
            found[key] = value
    return found


def format_assignments(table: Table) -> list[str]:
    """Return a nested table as texts such as ``models.solve = "offline"``, the form that ``--set`` takes."""
    return [f"{'.'.join(map(_quote_key, path))} = {json.dumps(value)}" for path, value in _iter_leaves(table)]


def _iter_leaves(table: Table, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _iter_leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def _quote_key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)
