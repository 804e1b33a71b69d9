"""A warehouse: shelves, reservations and the journal that records every movement.

Stock that is reserved stays on its shelf until it is picked; it is only no longer available to
others. Every change of the shelves leaves one entry in the journal, so that the balance of an
item in the journal always equals what lies on its shelf.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Optional

from .batches import Batch, Shelf
from .errors import InventoryError, NotEnoughStock, UnknownReservation
from .journal import Journal

log = logging.getLogger(__name__)


@dataclass
class Reservation:
    """Pieces that an order holds, by item."""

    order: str
    lines: Counter[str]
    due: Optional[str] = None

    @property
    def total(self) -> int:
        """All pieces of the order."""
        return sum(self.lines.values())


class Warehouse:
    """The stock of one place."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.journal = Journal()
        self._shelves: dict[str, Shelf] = {}
        self._reservations: dict[str, Reservation] = {}

    def items(self) -> list[str]:
        """The names of all items that were ever here."""
        return sorted(self._shelves)

    def shelf(self, item: str) -> Shelf:
        """The shelf of an item, an empty one for a new item."""
        return self._shelves.setdefault(item, Shelf(item))

    def on_hand(self, item: str) -> int:
        """All pieces on the shelf, reserved or not."""
        return self._shelves[item].total if item in self._shelves else 0

    def reserved(self, item: str) -> int:
        """The pieces that orders hold."""
        return sum(reservation.lines[item] for reservation in self._reservations.values())

    def available(self, item: str, today: Optional[str] = None) -> int:
        """The good pieces that no order holds, never less than none."""
        if item not in self._shelves:
            return 0
        return max(0, self._shelves[item].good(today) - self.reserved(item))

    def receive(self, item: str, quantity: int, unit_cost: int = 0, expires: Optional[str] = None) -> None:
        """Put new pieces on the shelf."""
        self._check_quantity(quantity)
        self.shelf(item).put(Batch(quantity, unit_cost, expires))
        self.journal.add("receive", item, quantity)
        log.info("%s: received %d %s", self.name, quantity, item)

    def issue(self, item: str, quantity: int, today: Optional[str] = None, note: str = "") -> list[Batch]:
        """Take pieces that no order holds off the shelf.

        Raises:
            NotEnoughStock: Fewer are available; the stock is unchanged.
        """
        self._check_quantity(quantity)
        available = self.available(item, today)
        if quantity > available:
            raise NotEnoughStock(item, quantity, available)
        taken = self.shelf(item).take(quantity, today)
        self.journal.add("issue", item, -quantity, note)
        log.info("%s: issued %d %s", self.name, quantity, item)
        return taken

    def count(self, item: str, counted: int) -> int:
        """Correct the shelf to what was counted and return the difference."""
        if counted < 0:
            raise InventoryError(f"{item}: counted {counted}")
        difference = counted - self.on_hand(item)
        if difference > 0:
            self.shelf(item).put(Batch(difference, self._last_cost(item)))
        elif difference < 0:
            self.shelf(item).take(-difference)
        if difference:
            self.journal.add("count", item, difference)
            log.info("%s: count of %s differs by %+d", self.name, item, difference)
        return difference

    def discard_expired(self, today: str) -> dict[str, int]:
        """Throw away expired batches; the pieces thrown away by item, only where there were any."""
        discarded: dict[str, int] = {}
        for item, shelf in self._shelves.items():
            quantity = shelf.discard_expired(today)
            if quantity:
                self.journal.add("discard", item, -quantity)
                discarded[item] = quantity
        return discarded

    def reserve(self, order: str, item: str, quantity: int, due: Optional[str] = None) -> None:
        """Hold pieces for an order; a second call for the same item adds to the first.

        Raises:
            NotEnoughStock: Fewer are available; the order holds what it held before.
        """
        self._check_quantity(quantity)
        available = self.available(item, due)
        if quantity > available:
            raise NotEnoughStock(item, quantity, available)
        reservation = self._reservations.setdefault(order, Reservation(order, Counter()))
        reservation.lines[item] += quantity
        if due is not None:
            reservation.due = due if reservation.due is None else min(due, reservation.due)
        log.info("%s: %s holds %d %s", self.name, order, reservation.lines[item], item)

    def reservation(self, order: str) -> Reservation:
        """What an order holds."""
        if order not in self._reservations:
            raise UnknownReservation(order)
        return self._reservations[order]

    def release(self, order: str, item: Optional[str] = None, quantity: Optional[int] = None) -> int:
        """Give back one item of an order (or a part of it), or the whole order.

        Returns:
            How many pieces became available again.
        """
        reservation = self.reservation(order)
        if item is None:
            del self._reservations[order]
            return reservation.total
        held = reservation.lines[item]
        freed = held if quantity is None else min(quantity, held)
        if freed == held:
            reservation.lines.pop(item, None)
        else:
            reservation.lines[item] = held - freed
        if not reservation.lines:
            del self._reservations[order]
        log.info("%s: %s gave back %d %s", self.name, order, freed, item)
        return freed

    def pick(self, order: str, today: Optional[str] = None) -> dict[str, list[Batch]]:
        """Take everything that an order holds off the shelves and close the order.

        Raises:
            NotEnoughStock: Some item has too few good pieces; nothing is taken then.
        """
        reservation = self.reservation(order)
        for item, quantity in reservation.lines.items():
            good = self.shelf(item).good(today)
            if quantity > good:
                raise NotEnoughStock(item, quantity, good)
        picked = {}
        for item, quantity in reservation.lines.items():
            picked[item] = self.shelf(item).take(quantity, today)
            self.journal.add("pick", item, -quantity, order)
        del self._reservations[order]
        log.info("%s: picked %s, %d pieces", self.name, order, reservation.total)
        return picked

    def orders_due(self, day: str) -> list[str]:
        """The orders that are due on a day or before it, the most urgent first."""
        due = [r for r in self._reservations.values() if r.due is not None and r.due <= day]
        return [r.order for r in sorted(due, key=lambda r: (r.due, r.order))]

    def _last_cost(self, item: str) -> int:
        costs = [batch.unit_cost for batch in self.shelf(item)]
        return costs[-1] if costs else 0

    @staticmethod
    def _check_quantity(quantity: int) -> None:
        if quantity <= 0:
            raise InventoryError(f"a quantity must be positive, got {quantity}")


def transfer(source: Warehouse, target: Warehouse, item: str, quantity: int) -> None:
    """Move available pieces from one warehouse to another, keeping their cost and expiry."""
    for batch in source.issue(item, quantity, note=f"to {target.name}"):
        target.receive(item, batch.quantity, batch.unit_cost, batch.expires)
