"""Wall time of a run: from first to last event of each session, summed; the time between sessions is not counted."""


class SessionClock:
    """The fold of the times of events."""

    def __init__(self) -> None:
        self._closed = self._start = self._last = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of all sessions."""
        return self._closed + self._last - self._start

    def begin(self, at: float) -> None:
        """Begin a session at a Unix time."""
        self._closed = self.seconds
        self._start = self._last = at

    def passed(self, at: float) -> None:
        """Note the time of an event."""
        if not self._start:
            self._start = at
        if at > self._last:
            self._last = at
