"""Limits that count what happened in a span of time."""

import logging
from collections import deque

log = logging.getLogger(__name__)


class FixedWindow:
    """At most ``limit`` in each of the spans 0..length, length..2·length and so on."""

    def __init__(self, limit, length, clock):
        if limit <= 0 or length <= 0:
            raise ValueError("limit and length must be positive")
        self.limit = limit
        self.length = length
        self._clock = clock
        self._number = None
        self._used = 0

    def _turn(self):
        number = self._clock.now() // self.length
        if number != self._number:
            self._number = number
            self._used = 0
        return number

    def wait(self, cost=1):
        if cost > self.limit:
            return None
        number = self._turn()
        if self._used + cost <= self.limit:
            return 0.0
        return (number + 1) * self.length - self._clock.now()

    def take(self, cost=1):
        self._turn()
        if self._used + cost > self.limit:
            return False
        self._used += cost
        log.debug("used %s of %s in window %d", self._used, self.limit, self._number)
        return True

    def remaining(self):
        self._turn()
        return self.limit - self._used


class SlidingWindow:
    """At most ``limit`` in the last ``length`` seconds, at any time."""

    def __init__(self, limit, length, clock):
        if limit <= 0 or length <= 0:
            raise ValueError("limit and length must be positive")
        self.limit = limit
        self.length = length
        self._clock = clock
        self._log = deque()
        self._used = 0

    def _expire(self):
        """Forget what is ``length`` seconds old or older."""
        horizon = self._clock.now() - self.length
        while self._log and self._log[0][0] <= horizon:
            _, cost = self._log.popleft()
            self._used -= cost

    def wait(self, cost=1):
        if cost > self.limit:
            return None
        self._expire()
        excess = self._used + cost - self.limit
        if excess <= 0:
            return 0.0
        for moment, spent in self._log:
            excess -= spent
            if excess <= 0:
                break
        return moment + self.length - self._clock.now()

    def take(self, cost=1):
        self._expire()
        if self._used + cost > self.limit:
            return False
        self._log.append((self._clock.now(), cost))
        self._used += cost
        log.debug("used %s of %s", self._used, self.limit)
        return True

    def remaining(self):
        self._expire()
        return self.limit - self._used
