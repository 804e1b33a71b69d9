"""Waits after failures of the infrastructure, and the limits at which an action or the session is given up."""

from collections.abc import Callable

from dgm.domain import ActionId


class Backoff:
    """Counts failures without a success in between; waits 1, 2, 4 … up to 60 s after each of them.

    One failed engine fails every worker at once, so only failures that start a new wait lengthen it. An action
    is given up when it failed ``tries`` times in this session although others succeeded meanwhile. In an outage
    no action is given up.
    """

    def __init__(self, failures_in_a_row: int, tries: int, clock: Callable[[], float]) -> None:
        self._limit = failures_in_a_row
        self._tries = tries
        self._clock = clock
        self._failures = 0
        self._waits = 0
        self._until = 0.0
        self._successes = 0
        self._trouble: dict[ActionId, tuple[int, int]] = {}
        """Action → its failures, and the number of all successes before the first of them."""
        self._trial = False
        self.unexplained = False
        """Whether the last pause ended at once, because every provider answered by then."""
        self.last_reason = ""
        self.last_failed: ActionId | None = None

    def success(self) -> None:
        """Record a success: reset the failures and the wait."""
        self._successes += 1
        self._failures = self._waits = 0
        self._until = 0.0
        self._trial = self.unexplained = False
        self.last_failed = None

    def hopeless(self, action: ActionId, reason: str, *, general: bool = True) -> bool:
        """Record a failure that was not an agent's fault; return whether the action is to be given up.

        Args:
            action: the action that failed.
            reason: why.
            general: whether other actions may fail of it, too, so that a wait helps.
        """
        times, before = self._trouble.get(action, (0, self._successes))
        self._trouble[action] = (times + 1, before)
        if times + 1 >= self._tries and self._successes > before:
            return True
        if not general:
            return False
        self.last_reason, self.last_failed = reason, action
        self._failures += 1
        if self.wait_s() == 0.0:
            self._until = self._clock() + min(60.0, 2.0**self._waits)
            self._waits += 1
        return False

    def wait_s(self) -> float:
        """Return the seconds until something may be started again; 0.0 when it may."""
        return max(0.0, self._until - self._clock())

    @property
    def waiting(self) -> bool:
        """Whether a wait was begun that no success has ended."""
        return self._failures > 0

    @property
    def exhausted(self) -> bool:
        """Whether it is time to pause, or to stop and tell a person."""
        return self._failures >= self._limit

    @property
    def on_trial(self) -> bool:
        """Whether one action is to show, alone, that a pause is over."""
        return self._trial

    def try_one(self, *, unexplained: bool = False) -> None:
        """End a pause: one action may start at once; its failure begins a new pause.

        Args:
            unexplained: whether nothing was found wrong with the providers.
        """
        self._failures, self._waits, self._until = self._limit - 1, 0, 0.0
        self._trial, self.unexplained = True, unexplained
