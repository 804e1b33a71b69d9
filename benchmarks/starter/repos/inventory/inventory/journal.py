"""The journal of all movements, from which a stock can be told for any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Optional


@dataclass(frozen=True)
class Entry:
    """One movement: pieces that came in (positive) or went out (negative)."""

    number: int
    kind: str
    item: str
    quantity: int
    note: str = ""


class Journal:
    """Movements in the order in which they happened."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def add(self, kind: str, item: str, quantity: int, note: str = "") -> Entry:
        """Append a movement."""
        entry = Entry(len(self._entries) + 1, kind, item, quantity, note)
        self._entries.append(entry)
        return entry

    def of(self, item: str) -> list[Entry]:
        """The movements of one item."""
        return [entry for entry in self._entries if entry.item == item]

    def balance(self, item: str, until: Optional[int] = None) -> int:
        """What was there after movement ``until`` (inclusive), or after all of them."""
        return sum(entry.quantity for entry in self.of(item) if until is None or entry.number <= until)
