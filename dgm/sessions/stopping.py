"""The end of a running search, asked for from outside its process."""

import os
import signal
import time
from pathlib import Path

from dgm.archive.history import writer
from dgm.errors import UserError

PAUSE_S = 0.5
"""Time between the two signals that stop a search at once, in seconds."""


def stop_run(folder: Path, *, now: bool = False) -> int | None:
    """Ask the process that writes a run to end in good order; do not wait for it.

    Args:
        folder: of the run.
        now: do not let it wait for the steps that are under way.

    Returns:
        The id of the process; None if no process writes the run.

    Raises:
        UserError: the process is on another machine or in another container, or belongs to another user.
    """
    holder, name = writer(folder), folder.resolve().name
    if holder is None:
        return None
    pid = holder.pid
    if not holder.is_reachable:
        raise UserError(f"{name} is running on {holder.host} (pid {pid}); stop it there")
    _terminate(pid, name)
    if now:
        time.sleep(PAUSE_S)
        _terminate(pid, name)
    return pid


def _terminate(pid: int, name: str) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise UserError(f"{name} is run by another user (pid {pid}); stop it as that user") from error
