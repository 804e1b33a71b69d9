"""One writer per run: an advisory lock that the kernel releases when its holder dies for any reason."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dgm.archive.live_file import remove_live_file
from dgm.archive.lock_holder import LARGEST, describe_this_process, parse_holder
from dgm.errors import ArchiveBusy, Infrastructure, UserError

STOP_FILE = "stop.json"
"""File beside a lock that asks its holder to end; it holds for one holder only."""
_PAUSES_S = (0.001, 0.01, 0.05)


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
            remove_live_file(self._request)
            self._write_holder()
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
            remove_live_file(self._request)
            os.close(self._fd)
            self._fd = -1

    def _write_holder(self) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, describe_this_process(), 0)

    def _read_holder(self) -> str:
        try:
            holder = parse_holder(os.pread(self._fd, LARGEST, 0))
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
