"""Busy and free times, in minutes since midnight."""

from .interval import Interval
from .intervalset import IntervalSet


class Day:
    """Opening hours and the bookings in them."""

    def __init__(self, opens=8 * 60, closes=18 * 60):
        self.hours = Interval(opens, closes)
        self._bookings = []

    def book(self, start, end, title=""):
        """Add a booking; it may not overlap another or leave the opening hours."""
        wanted = Interval(start, end)
        if start >= end or not self.hours.covers(wanted):
            raise ValueError(f"not within opening hours: {start} to {end}")
        if self.conflicts(wanted):
            raise ValueError(f"already booked: {start} to {end}")
        self._bookings.append((wanted, title))

    def conflicts(self, wanted):
        """Return the titles of the bookings that ``wanted`` would overlap."""
        return [title for taken, title in self._bookings if taken.overlaps(wanted)]

    def busy(self):
        """Return the booked times."""
        return IntervalSet(taken for taken, _ in self._bookings)

    def free(self, minimum=0):
        """Return the unbooked times of at least ``minimum`` minutes, as a list."""
        open_times = IntervalSet([self.hours]) - self.busy()
        return [slot for slot in open_times if slot.length >= minimum]

    def first_free(self, minutes, after=0):
        """Return the earliest start of ``minutes`` of free time at or after ``after``, or None."""
        for slot in self.free():
            start = max(slot.start, after)
            if slot.end - start >= minutes:
                return start
        return None


def common_free(days, minimum=0):
    """Return the times of at least ``minimum`` minutes that are free in all ``days``."""
    if not days:
        return []
    shared = IntervalSet(days[0].free())
    for day in days[1:]:
        shared = shared & IntervalSet(day.free())
    return [slot for slot in shared if slot.length >= minimum]


def peak(intervals):
    """Return how many of the intervals overlap at the busiest moment, and that moment's start."""
    changes = []
    for start, end in intervals:
        changes.append((start, 1))
        changes.append((end, -1))
    best, when, level = 0, None, 0
    for point, change in sorted(changes):
        level += change
        if level > best:
            best, when = level, point
    return best, when
