"""Two tables side by side, by what their rows have in common."""

from __future__ import annotations

import logging
from typing import Optional

from .table import Cell, Row, Table, TableError

log = logging.getLogger(__name__)

_KINDS = ("inner", "left")


def join(left: Table, right: Table, on: str, right_on: Optional[str] = None, kind: str = "inner") -> Table:
    """Each row of the left table with every row of the right one that has the same key.

    The key of the right table is the column ``right_on``, by default the one of the same name; it
    is left out of the result. Other columns of the right table whose names are taken get the
    suffix ``_right``. Empty keys match nothing. A left join keeps the rows without a partner.
    """
    if kind not in _KINDS:
        raise TableError(f"no kind of join {kind!r}; there are {', '.join(_KINDS)}")
    right_key = on if right_on is None else right_on
    key_position = right.position(right_key)
    partners: dict[Cell, list[Row]] = {}
    for row in right.rows:
        if row[key_position] is not None:
            partners.setdefault(row[key_position], []).append(row)
    others = [position for position, column in enumerate(right.columns) if column != right_key]
    names = [
        right.columns[position] + ("_right" if right.columns[position] in left.columns else "")
        for position in others
    ]
    rows = []
    for key, row in zip(left.cells(on), left.rows):
        matching = partners.get(key, [])
        log.debug("%r has %d partners", key, len(matching))
        for partner in matching:
            rows.append([*row, *(partner[position] for position in others)])
        if not matching and kind == "left":
            rows.append([*row, *(None for _ in others)])
    return Table([*left.columns, *names], rows)
