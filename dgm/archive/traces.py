"""The bulk of a run, content-addressed and compressed: model exchanges, transcripts, patches, test logs.

An event names a trace by the SHA-256 of its bytes, so equal traces are stored once and a damaged one is
noticed. A trace is on disk before ``put`` returns; only then may an event name it.
"""

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from dgm.archive.durable import sync_folder, write_all_durably
from dgm.domain import Digest
from dgm.errors import ArchiveCorrupt, UserError

DEFAULT_LIMIT = 1_000_000
"""Bytes of a trace that are kept where the caller states no other bound."""


class Traces:
    """The folder ``traces/`` of a run: ``ab/cdef….z``, each a zlib stream."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes, limit: int | None = DEFAULT_LIMIT) -> Digest:
        """Stores ``data`` and returns the name of what was stored.

        Above ``limit`` bytes (``None``: no bound) the middle is replaced by a line that says how much was
        cut.

        Raises:
            Infrastructure: the disk is full or failing.
            UserError: the run is read-only.
        """
        return self.put_all([data if limit is None else shortened(data, limit)])[0]

    def put_all(self, traces: Iterable[bytes]) -> Sequence[Digest]:
        """Stores several whole traces for less than one by one; raises as ``put``."""
        digests: list[Digest] = []
        new: dict[Path, bytes] = {}
        for data in traces:
            digest = name_of(data)
            digests.append(digest)
            path = self._path(digest)
            if path in new:
                continue
            if path.exists():
                # Whoever put it there may not have come to this yet.
                sync_folder(path.parent)
            else:
                new[path] = zlib.compress(data)
        write_all_durably(new)
        return digests

    def get(self, digest: Digest) -> bytes:
        """What was stored under ``digest``.

        Raises:
            ArchiveCorrupt: the trace is missing, or is no longer what was stored.
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
    """What a trace of exactly these bytes is called."""
    return Digest(hashlib.sha256(data).hexdigest())


def shortened(data: bytes, limit: int) -> bytes:
    """At most ``limit`` bytes of ``data`` (and one line): head and tail, and between them what is missing."""
    if len(data) <= limit:
        return data
    tail = limit // 4
    head = limit - tail
    marker = b"\n[%d bytes cut]\n" % (len(data) - limit)
    return data[:head] + marker + data[len(data) - tail :]
