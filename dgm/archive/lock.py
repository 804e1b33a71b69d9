"""One writer per run: an advisory lock that the kernel releases when its holder dies for any reason.

A holder's file identifies its machine. Three questions are asked, and each has a domain of its own:

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

import contextlib
import ctypes
import errno
import fcntl
import functools
import hashlib
import hmac
import json
import os
import re
import socket
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dgm.bounded_reading import parse_json
from dgm.errors import ArchiveBusy, Infrastructure, UserError

STOP_FILE = "stop.json"
"""File beside a lock that asks its holder to end; it holds for one holder only."""
MAX_BYTES = 1_000
"""Maximum size of a lock's file in bytes."""
_PAUSES_S = (0.001, 0.01, 0.05)


class Holder(NamedTuple):
    """A process that took the lock last; whether it still holds it is the kernel's to say."""

    pid: int
    host: str
    """Name of its host, for people. A stranger may have written it: not neutralised."""
    is_reachable: bool
    """True if this process sees the other one under the number ``pid``."""
    is_known: bool
    """True if the lock can be asked here: the holder runs on the same kernel."""


def describe_this_process() -> bytes:
    """Return the content of a lock's file that this process holds."""
    return json.dumps(
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "machine": machine_name(),
            "boot": boot(),
            "pids": pid_space(),
        }
    ).encode()


def parse_holder(data: bytes) -> Holder:
    """Return the holder that a lock's file names.

    Raises:
        ValueError: it names none.
    """
    try:
        record = parse_json(data)
        pid, host, machine = int(record["pid"]), str(record["host"]), record["machine"]
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"no holder of a lock: {error}") from error
    is_same_boot = bool(boot()) and record.get("boot") == boot()
    is_reachable = record.get("pids") == pid_space()
    return Holder(pid, host, is_reachable, machine == machine_name() or is_same_boot)


class WriterLock:
    """A lock held from construction to ``close``. The file stays; only the lock on it counts."""

    def __init__(self, path: Path) -> None:
        """Acquire the lock.

        Raises:
            ArchiveBusy: another process holds the lock; names its pid and host.
            UserError: the folder cannot be written.
        """
        self._request = path.with_name(STOP_FILE)
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise error_of_write(path, error) from error
        try:
            _take(self._fd)
            self._remove_request()
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, describe_this_process(), 0)
        except BlockingIOError as error:
            message = f"{path.parent}: already being written by {self._read_holder()}; stop that one first"
            os.close(self._fd)
            raise ArchiveBusy(message) from error
        except OSError as error:
            os.close(self._fd)
            raise error_of_write(path, error) from error

    def close(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            self._remove_request()
            os.close(self._fd)
            self._fd = -1

    def _remove_request(self) -> None:
        with contextlib.suppress(OSError):
            self._request.unlink(missing_ok=True)

    def _read_holder(self) -> str:
        try:
            holder = parse_holder(os.pread(self._fd, MAX_BYTES, 0))
        except ValueError:
            return "another process"
        return f"pid {holder.pid} on {holder.host}"


@contextmanager
def keep_writers_out(path: Path) -> Iterator[None]:
    """Hold the lock while something is removed; the file still names the last writer.

    Raises:
        ArchiveBusy: a process is writing.
        UserError: the folder cannot be written.
    """
    try:
        held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise error_of_write(path, error) from error
    try:
        try:
            _take(held)
        except BlockingIOError as error:
            raise ArchiveBusy(f"{path.parent}: a process writes it; stop that one first") from error
        yield
    finally:
        os.close(held)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock; True also if it cannot be asked."""
    try:
        asking = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(asking, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(asking)
    return False


def _take(descriptor: int) -> None:
    """Take the lock.

    Whoever asks ``is_locked`` holds it for a moment, so that the first refusals mean nothing.

    Raises:
        BlockingIOError: another process holds it.
    """
    for pause_s in _PAUSES_S:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(pause_s)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def error_of_write(path: Path, error: OSError) -> UserError | Infrastructure:
    """Return the error for a file that could not be written: the user's to fix, or retryable."""
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return UserError(f"{path.parent}: is read-only; copy the run elsewhere or change its permissions")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return UserError(f"{path.parent}: no such folder")
    return Infrastructure(error.errno, f"cannot write {path}: {error.strerror}")


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
            machine_id = file.read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            continue
        if _ID.fullmatch(machine_id):
            container = "" if pid_namespace == _FIRST_PID_NAMESPACE else socket.gethostname()
            named = hmac.new(bytes.fromhex(machine_id), f"dgm {container}".encode(), hashlib.sha256)
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
    host_uuid = (ctypes.c_ubyte * 16)()
    wait = (ctypes.c_long * 2)(1, 0)
    return f"mac-{uuid.UUID(bytes=bytes(host_uuid))}" if ask(host_uuid, wait) == 0 else ""
