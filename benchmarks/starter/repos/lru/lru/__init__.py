"""A least-recently-used cache with time to live, weights and tags."""

from .cache import MISSING, Cache
from .clock import ManualClock
from .memo import memoized
from .order import Order
from .stats import Stats

__all__ = ["MISSING", "Cache", "ManualClock", "Order", "Stats", "memoized"]
