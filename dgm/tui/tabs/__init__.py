"""The parts of the screen of one agent, each a question to the log and a text that answers it.

``load`` runs on the thread that draws and takes its state; the function that it returns runs on another thread.
"""

from collections.abc import Callable

from dgm.errors import DgmError
from dgm.tui.bodies import Body, UnreadableBody

Load = Callable[[], Body]
UNREADABLE = (DgmError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""Errors from reading a trace as dgm's own; a trace may be whole and hold anything."""


def load_or_explain(what: str, load: Load) -> Body:
    """Return the loaded text; where it cannot be read, a note with its name and the reason."""
    try:
        return load()
    except DgmError as error:
        return UnreadableBody(what, str(error))
    except OSError as error:
        return UnreadableBody(what, f"it cannot be read: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001  # of whatever kind: a trace may hold anything, such as 100,000 brackets
        return UnreadableBody(what, f"it is not in the form that dgm writes: {error!r}")
