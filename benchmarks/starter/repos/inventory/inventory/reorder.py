"""What to order again, and how much of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Iterable

from .warehouse import Warehouse

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReorderRule:
    """Order up to ``target`` when no more than ``minimum`` is available, in whole packs."""

    item: str
    minimum: int
    target: int
    pack: int = 1

    def quantity(self, available: int) -> int:
        """How many pieces to order, 0 for none."""
        if available > self.minimum:
            return 0
        missing = max(0, self.target - available)
        packs = -(-missing // self.pack)
        return packs * self.pack


def proposals(warehouse: Warehouse, rules: Iterable[ReorderRule]) -> dict[str, int]:
    """The pieces to order by item, without the items of which there is enough."""
    result: dict[str, int] = {}
    for rule in rules:
        quantity = rule.quantity(warehouse.available(rule.item))
        log.debug("%s: %d available, order %d", rule.item, warehouse.available(rule.item), quantity)
        if quantity:
            result[rule.item] = quantity
    return result
