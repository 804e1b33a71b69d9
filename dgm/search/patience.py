"""How long to wait after the infrastructure failed, and when to give up."""

from collections.abc import Callable


class Patience:
    """Counts failures with no success between; waits 1, 2, 4 … up to 60 s after each of them.

    One failed engine fails every worker at once; so only failures that start a new wait lengthen it.
    """

    def __init__(self, failures_in_a_row: int, clock: Callable[[], float]) -> None:
        self._limit = failures_in_a_row
        self._clock = clock
        self._failures = 0
        self._waits = 0
        self._until = 0.0
        self.last_reason = ""

    def success(self) -> None:
        """Something worked: start over."""
        self._failures = self._waits = 0
        self._until = 0.0

    def failure(self, reason: str) -> None:
        """Something failed that was not an agent's fault."""
        self.last_reason = reason
        self._failures += 1
        if self.wait_s() == 0.0:
            self._until = self._clock() + min(60.0, 2.0**self._waits)
            self._waits += 1

    def wait_s(self) -> float:
        """Seconds from now until something may be started again; 0.0 when it may."""
        return max(0.0, self._until - self._clock())

    @property
    def exhausted(self) -> bool:
        """Whether it is time to stop and tell a person."""
        return self._failures >= self._limit
