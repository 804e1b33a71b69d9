"""Groups of rows, and one value for many cells."""

from __future__ import annotations

import logging
from typing import Callable, Mapping, Sequence

from .table import Cell, Table, TableError

log = logging.getLogger(__name__)


def _mean(cells: Sequence[float]) -> Cell:
    return sum(cells) / len(cells) if cells else None


def _median(cells: Sequence[float]) -> Cell:
    if not cells:
        return None
    ordered = sorted(cells)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


AGGREGATES: Mapping[str, Callable[[Sequence], Cell]] = {
    "count": len,
    "distinct": lambda cells: len(set(cells)),
    "first": lambda cells: cells[0] if cells else None,
    "last": lambda cells: cells[-1] if cells else None,
    "max": lambda cells: max(cells, default=None),
    "mean": _mean,
    "median": _median,
    "min": lambda cells: min(cells, default=None),
    "sum": sum,
}


def _aggregate(name: str, cells: Sequence[Cell]) -> Cell:
    """The aggregate of the cells that are not empty."""
    if name not in AGGREGATES:
        raise TableError(f"no aggregate {name!r}; there are {', '.join(AGGREGATES)}")
    return AGGREGATES[name]([cell for cell in cells if cell is not None])


def group(table: Table, by: Sequence[str], **aggregates: tuple[str, str]) -> Table:
    """One row for each combination of cells in some columns, in the order of appearance.

    Each keyword names a new column and gives the aggregate and the column to aggregate.
    """
    positions = [table.position(column) for column in by]
    members: dict[tuple, list[int]] = {}
    for number, row in enumerate(table.rows):
        members.setdefault(tuple(row[position] for position in positions), []).append(number)
    rows = []
    for key, numbers in members.items():
        log.debug("group %r has %d rows", key, len(numbers))
        values = []
        for name, column in aggregates.values():
            cells = table.cells(column)
            values.append(_aggregate(name, [cells[number] for number in numbers]))
        rows.append([*key, *values])
    return Table([*by, *aggregates], rows)


def pivot(table: Table, row: str, column: str, value: str, aggregate: str = "sum") -> Table:
    """Cells of one column down, of another one across, and the aggregate of a third one inside."""
    across = list(dict.fromkeys(table.cells(column)))
    grouped = group(table, [row, column], inside=(aggregate, value))
    inside = {(down, right): cell for down, right, cell in grouped.rows}
    rows = [
        [down, *(inside.get((down, right)) for right in across)] for down in dict.fromkeys(table.cells(row))
    ]
    return Table([row, *("" if right is None else str(right) for right in across)], rows)


def summary(table: Table) -> Table:
    """Count, least, greatest and mean of every column that holds numbers only."""
    rows = []
    for column in table.columns:
        cells = [cell for cell in table.cells(column) if cell is not None]
        if cells and all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in cells):
            rows.append([column, *(_aggregate(name, cells) for name in ("count", "min", "max", "mean"))])
    return Table(["column", "count", "min", "max", "mean"], rows)
