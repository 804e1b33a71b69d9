"""The parts of the screen of one agent, each a question to the log and a text that answers it.

``load`` is called on the thread that draws and takes what that knows; what it returns is called on another thread.
"""

from collections.abc import Callable

from dgm.errors import DgmError
from dgm.tui.bodies import Body, Missing

Load = Callable[[], Body]


def answered(what: str, load: Load) -> Body:
    """What was asked for; where it cannot be read, what is missing and why."""
    try:
        return load()
    except DgmError as error:
        return Missing(what, str(error))
    except OSError as error:
        return Missing(what, f"it cannot be read: {error.strerror or error}")
    except (ValueError, LookupError, TypeError) as error:
        # A trace that is whole, but not what dgm writes there.
        return Missing(what, f"it is not in the form that dgm writes: {error!r}")
