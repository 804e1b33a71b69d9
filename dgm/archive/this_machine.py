"""The identity of this machine: what locks and sandboxes of its processes carry.

Three questions are asked, and each has a domain of its own:

* **Is it from this machine?** (``machine_name``: labels of sandboxes, holders of locks.) The answer must survive a new
  start of the machine, another name by DHCP and another network, so that what a power cut left is known to be ours. It
  is an id that the system keeps on its disk. Clones of a virtual machine have one each where they are set up as such.
  Containers of one image may share the file; engines give each a host name of its own, which is added there. With the
  host's own name (``--uts host``) they cannot be told apart by it.
* **Can the kernel say whether a lock's holder lives?** (``boot``.) A lock is the kernel's, which all containers share.
  So this holds wherever the boot is the same, even if the machine is another one by its id.
* **Is the holder's pid a process that can be seen and signalled here?** (``pid_space``.) Only in the same namespace of
  pids of the same boot: a number alone is some other process in another container.
"""

import ctypes
import functools
import hashlib
import hmac
import re
import socket
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path

_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_ID = re.compile(r"[0-9a-f]{32}")
_FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""Number that Linux gives the namespace of pids outside of all containers."""


@functools.cache
def machine_name() -> str:
    """Return the id of this machine, or of this container: the host's name only where the system has no id."""
    known = _find_mac_id() if sys.platform == "darwin" else _find_linux_id(_ID_FILES, _find_pid_namespace())
    return known or socket.gethostname()


@functools.cache
def boot() -> str:
    """Return the id of the kernel's present boot; empty if it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@functools.cache
def pid_space() -> str:
    """Return the name of the space in which this process's pid counts: of the boot or, without one, of the machine."""
    return f"{boot() or machine_name()}/{_find_pid_namespace()}"


def _find_linux_id(files: Iterable[Path], pid_namespace: int) -> str:
    """Return an id that follows from the machine's, which is not to be shown to others; empty if there is none."""
    for file in files:
        try:
            found = file.read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            continue
        if _ID.fullmatch(found):
            container = "" if pid_namespace == _FIRST_PID_NAMESPACE else socket.gethostname()
            named = hmac.new(bytes.fromhex(found), f"dgm {container}".encode(), hashlib.sha256)
            return f"linux-{named.hexdigest()[:32]}"
    return ""


def _find_pid_namespace() -> int:
    """Return the number of this process's namespace of pids; 0 if it is not known."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _find_mac_id() -> str:
    """Return the id that the system gives the hardware; empty if it gives none."""
    try:
        ask = ctypes.CDLL(None, use_errno=True).gethostuuid
    except AttributeError:
        return ""
    found = (ctypes.c_ubyte * 16)()
    wait = (ctypes.c_long * 2)(1, 0)
    return f"mac-{uuid.UUID(bytes=bytes(found))}" if ask(found, wait) == 0 else ""
