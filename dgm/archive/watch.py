"""Wall time of a run over all sessions, without the time between them."""

from dataclasses import dataclass


@dataclass(slots=True)
class Watch:
    """A fold of the times of events, in Unix seconds."""

    began: float = 0.0
    """Unix time at which the last session began; 0 before the first event."""
    last: float = 0.0
    """Unix time of the last event; 0 before the first one."""
    _closed: float = 0.0

    @property
    def seconds(self) -> float:
        """Summed time from first to last event of each session, in seconds."""
        return self._closed + self.last - self.began

    def begin(self, at: float) -> None:
        """Begin a session; the time since the last one does not count."""
        self._closed = self.seconds
        self.began = self.last = at

    def passed(self, at: float) -> None:
        """Note the time of an event. If the clock was set back, no time is subtracted."""
        if not self.began:
            self.began = at
        if at > self.last:
            self.last = at
