"""Tables of the stock, for people."""

from __future__ import annotations

from typing import Sequence

from .warehouse import Warehouse


def stock_table(warehouse: Warehouse) -> list[tuple[str, int, int, int]]:
    """Item, on hand, reserved and available, one row an item."""
    return [
        (item, warehouse.on_hand(item), warehouse.reserved(item), warehouse.available(item))
        for item in warehouse.items()
    ]


def render(rows: Sequence[Sequence[object]], header: Sequence[str]) -> str:
    """Columns of even width: the first to the left, the others to the right."""
    texts = [list(header)] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(header))]
    lines = []
    for row in texts:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
