"""What the stock is worth."""

from __future__ import annotations

import enum
from typing import Optional

from .warehouse import Warehouse


class Costing(enum.Enum):
    """How a piece is valued."""

    BATCH = "batch"
    LOWEST = "lowest"


def value_of(
    warehouse: Warehouse, costing: Costing = Costing.BATCH, today: Optional[str] = None
) -> dict[str, int]:
    """The value of each item in cents; what has expired today is worth nothing."""
    values: dict[str, int] = {}
    for item in warehouse.items():
        batches = list(warehouse.shelf(item))
        good_batches = [batch for batch in batches if today is None or not batch.is_expired(today)]
        if costing is Costing.LOWEST:
            cheapest = min((batch.unit_cost for batch in good_batches), default=0)
            values[item] = cheapest * sum(batch.quantity for batch in good_batches)
        else:
            values[item] = sum(batch.quantity * batch.unit_cost for batch in good_batches)
    return values
