"""The bulk data of a run, content-addressed and compressed: transcripts, patches, test logs.

An event names a trace by the SHA-256 of its bytes. So equal traces are stored once, and damage is detected.
"""

import hashlib
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dgm.archive.log import Log
from dgm.bounded_reading import parse_json, refuse_odd_values
from dgm.domain import Digest
from dgm.errors import ArchiveCorrupt

DEFAULT_LIMIT = 1_000_000
"""Maximum size of a stored trace in bytes, unless the caller sets another one."""


class Traces:
    """The traces of a run, each a zlib stream in the table ``blobs`` of its log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()

    def put(self, data: bytes, limit: int | None = DEFAULT_LIMIT) -> Digest:
        """Keep ``data`` until an event that names it is appended, and return its name.

        Above ``limit`` bytes (``None``: no limit) the middle is replaced by a line that states how much was cut.
        """
        data = data if limit is None else shorten_data(data, limit)
        digest = name_of(data)
        packed = zlib.compress(data)
        with self._lock:
            if not self.has(digest):
                self._log.pending[digest] = self._log.last, packed
        return digest

    def drop_unnamed(self, before: int) -> None:
        """Drop the traces that no event names and that were last put before event number ``before``."""
        with self._lock:
            for digest, (last, _) in list(self._log.pending.items()):
                if last < before:
                    del self._log.pending[digest]

    def has(self, digest: Digest) -> bool:
        """Return whether a trace is in the log."""
        return bool(self._log.query("SELECT 1 FROM blobs WHERE sha256 = ?", (digest,)))

    def get(self, digest: Digest) -> bytes:
        """Return the data stored under ``digest``.

        Raises:
            ArchiveCorrupt: the trace is missing, or differs from what was stored.
        """
        packed = self._log.pending.get(digest, (0, None))[1]
        if packed is None:
            rows = self._log.query("SELECT zlib FROM blobs WHERE sha256 = ?", (digest,))
            if not rows:
                raise ArchiveCorrupt(f"{self._log.path}: trace {digest[:80]} is missing")
            packed = rows[0][0]
        try:
            data = zlib.decompress(packed)
        except (zlib.error, TypeError) as error:
            raise ArchiveCorrupt(f"{self._log.path}: trace {digest} is damaged ({error})") from error
        if name_of(data) != digest:
            raise ArchiveCorrupt(
                f"{self._log.path}: trace {digest} is damaged (its content has another hash)"
            )
        return data

    @contextmanager
    def reading(self, digest: Digest) -> Iterator[Any]:
        """Yield the JSON of a trace; what the caller does with a value of another form raises ``ArchiveCorrupt``.

        Raises:
            ArchiveCorrupt: the trace is missing, damaged, not JSON, or not of the form that the caller expects.
        """
        data = self.get(digest)
        with refuse_odd_values(f"{self._log.path}: trace {digest}"):
            yield parse_json(data)


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
