"""The holder of a run's lock, as the lock's file names it."""

import json
import os
import socket
from typing import Any, NamedTuple

from dgm.archive.this_machine import boot, machine_name, pid_space
from dgm.bounded_reading import parse_json

LARGEST = 1_000
"""Maximum size of the file in bytes."""


class Holder(NamedTuple):
    """A process that took the lock last; whether it still holds it is the kernel's to say."""

    pid: int
    host: str
    """Name of its host, for people. A stranger may have written it: not neutralised."""
    is_reachable: bool
    """True if this process sees the other one under the number ``pid``."""
    is_known: bool
    """True if the lock can be asked here: the holder runs on the same kernel."""
    takes_requests: bool = False
    """True if it looks for requests to stop; older versions do not."""


def describe_this_process() -> bytes:
    """Return the file's content for this process."""
    return json.dumps(
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "machine": machine_name(),
            "boot": boot(),
            "pids": pid_space(),
            "takes_requests": True,
        }
    ).encode()


def parse_holder(data: bytes) -> Holder:
    """Return the holder that a file names.

    Files of older versions have only the pid and the host: its name, or a Mac's id.

    Raises:
        ValueError: it names none.
    """
    try:
        found = parse_json(data)
        pid, host = int(found["pid"]), str(found["host"])
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"no holder of a lock: {error}") from error
    if "machine" not in found:
        is_ours = host in (socket.gethostname(), machine_name())
        return Holder(pid, host, is_ours, is_ours)
    is_known = found["machine"] == machine_name() or _is_same(found.get("boot"), boot())
    is_reachable = _is_same(found.get("pids"), pid_space())
    return Holder(pid, host, is_reachable, is_known, found.get("takes_requests") is True)


def _is_same(given: Any, own: str) -> bool:  # noqa: ANN401  (a stranger's value)
    return bool(own) and given == own
