"""One half-open interval."""

from typing import NamedTuple


class Interval(NamedTuple):
    """All numbers from ``start`` up to, but not including, ``end``."""

    start: float
    end: float

    @property
    def length(self):
        """How long the interval is; 0 for an empty one."""
        return max(self.end - self.start, 0)

    def __contains__(self, point):
        return self.start <= point < self.end

    def overlaps(self, other):
        """Tell whether the two have a point in common."""
        return self.start < other.end and other.start < self.end

    def covers(self, other):
        """Tell whether ``other`` lies inside; an empty one lies inside everything."""
        return other.start >= other.end or (self.start <= other.start and other.end <= self.end)

    def common(self, other):
        """Return the part in both, or None."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Interval(start, end) if start < end else None

    def hull(self, other):
        """Return the smallest interval around both."""
        return Interval(min(self.start, other.start), max(self.end, other.end))

    def without(self, other):
        """Return what is left of this interval outside ``other``: none, one or two pieces."""
        if not self.overlaps(other):
            return [self]
        pieces = [Interval(self.start, other.start), Interval(other.end, self.end)]
        return [piece for piece in pieces if piece.start < piece.end]

    def shifted(self, distance):
        """Return the interval moved by ``distance``."""
        return Interval(self.start + distance, self.end + distance)
