"""A set of numbers made of disjoint half-open intervals.

The pieces are kept sorted, and pieces that overlap or touch are one piece. Sets are values: no operation
changes one in place, so they can be shared and compared.
"""

from bisect import bisect_right

from .interval import Interval


def _merged(pieces):
    """Return the pieces sorted, the empty ones dropped, overlapping and touching ones joined."""
    merged = []
    for start, end in sorted(pieces):
        if start >= end:
            continue
        if merged and start <= merged[-1].end:
            merged[-1] = Interval(merged[-1].start, max(merged[-1].end, end))
        else:
            merged.append(Interval(start, end))
    return merged


class IntervalSet:
    """The union of any number of ``(start, end)`` pairs."""

    __slots__ = ("_pieces",)

    def __init__(self, pieces=()):
        self._pieces = tuple(_merged(pieces))

    # -- a collection of pieces

    def __iter__(self):
        return iter(self._pieces)

    def __len__(self):
        return len(self._pieces)

    def __bool__(self):
        return bool(self._pieces)

    def __getitem__(self, index):
        return self._pieces[index]

    def __eq__(self, other):
        if not isinstance(other, IntervalSet):
            return NotImplemented
        return self._pieces == other._pieces

    def __hash__(self):
        return hash(self._pieces)

    def __repr__(self):
        return f"IntervalSet({[tuple(piece) for piece in self._pieces]})"

    # -- questions

    def find(self, point):
        """Return the piece that holds ``point``, or None."""
        index = self._index(point)
        if index < 0 or point >= self._pieces[index].end:
            return None
        return self._pieces[index]

    def _index(self, point):
        """Return the index of the last piece that starts at or before ``point``, or -1."""
        return bisect_right([piece.start for piece in self._pieces], point) - 1

    def __contains__(self, point):
        return self.find(point) is not None

    def covers(self, other):
        """Tell whether all of ``other`` (an interval or a set) is in the set."""
        if isinstance(other, IntervalSet):
            return all(self.covers(piece) for piece in other)
        start, end = other
        if start >= end:
            return True
        piece = self.find(start)
        return piece is not None and end <= piece.end

    def isdisjoint(self, other):
        """Tell whether the two sets have no point in common."""
        mine = theirs = 0
        while mine < len(self._pieces) and theirs < len(other._pieces):
            a, b = self._pieces[mine], other._pieces[theirs]
            if a.overlaps(b):
                return False
            if a.end <= b.start:
                mine += 1
            else:
                theirs += 1
        return True

    @property
    def length(self):
        """How much the pieces measure together."""
        return sum(piece.length for piece in self._pieces)

    def span(self):
        """Return the smallest interval around the set, or None for the empty set."""
        if not self._pieces:
            return None
        return Interval(self._pieces[0].start, self._pieces[-1].end)

    def nearest(self, point):
        """Return the piece nearest to ``point``, the earlier one if two are equally near, or None."""
        best, best_distance = None, None
        for piece in self._pieces:
            if point in piece:
                return piece
            distance = piece.start - point if point < piece.start else point - piece.end
            if best is None or distance < best_distance:
                best, best_distance = piece, distance
        return best

    # -- algebra

    def __or__(self, other):
        return IntervalSet(self._pieces + other._pieces)

    def __and__(self, other):
        found = []
        mine = theirs = 0
        while mine < len(self._pieces) and theirs < len(other._pieces):
            a, b = self._pieces[mine], other._pieces[theirs]
            start = max(a.start, b.start)
            end = min(a.end, b.end)
            if start < end:
                found.append(Interval(start, end))
            if a.end < b.end:
                mine += 1
            else:
                theirs += 1
        return IntervalSet(found)

    def __sub__(self, other):
        left = []
        for piece in self._pieces:
            remaining = [piece]
            for hole in other:
                if hole.start >= piece.end:
                    break
                kept = []
                for part in remaining:
                    kept.extend(part.without(hole))
                remaining = kept
            left.extend(remaining)
        return IntervalSet(left)

    def __xor__(self, other):
        return (self - other) | (other - self)

    # -- shapes

    def gaps(self, within=None):
        """Return the set of what lies between the pieces.

        With ``within`` (an interval) also what lies before and behind them in it, and nothing outside it.
        """
        if within is None:
            within = self.span()
            if within is None:
                return IntervalSet()
        found = []
        cursor, limit = within
        for piece in self._pieces:
            if piece.start >= limit:
                break
            if piece.start > cursor:
                found.append(Interval(cursor, piece.start))
            cursor = max(cursor, piece.end)
        if cursor < limit:
            found.append(Interval(cursor, limit))
        return IntervalSet(found)

    def shifted(self, distance):
        """Return the set moved by ``distance``."""
        return IntervalSet(piece.shifted(distance) for piece in self._pieces)

    def grown(self, before, after=None):
        """Return the set with each piece made longer at both ends; negative sizes shrink it.

        ``after`` is as much as ``before`` unless given.
        """
        if after is None:
            after = before
        return IntervalSet((piece.start - before, piece.end + after) for piece in self._pieces)

    def closed_up(self, tolerance):
        """Return the set with gaps of up to ``tolerance`` filled in."""
        joined = []
        for piece in self._pieces:
            if joined and piece.start - joined[-1].end <= tolerance:
                joined[-1] = joined[-1].hull(piece)
            else:
                joined.append(piece)
        return IntervalSet(joined)

    def chopped(self, size):
        """Return a list of intervals of ``size``, the last of each piece maybe shorter."""
        if size <= 0:
            raise ValueError("size must be positive")
        chunks = []
        for start, end in self._pieces:
            while start < end:
                chunks.append(Interval(start, min(start + size, end)))
                start += size
        return chunks
