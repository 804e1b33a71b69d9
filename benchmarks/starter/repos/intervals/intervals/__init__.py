"""Half-open intervals and sets of them."""

from .interval import Interval
from .intervalset import IntervalSet
from .planner import Day, common_free, peak
from .ranges import RangeSyntaxError, format_ranges, parse_ranges

__all__ = [
    "Day",
    "Interval",
    "IntervalSet",
    "RangeSyntaxError",
    "common_free",
    "format_ranges",
    "parse_ranges",
    "peak",
]
