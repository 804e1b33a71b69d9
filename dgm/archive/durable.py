"""Files that appear completely or not at all, and survive a power cut."""

import contextlib
import fcntl
import os
import secrets
import sys
from pathlib import Path

from dgm.archive.lock import error_of_write
from dgm.errors import UserError


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


def make_runs_folder(folder: Path) -> None:
    """Make a folder for runs if it is missing; inside a git repository, let git ignore all that it will hold.

    Raises:
        UserError: it cannot be made.
    """
    if folder.is_dir():
        return
    try:
        make_folder(folder)
        if any((above / ".git").exists() for above in folder.absolute().parents):
            (folder / ".gitignore").write_text("*\n")
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror}") from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    with path.open("rb") as file:
        _sync(file.fileno())


def _sync(descriptor: int) -> None:
    """Return when all is on the disk; on a Mac, ``fsync`` leaves it in the disk's own memory."""
    if sys.platform == "darwin":
        # A file system of the network need not know it.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)
