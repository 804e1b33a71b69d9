"""A name of this machine that stays the same while it runs: what locks and sandboxes of its processes carry."""

import ctypes
import functools
import socket
import sys
import uuid


@functools.cache
def machine_name() -> str:
    """Return the name: the host's, but on a Mac, whose name changes with the network, an id of the hardware."""
    return (_hardware_id() if sys.platform == "darwin" else "") or socket.gethostname()


def _hardware_id() -> str:
    """Return the id that the system gives the hardware; empty if it gives none."""
    try:
        ask = ctypes.CDLL(None, use_errno=True).gethostuuid
    except AttributeError:
        return ""
    found = (ctypes.c_ubyte * 16)()
    wait = (ctypes.c_long * 2)(1, 0)
    return f"mac-{uuid.UUID(bytes=bytes(found))}" if ask(found, wait) == 0 else ""
