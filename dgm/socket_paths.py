"""Addresses of sockets whose path may be longer than the system allows a socket's path to be."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dgm.errors import Infrastructure

_PATH_BYTES = 103
"""Maximum length on every system; Linux allows 107."""
_DESCRIPTORS = Path("/proc/self/fd")


@contextmanager
def short_address(path: Path) -> Iterator[str]:
    """Yield an address of the socket: its path, or, where that is too long, one by way of the folder's descriptor.

    Raises:
        Infrastructure: the path is too long for this system.
        OSError: the folder cannot be opened.
    """
    if len(os.fsencode(path)) <= _PATH_BYTES:
        yield os.fspath(path)
        return
    if not _DESCRIPTORS.is_dir():
        raise Infrastructure(
            f"{path}: longer than {_PATH_BYTES} bytes, the limit for a socket here: set TMPDIR to a shorter folder"
        )
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"{_DESCRIPTORS}/{folder}/{path.name}"
    finally:
        os.close(folder)
