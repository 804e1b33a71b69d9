"""Where a thread that works in pure Python waits while a person presses keys: it would hold up what they see."""

import time

from dgm.archive.fold import PAUSE_ROWS
from dgm.errors import DgmError

QUIET_S = 0.1
"""How long after the last key the work goes on."""
_LOOK_S = 0.01


class Closed(DgmError):
    """The browser is being left, or the run is not read yet: there is no answer."""


class Gate:
    """Passed by the thread that works every few rows, held by the one that draws."""

    def __init__(self) -> None:
        self.rows = 0
        """How many have passed, about."""
        self._until = 0.0
        self._closed = False

    def hold(self) -> None:
        """Nobody passes for a moment."""
        self._until = time.monotonic() + QUIET_S

    def close(self) -> None:
        """Nobody passes any more."""
        self._closed = True

    def passed(self) -> None:
        """For ``fold(pause=…)``: waits while the gate is held.

        Raises:
            Closed: the work is not wanted any more.
        """
        self.rows += PAUSE_ROWS
        while time.monotonic() < self._until and not self._closed:
            time.sleep(_LOOK_S)
        if self._closed:
            raise Closed("the browser was left")
