"""A gate where a pure Python thread waits while a person presses keys, because it would delay the display."""

import time

from dgm.archive.fold import PAUSE_ROWS
from dgm.errors import DgmError

QUIET_S = 0.1
"""Seconds after the last key until the work goes on."""
_LOOK_S = 0.01


class RunUnavailable(DgmError):
    """An error: the browser is being left, or the run is not read yet, so there is no answer."""


class ReadingGate:
    """A gate that the working thread passes every few rows, and that the drawing thread holds."""

    def __init__(self) -> None:
        self.rows = 0
        """Approximate number of rows that have passed."""
        self._until = 0.0
        self._closed = False

    def hold(self) -> None:
        """Stop the working thread for ``QUIET_S`` seconds."""
        self._until = time.monotonic() + QUIET_S

    def close(self) -> None:
        """End the work: from now on ``passed`` raises ``RunUnavailable``."""
        self._closed = True

    def passed(self) -> None:
        """Wait while the gate is held; for ``fold(pause=…)``.

        Raises:
            RunUnavailable: the work is not wanted any more.
        """
        self.rows += PAUSE_ROWS
        while time.monotonic() < self._until and not self._closed:
            time.sleep(_LOOK_S)
        if self._closed:
            raise RunUnavailable("the browser was left")
