"""Stock keeping for small warehouses."""

from .batches import Batch, Shelf
from .errors import InventoryError, NotEnoughStock, UnknownReservation
from .journal import Entry, Journal
from .reorder import ReorderRule, proposals
from .reports import render, stock_table
from .valuation import Costing, value_of
from .warehouse import Reservation, Warehouse, transfer

__all__ = [
    "Batch",
    "Costing",
    "Entry",
    "InventoryError",
    "Journal",
    "NotEnoughStock",
    "ReorderRule",
    "Reservation",
    "Shelf",
    "UnknownReservation",
    "Warehouse",
    "proposals",
    "render",
    "stock_table",
    "transfer",
    "value_of",
]
