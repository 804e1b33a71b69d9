"""Clocks: callables that return seconds."""


class ManualClock:
    """A clock that moves only when told to."""

    def __init__(self, now=0):
        self.now = now

    def __call__(self):
        return self.now

    def advance(self, seconds):
        """Move on by ``seconds``, which may not be negative."""
        if seconds < 0:
            raise ValueError("a clock does not run backwards")
        self.now += seconds
