"""Positions in the log of receivers that cannot be asked for them, in a folder beside the run."""

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dgm.archive.durable import make_folder, write_durably
from dgm.archive.lock import error_of_write
from dgm.bounded_reading import read_file
from dgm.errors import ArchiveBusy

FOLDER = "companion"
"""In a run's folder; it holds no address, and is not packed."""
_LOCK = "lock"
_MAX_BYTES = 20


class Cursor:
    """The position of one receiver: the number of the last event that it has, or what else counts up."""

    def __init__(self, folder: Path, receiver: str, start: int = 0) -> None:
        """Read the position.

        Args:
            folder: the run.
            receiver: tells the receiver from all others; only a digest of it is written.
            start: position of a receiver that has none.
        """
        self._path = folder / FOLDER / hashlib.sha256(receiver.encode()).hexdigest()[:16]
        try:
            self.seq = int(read_file(self._path, _MAX_BYTES))
        except (OSError, ValueError):
            self.seq = start

    def move(self, seq: int) -> None:
        """Make a new position durable."""
        if seq != self.seq:
            write_durably(self._path, str(seq).encode())
            self.seq = seq


@contextmanager
def hold_deliveries(folder: Path) -> Iterator[None]:
    """Be the only process that delivers this run, until the context ends.

    Raises:
        ArchiveBusy: another process delivers it.
        UserError: the folder is read-only.
    """
    path = folder / FOLDER / _LOCK
    try:
        make_folder(path.parent)
        file = path.open("ab")
    except OSError as error:
        raise error_of_write(path, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ArchiveBusy(f"{folder.name}: another process delivers it to sinks") from error
        yield
