"""Lines about preparations that take minutes, for whoever waits: packages that are installed, images that are built.

The command line prints them to standard error; a program sees them as records of the logger.
"""

import logging
import time

LOGGER = "dgm.preparing"
EVERY_S = 5.0
"""Seconds between two lines about one preparation, at least."""


class Preparation:
    """The lines about one preparation."""

    def __init__(self, what: str) -> None:
        """Begin a preparation, such as ``packages``; nothing is said until something takes time."""
        self._what = what
        self._log = logging.getLogger(LOGGER)
        self._began = time.monotonic()
        self._said_at = 0.0

    def say(self, words: str) -> None:
        """Say a line."""
        self._said_at = time.monotonic()
        self._log.info("%s: %s", self._what, words)

    def note(self, words: str) -> None:
        """Say a line, unless there was one just now."""
        if time.monotonic() - self._said_at >= EVERY_S:
            self.say(words)

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began
