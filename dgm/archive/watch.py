"""Wall time of a run over all sessions, without the time between them."""

from dataclasses import dataclass


@dataclass(slots=True)
class Watch:
    """A fold of the times of events, in Unix seconds."""

    _closed: float = 0.0
    _start: float = 0.0
    _last: float = 0.0

    @property
    def seconds(self) -> float:
        """Summed time from first to last event of each session, in seconds."""
        return self._closed + self._last - self._start

    @property
    def began(self) -> float:
        """Unix time at which the last session began; 0 before the first event."""
        return self._start

    @property
    def last(self) -> float:
        """Unix time of the last event; 0 before the first one."""
        return self._last

    def begin(self, at: float) -> None:
        """Begin a session; the time since the last one does not count."""
        self._closed = self.seconds
        self._start = self._last = at

    def passed(self, at: float) -> None:
        """Note the time of an event. If the clock was set back, no time is subtracted."""
        if not self._start:
            self._start = at
        if at > self._last:
            self._last = at
