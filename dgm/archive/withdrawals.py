"""Verdicts that no longer count, because the evaluation was graded although its agent had been refused its model."""

from dataclasses import dataclass, field

from dgm.domain import ActionId


@dataclass(slots=True)
class Withdrawals:
    """A fold of every ``VerdictWithdrawn``, by action."""

    total: int = 0
    """Number of withdrawn verdicts."""
    _times: dict[ActionId, int] = field(default_factory=dict)
    _calls: dict[ActionId, frozenset[int]] = field(default_factory=dict)

    def add(self, action: ActionId, calls: tuple[int, ...]) -> None:
        """Note one withdrawal, and the numbers of the calls whose answers become void."""
        self.total += 1
        self._times[action] = self.times(action) + 1
        self._calls[action] = self.void_calls(action) | frozenset(calls)

    def times(self, action: ActionId) -> int:
        """Return the number of times that the action's verdict was withdrawn."""
        return self._times.get(action, 0)

    def void_calls(self, action: ActionId) -> frozenset[int]:
        """Return the numbers of model calls whose recorded answers are not served again to the action."""
        return self._calls.get(action, frozenset())
