"""A request to end the work on a run, as a file beside its log, from any process or thread.

The process that writes the run looks for it. It gets no signal, because it may be somebody's program, and the request
reaches it in another container or on another machine too, wherever the folder is shared.
"""

from pathlib import Path

from dgm.archive.history import writer
from dgm.archive.live_file import write_live_file
from dgm.archive.lock import STOP_FILE
from dgm.archive.lock_holder import Holder
from dgm.bounded_reading import read_json
from dgm.errors import ArchiveCorrupt, UserError


def stop_run(folder: Path, *, now: bool = False) -> Holder | None:
    """Ask the process that writes a run to end in good order, or at once if it was asked before; do not wait for it.

    Args:
        folder: of the run.
        now: do not let it wait for the steps that are under way.

    Returns:
        The process; None if no process writes the run.

    Raises:
        UserError: the folder cannot be written, or an older version of dgm writes the run.
    """
    holder, name = writer(folder), folder.resolve().name
    if holder is None:
        return None
    if not holder.takes_requests:
        raise UserError(
            f"{name} is run by an older version of dgm (pid {holder.pid} on {holder.host}), which takes no requests; "
            "end it there, with Ctrl-C"
        )
    try:
        write_live_file(folder / STOP_FILE, {"now": now or read_stop_request(folder) is not None})
    except OSError as error:
        raise UserError(
            f"{folder / STOP_FILE}: cannot be written ({error.strerror}); stop {name} as the user who runs it "
            f"(pid {holder.pid} on {holder.host})"
        ) from error
    return holder


def read_stop_request(folder: Path) -> bool | None:
    """Return whether the work is to end at once, or None if it is not to end."""
    try:
        return read_json(folder / STOP_FILE)["now"] is True
    except (OSError, ArchiveCorrupt, ValueError, KeyError, TypeError):
        return None
