"""Token buckets and leaky buckets."""

import logging

log = logging.getLogger(__name__)


class TokenBucket:
    """A bucket of tokens that fills at a steady rate; whoever acts takes tokens out.

    Args:
        rate: Tokens that come in per second.
        capacity: Tokens that fit in; the bucket starts full.
        clock: Where the time comes from.
    """

    def __init__(self, rate, capacity, clock):
        if rate <= 0 or capacity <= 0:
            raise ValueError("rate and capacity must be positive")
        self.rate = rate
        self.capacity = capacity
        self._clock = clock
        self._tokens = float(capacity)
        self._filled_at = clock.now()

    def _fill(self):
        now = self._clock.now()
        self._tokens = min(self.capacity, self._tokens + (now - self._filled_at) * self.rate)
        self._filled_at = now

    def wait(self, cost=1):
        """Return the seconds until ``cost`` tokens are there; 0 if they are, ``None`` if they never will be."""
        if cost > self.capacity:
            return None
        self._fill()
        return max(0.0, (cost - self._tokens) / self.rate)

    def take(self, cost=1):
        """Take tokens out if there are enough; tell whether there were."""
        self._fill()
        if self._tokens < cost:
            return False
        self._tokens -= cost
        log.debug("took %s, %.2f of %s left", cost, self._tokens, self.capacity)
        return True

    def remaining(self):
        """Return how many whole tokens there are."""
        self._fill()
        return int(self._tokens)


class LeakyBucket:
    """A bucket that runs out at a steady rate; whoever acts pours something in, if it does not spill.

    Args:
        rate: What runs out per second.
        capacity: What fits in; the bucket starts empty.
        clock: Where the time comes from.
    """

    def __init__(self, rate, capacity, clock):
        if rate <= 0 or capacity <= 0:
            raise ValueError("rate and capacity must be positive")
        self.rate = rate
        self.capacity = capacity
        self._clock = clock
        self._level = 0.0
        self._leaked_at = clock.now()

    def _leak(self):
        now = self._clock.now()
        self._level = max(0.0, self._level - (now - self._leaked_at) * self.rate)
        self._leaked_at = now

    def wait(self, cost=1):
        """Return the seconds until ``cost`` fits in; ``None`` if it never will."""
        if cost > self.capacity:
            return None
        self._leak()
        return max(0.0, (self._level + cost - self.capacity) / self.rate)

    def take(self, cost=1):
        """Pour ``cost`` in if it fits; tell whether it did."""
        self._leak()
        if self._level + cost > self.capacity:
            return False
        self._level += cost
        log.debug("level %.2f of %s", self._level, self.capacity)
        return True

    def remaining(self):
        self._leak()
        return int(self.capacity - self._level)
