"""Import of the order files of our partners."""

from .orders import DamagedFile, read_orders

__all__ = ["DamagedFile", "read_orders"]
