"""Files that appear completely or not at all, and survive a power cut."""

import contextlib
import fcntl
import os
import secrets
import sys
from pathlib import Path

from dgm.archive.lock import error_of_write


def write_durably(path: Path, data: bytes, scratch_prefix: str = ".") -> None:
    """Put ``data`` at ``path`` in one step, replacing any existing file; return when it is on disk.

    A process that dies half-way leaves a file with a random name that begins with ``scratch_prefix``.

    Raises:
        Infrastructure: the disk is full or failing; ``path`` is unchanged.
        UserError: the folder is read-only.
    """
    draft = path.with_name(scratch_prefix + secrets.token_hex(6))
    try:
        make_folder(path.parent)
        with draft.open("xb") as file:
            file.write(data)
            file.flush()
            _sync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            raise error_of_write(path, error) from error
        raise


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, each durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    """Return when all is on the disk; on a Mac, ``fsync`` leaves it in the disk's own memory."""
    if sys.platform == "darwin":
        # A file system of the network need not know it.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)
