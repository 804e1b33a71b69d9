"""Files that appear completely or not at all, and survive a power cut."""

import contextlib
import fcntl
import os
import secrets
import sys
from collections.abc import Mapping
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
    write_all_durably({path: data}, scratch_prefix)


def write_all_durably(files: Mapping[Path, bytes], scratch_prefix: str = ".") -> None:
    """Write each file like ``write_durably``.

    If it raises, some files may be replaced and others unchanged.

    All files are written before the first is synced, so that the file system can commit them together.
    """
    path = Path()
    drafts: dict[Path, Path] = {}
    try:
        with contextlib.ExitStack() as opened:
            descriptors = []
            for path, data in files.items():
                make_folder(path.parent)
                draft = path.with_name(scratch_prefix + secrets.token_hex(6))
                file = opened.enter_context(draft.open("xb"))
                drafts[path] = draft
                file.write(data)
                file.flush()
                descriptors.append(file.fileno())
            for descriptor in descriptors:
                _sync(descriptor)
        for path, draft in drafts.items():
            draft.replace(path)
        for folder in dict.fromkeys(path.parent for path in files):
            sync_folder(folder)
    except BaseException as error:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
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


def _sync(descriptor: int) -> None:
    """Return when all is on the disk; on a Mac, ``fsync`` leaves it in the disk's own memory."""
    if sys.platform == "darwin":
        # A file system of the network need not know it.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)
