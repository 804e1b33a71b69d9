"""One writer per run: an advisory lock that the kernel releases when its holder dies for any reason."""

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dgm.archive.this_machine import boot, machine_name, pid_space
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
