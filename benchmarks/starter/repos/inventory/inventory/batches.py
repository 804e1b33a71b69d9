"""The batches of one item on its shelf, and the order in which they are used up."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Iterator, Optional

from .errors import NotEnoughStock

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batch:
    """Pieces of one receipt: they cost the same and expire on the same day."""

    quantity: int
    unit_cost: int
    expires: Optional[str] = None

    def is_expired(self, today: str) -> bool:
        """Whether the batch may no longer be sold; the last day itself is still good."""
        return self.expires is not None and self.expires < today


def _use_order(batch: Batch) -> tuple:
    """What expires first goes first; what never expires goes last."""
    return (batch.expires is None, batch.expires or "")


class Shelf:
    """All batches of one item."""

    def __init__(self, item: str) -> None:
        self.item = item
        self._batches: list[Batch] = []

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)

    @property
    def total(self) -> int:
        """All pieces, good or expired."""
        return sum(batch.quantity for batch in self._batches)

    def good(self, today: Optional[str] = None) -> int:
        """The pieces that may be sold on a day; without a day, all of them."""
        if today is None:
            return self.total
        return sum(batch.quantity for batch in self._batches if not batch.is_expired(today))

    def put(self, batch: Batch) -> None:
        """Add a batch, joining it with one of the same cost and expiry."""
        for index, present in enumerate(self._batches):
            if present.unit_cost == batch.unit_cost and present.expires == batch.expires:
                self._batches[index] = replace(present, quantity=present.quantity + batch.quantity)
                break
        else:
            self._batches.append(batch)
            self._batches.sort(key=_use_order)
        log.debug("shelf %s holds %d in %d batches", self.item, self.total, len(self._batches))

    def take(self, quantity: int, today: Optional[str] = None) -> list[Batch]:
        """Remove pieces in the order of use and return what was removed.

        Raises:
            NotEnoughStock: There are fewer good pieces; nothing is removed then.
        """
        good = self.good(today)
        if quantity > good:
            raise NotEnoughStock(self.item, quantity, good)
        taken: list[Batch] = []
        kept: list[Batch] = []
        missing = quantity
        for batch in self._batches:
            usable = today is None or not batch.is_expired(today)
            part = min(missing, batch.quantity) if usable else 0
            if part:
                taken.append(replace(batch, quantity=part))
                missing -= part
            if batch.quantity > part:
                kept.append(replace(batch, quantity=batch.quantity - part))
        self._batches = kept
        log.debug("shelf %s gave %d, keeps %d", self.item, quantity, self.total)
        return taken

    def discard_expired(self, today: str) -> int:
        """Throw away what has expired and say how many pieces that were."""
        before = self.total
        self._batches = [batch for batch in self._batches if not batch.is_expired(today)]
        return before - self.total
