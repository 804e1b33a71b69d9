"""The bulk data of a run, content-addressed and compressed: model exchanges, transcripts, patches, test logs.

An event names a trace by the SHA-256 of its bytes. So equal traces are stored once, and damage is detected. A trace is
on disk before ``put`` returns; only then may an event name it.
"""

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from dgm.archive.durable import sync_folder, write_all_durably
from dgm.domain import Digest
from dgm.errors import ArchiveCorrupt, UserError

DEFAULT_LIMIT = 1_000_000
"""Maximum size of a stored trace in bytes, unless the caller sets another one."""


class Traces:
    """The folder ``traces/`` of a run: ``ab/cdef….z``, each a zlib stream."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes, limit: int | None = DEFAULT_LIMIT) -> Digest:
        """Store ``data`` and return the name of the stored trace.

        Above ``limit`` bytes (``None``: no limit) the middle is replaced by a line that states how much was cut.

        Raises:
            Infrastructure: the disk is full or failing.
            UserError: the run is read-only.
        """
        return self.put_all([data if limit is None else shorten_data(data, limit)])[0]

    def put_all(self, traces: Iterable[bytes]) -> Sequence[Digest]:
        """Store several whole traces faster than one by one; raises like ``put``."""
        digests: list[Digest] = []
        new: dict[Path, bytes] = {}
        for data in traces:
            digest = name_of(data)
            digests.append(digest)
            path = self._path(digest)
            if path in new:
                continue
            if path.exists():
                # The process that wrote it may not have synced the folder yet.
                sync_folder(path.parent)
            else:
                new[path] = zlib.compress(data)
        write_all_durably(new)
        return digests

    def get(self, digest: Digest) -> bytes:
        """Return the data stored under ``digest``.

        Raises:
            ArchiveCorrupt: the trace is missing, or differs from what was stored.
        """
        path = self._path(digest)
        try:
            data = zlib.decompress(path.read_bytes())
        except FileNotFoundError as error:
            raise ArchiveCorrupt(f"{path}: trace {digest} is missing") from error
        except zlib.error as error:
            raise ArchiveCorrupt(f"{path}: trace {digest} is damaged ({error})") from error
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from error
        if name_of(data) != digest:
            raise ArchiveCorrupt(f"{path}: trace {digest} is damaged (its content has another hash)")
        return data

    def _path(self, digest: Digest) -> Path:
        return self._folder / digest[:2] / f"{digest[2:]}.z"


def name_of(data: bytes) -> Digest:
    """Return the name of a trace with exactly these bytes."""
    return Digest(hashlib.sha256(data).hexdigest())


def shorten_data(data: bytes, limit: int) -> bytes:
    """Return at most ``limit`` bytes of ``data``, and one line: head, a note of what is missing, and tail."""
    if len(data) <= limit:
        return data
    tail = limit // 4
    head = limit - tail
    marker = b"\n[%d bytes cut]\n" % (len(data) - limit)
    return data[:head] + marker + data[len(data) - tail :]
