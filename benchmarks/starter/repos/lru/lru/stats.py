"""Counters of a cache."""

from dataclasses import dataclass


@dataclass
class Stats:
    """How often the cache could help, and why entries left it."""

    hits: int = 0
    misses: int = 0
    evicted: int = 0
    expired: int = 0

    @property
    def lookups(self):
        """All questions that were asked."""
        return self.hits + self.misses

    @property
    def hit_rate(self):
        """The share of hits, 0 before the first lookup."""
        return self.hits / self.lookups if self.lookups else 0.0

    def __add__(self, other):
        return Stats(
            self.hits + other.hits,
            self.misses + other.misses,
            self.evicted + other.evicted,
            self.expired + other.expired,
        )
