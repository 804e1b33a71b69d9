"""Clocks: seconds that only go forward."""

import time


class SystemClock:
    """The computer's monotonic clock."""

    def now(self):
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start=0.0):
        self._now = start

    def now(self):
        return self._now

    def advance(self, seconds):
        """Move the clock forward."""
        if seconds < 0:
            raise ValueError("a clock does not go back")
        self._now += seconds
