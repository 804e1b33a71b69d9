"""What can go wrong with stock."""


class InventoryError(Exception):
    """Any refusal of the inventory."""


class NotEnoughStock(InventoryError):
    """More was asked for than is there."""

    def __init__(self, item: str, wanted: int, available: int) -> None:
        super().__init__(f"{item}: wanted {wanted}, available {available}")
        self.item = item
        self.wanted = wanted
        self.available = available


class UnknownReservation(InventoryError, KeyError):
    """There is no such reservation."""
