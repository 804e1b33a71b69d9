"""The bulk data of a run, content-addressed and compressed: transcripts, patches, test logs.

An event names a trace by the SHA-256 of its bytes. So equal traces are stored once, and damage is detected. A trace is
on disk before ``put`` returns; only then may an event name it.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dgm.archive.durable import sync_folder, write_durably
from dgm.archive.event_fields import DIGEST
from dgm.bounded_reading import open_file, parse_json, refuse_odd_values
from dgm.domain import Digest
from dgm.errors import ArchiveCorrupt, UserError

DEFAULT_LIMIT = 1_000_000
"""Maximum size of a stored trace in bytes, unless the caller sets another one."""
MAX_BYTES = 256_000_000
"""Maximum size of any trace in bytes; reading stops there."""
_PIECE = 1 << 20


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
        data = data if limit is None else shorten_data(data, limit)
        digest = name_of(data)
        path = self._path(digest)
        if path.exists():
            # The process that wrote it may not have synced the folder yet.
            sync_folder(path.parent)
        else:
            write_durably(path, zlib.compress(data))
        return digest

    def get(self, digest: Digest) -> bytes:
        """Return the data stored under ``digest``.

        Raises:
            ArchiveCorrupt: the trace is missing, or differs from what was stored.
        """
        return b"".join(self.pieces(digest))

    def check(self, digest: Digest) -> None:
        """Read a trace in pieces and forget it; raise like ``get``."""
        for _ in self.pieces(digest):
            pass

    def pieces(self, digest: Digest) -> Iterator[bytes]:
        """Yield the data stored under ``digest`` in pieces; its hash is checked after the last one.

        Raises:
            ArchiveCorrupt: the trace is missing, larger than ``MAX_BYTES``, or differs from what was stored.
        """
        path = self._path(digest)
        if path.parent.is_symlink() or self._folder.is_symlink():
            raise ArchiveCorrupt(f"{path}: below a link, which is not followed; put the folder itself there")
        hashed = hashlib.sha256()
        try:
            with open_file(path) as file:
                for piece in inflate(iter(lambda: file.read(_PIECE), b""), MAX_BYTES):
                    hashed.update(piece)
                    yield piece
        except FileNotFoundError as error:
            raise ArchiveCorrupt(f"{path}: trace {digest} is missing") from error
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from error
        except zlib.error as error:
            raise ArchiveCorrupt(f"{path}: trace {digest} is damaged ({error})") from error
        if hashed.hexdigest() != digest:
            raise ArchiveCorrupt(f"{path}: trace {digest} is damaged (its content has another hash)")

    @contextmanager
    def reading(self, digest: Digest) -> Iterator[Any]:
        """Yield the JSON of a trace; what the caller does with a value of another form raises ``ArchiveCorrupt``.

        Raises:
            ArchiveCorrupt: the trace is missing, damaged, not JSON, or not of the form that the caller expects.
        """
        data = self.get(digest)
        with refuse_odd_values(self._path(digest)):
            yield parse_json(data)

    def _path(self, digest: Digest) -> Path:
        if not DIGEST.fullmatch(digest):
            raise ArchiveCorrupt(f"{self._folder}: {digest[:80]!r} is not the name of a trace")
        return self._folder / digest[:2] / f"{digest[2:]}.z"


def inflate(pieces: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """Yield the content of one zlib stream, in pieces of at most a megabyte.

    Raises:
        zlib.error: the stream is damaged, ends early, goes on behind its end, or holds more than ``most_bytes``.
    """
    unzip, left = zlib.decompressobj(), most_bytes
    for packed in pieces:
        if unzip.eof:
            raise zlib.error("data behind its end")
        while packed:
            piece = unzip.decompress(packed, _PIECE)
            packed = unzip.unconsumed_tail
            left -= len(piece)
            if left < 0:
                raise zlib.error(f"more than {most_bytes} bytes")
            yield piece
    while piece := unzip.decompress(unzip.unconsumed_tail, _PIECE):
        left -= len(piece)
        if left < 0:
            raise zlib.error(f"more than {most_bytes} bytes")
        yield piece
    if not unzip.eof or unzip.unused_data:
        raise zlib.error("it ends too early" if not unzip.eof else "data behind its end")


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
