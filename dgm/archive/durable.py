"""Files that appear whole or not at all, and are still there after a power cut."""

import os
import secrets
from pathlib import Path

from dgm.archive.lock import unwritable


def write_durably(path: Path, data: bytes, scratch_prefix: str = ".") -> None:
    """Puts ``data`` at ``path`` in one step, replacing what is there; returns when it is on disk.

    A process that dies half-way leaves a file of random name that begins with ``scratch_prefix``.

    Raises:
        Infrastructure: the disk is full or failing; ``path`` is as it was.
        UserError: the folder is read-only.
    """
    scratch = path.with_name(scratch_prefix + secrets.token_hex(6))
    try:
        make_folder(path.parent)
        try:
            with scratch.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error


def make_folder(folder: Path) -> None:
    """Makes a folder and what is missing above it, each durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
