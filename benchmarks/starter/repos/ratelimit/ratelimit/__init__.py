"""Rate limits with a clock of your own."""

from .buckets import LeakyBucket, TokenBucket
from .clock import ManualClock, SystemClock
from .limiter import Decision, Limiter
from .rules import Rule, parse_rule
from .windows import FixedWindow, SlidingWindow

__all__ = [
    "Decision",
    "FixedWindow",
    "LeakyBucket",
    "Limiter",
    "ManualClock",
    "Rule",
    "SlidingWindow",
    "SystemClock",
    "TokenBucket",
    "parse_rule",
]
