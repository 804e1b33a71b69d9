"""``events.db``: an appended event is final, survives the death of the process, and never changes.

SQLite runs in WAL mode with ``synchronous=FULL``: a commit is on disk before ``append`` returns. There is one writer,
and any number of readers in other processes meanwhile. ``Tree`` interprets the events.
"""

import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from dgm.archive.codec import decode, encode
from dgm.archive.events import ActionStarted, Event, ModelCalled, Recorded, VerdictWithdrawn
from dgm.archive.lock import WriterLock
from dgm.archive.log_file import (
    StepLimit,
    open_to_read,
    open_to_write,
    translate_errors,
    upgrade,
    version_of,
)
from dgm.domain import Action
from dgm.errors import ArchiveCorrupt, DgmError, UserError

Row = tuple[int, float, str, int | None, str]
"""The columns ``seq``, ``at``, ``kind``, ``action`` and ``body``."""
_CHUNK = 5_000
_CHUNK_CHARS = 20_000_000
"""Number of characters of bodies after which a chunk ends early."""
_LATEST = 1e11
"""Unix times of events lie before it; in the year 5138."""
_AHEAD = 1_000
"""Actions are numbered in the order of their starts: an id exceeds the number of its event by less than this."""
_WITHDRAWALS_SINCE = 4
"""First schema whose logs may hold withdrawn verdicts; older logs lack the index of them."""
_NEWEST = "SELECT coalesce(max(seq), 0) FROM events"
_COLUMNS = "SELECT seq, at, kind, action, body FROM events"
Write = Callable[[sqlite3.Connection], None]
"""Writes to another table of the log, in a transaction."""


class EventStore:
    """The log of one run. ``with EventStore.open(…) as store`` closes it."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        clock: Callable[[], float],
        writer: sqlite3.Connection | None = None,
        lock: WriterLock | None = None,
    ) -> None:
        self._path = path
        self._connection = connection
        self._writer = writer or connection
        """Another connection: a thread may commit, and wait for the disk, while others read."""
        self._lock = lock
        self._clock = clock
        self._limit = StepLimit(path, connection)
        self._write_limit = StepLimit(path, writer) if writer else self._limit
        self._is_current = False
        """True once an event was written: the log then has the tables and indices of this version."""
        with self._statement():
            self._last = int(connection.execute(_NEWEST).fetchone()[0])

    @classmethod
    def open(cls, path: Path, *, write: bool, clock: Callable[[], float] = time.time) -> Self:
        """Open the log at ``path``; a writer creates it if it does not exist.

        Raises:
            ArchiveBusy: another process is writing it.
            ArchiveCorrupt: it is not a log, or is damaged; names the first fault.
            UserError: a newer dgm wrote it, it does not exist, or ``write`` is set and the folder is read-only.
            Infrastructure: the disk is full.
        """
        if not write:
            return cls(path, open_to_read(path), clock)
        lock = WriterLock(path.with_suffix(".lock"))
        try:
            with translate_errors(path):
                writer = open_to_write(path)
                return cls(path, open_to_read(path), clock, writer, lock)
        except DgmError:
            lock.close()
            raise

    @property
    def last(self) -> int:
        """Number of the last event that this process appended or found on opening; 0 if there is none."""
        return self._last

    def append(self, event: Event) -> Recorded:
        """Make one event durable.

        Raises:
            Infrastructure: the disk is full or failing; nothing was written, and the append can be repeated.
            DgmError: the log already has this verdict or this model call.
        """
        return self.append_many((event,))[0]

    def append_many(self, events: Iterable[Event], write: Write | None = None) -> Sequence[Recorded]:
        """Make all of the events durable in one commit with what ``write`` does, or none; raises like ``append``."""
        recorded = [Recorded(self._last + n, self._clock(), event) for n, event in enumerate(events, 1)]
        rows = [(item.seq, item.at, *encode(item.event)) for item in recorded]
        with self._statement(self._write_limit):
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                if not self._is_current:
                    upgrade(self._writer)
                self._writer.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
                if write:
                    write(self._writer)
                self._writer.execute("COMMIT")
                self._is_current = True
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
        self._last += len(rows)
        return recorded

    def rows(self, after: int = 0, most: int | None = None) -> Iterator[Row]:
        """Yield the undecoded events after number ``after`` in order, up to the last one at the time of reading.

        ``most`` limits their number; None: no limit.

        No transaction stays open between rows, so a slow reader never blocks the writer.

        Raises:
            ArchiveCorrupt: an event is unreadable or missing.
        """
        query = f"{_COLUMNS} WHERE seq > ? ORDER BY seq LIMIT ?"
        left = sys.maxsize if most is None else most
        while left > 0:
            wanted = min(_CHUNK, left)
            chunk, more = self._read_chunk(query, after, wanted)
            whole = not chunk or chunk[-1][0] == after + len(chunk)
            for number, row in enumerate(chunk, after + 1) if not whole else ():
                if row[0] != number:
                    raise ArchiveCorrupt(
                        f"{self._path}: event {number} is missing (found {row[0]} in its place)"
                    )
            yield from chunk
            after += len(chunk)
            left -= len(chunk)
            if not more:
                return

    def _read_chunk(self, query: str, after: int, wanted: int) -> tuple[list[Row], bool]:
        """Return the first rows, at most ``wanted`` and fewer if they are large, and whether there may be more."""
        chunk: list[Row] = []
        left = _CHUNK_CHARS
        with self._statement(), closing(self._connection.execute(query, (after, wanted))) as rows:
            for row in rows:
                self._check(row)
                chunk.append(row)
                left -= len(row[4])
                if left < 0:
                    return chunk, True
        return chunk, len(chunk) == wanted

    def _check(self, row: Row) -> None:
        """Raise if a column holds what no event has; SQLite lets any column hold any type."""
        seq, at, kind, action, body = row
        if not (
            type(at) is float
            and 0.0 <= at < _LATEST
            and type(kind) is type(body) is str
            and (action is None or (type(action) is int and 0 <= action < seq + _AHEAD))
        ):
            raise ArchiveCorrupt(
                f"{self._path}: event {seq}: a column holds what no event has; restore the run"
            )

    def read(self, after: int = 0, most: int | None = None) -> Iterator[Recorded]:
        """Yield the events after number ``after`` like ``rows``.

        To follow a writer, call it again with the last ``seq``.
        """
        return map(self.decoded, self.rows(after, most))

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        """Hold one view of the log: reads inside the context do not see later events. For short work."""
        with self._statement():
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            with self._statement():
                self._connection.execute("COMMIT")

    def select(
        self, condition: str, parameters: Sequence[float | str] = (), *, index: str = ""
    ) -> Iterator[Recorded]:
        """Yield the events that a SQL condition on the columns of ``events`` selects, in order.

        Args:
            condition: the condition.
            parameters: its values.
            index: the index that must be used; empty: SQLite chooses.

        Raises:
            ArchiveCorrupt: an event is unreadable.
        """
        by = f"INDEXED BY {index}" if index else ""
        with self._statement():
            rows = self._connection.execute(f"{_COLUMNS} {by} WHERE {condition} ORDER BY seq", parameters)
            return map(self.decoded, rows.fetchall())

    def events_of_action(self, action: int) -> Sequence[Recorded]:
        """Return all events of one action, in order."""
        return list(self.select("action = ?", (action,)))

    def starts_of_action(self, action: int) -> Sequence[tuple[int, Action]]:
        """Return each start of an action: the number of its event, and what was started."""
        return [
            (item.seq, item.event.action)
            for item in self.select("action = ? AND kind = 'action_started'", (action,))
            if isinstance(item.event, ActionStarted)
        ]

    def graded(self, agent: int, until: int = sys.maxsize) -> Sequence[Recorded]:
        """Return the resolved and unresolved evaluations of one agent, in order.

        Args:
            agent: the agent.
            until: number of an event; verdicts withdrawn by then are left out.
        """
        verdicts = "kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid'"
        gone = self.withdrawn(until)
        found = self.select(f"{verdicts} AND json_extract(body, '$.agent') = ?", (agent,))
        return [item for item in found if item.seq not in gone]

    def withdrawals(self, until: int = sys.maxsize) -> Sequence[VerdictWithdrawn]:
        """Return the verdicts that were withdrawn by event number ``until``, in order."""
        with self._statement():
            if version_of(self._connection) < _WITHDRAWALS_SINCE:
                return ()
        found = self.select("kind = 'verdict_withdrawn' AND seq <= ?", (until,), index="withdrawn")
        return [item.event for item in found if isinstance(item.event, VerdictWithdrawn)]

    def withdrawn(self, until: int = sys.maxsize) -> AbstractSet[int]:
        """Return the numbers of ``TaskGraded`` events whose verdicts were withdrawn by event number ``until``."""
        return {event.graded for event in self.withdrawals(until)}

    def calls(self, action: int) -> Sequence[ModelCalled]:
        """Return the answered model calls of an action, ordered by number."""
        found = self.select("kind = 'model_called' AND action = ?", (action,))
        events = [item.event for item in found if isinstance(item.event, ModelCalled)]
        return sorted(events, key=lambda event: event.number)

    def newest(self) -> int:
        """Return the number of the current last event, whichever process appended it; 0 if there is none."""
        with self._statement():
            return int(self._connection.execute(_NEWEST).fetchone()[0])

    def query(
        self, sql: str, parameters: Sequence[float | str] | Mapping[str, float | str] = ()
    ) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a SQL query.

        It may use the tables ``events`` and ``calls``, and the views ``agents``, ``evaluations`` and ``spend``.

        Raises:
            UserError: this log cannot answer the query.
            ArchiveCorrupt: the log is damaged.
        """
        with self._statement():
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except (sqlite3.ProgrammingError, sqlite3.OperationalError) as error:
                if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF != sqlite3.SQLITE_ERROR:
                    raise
                raise UserError(f"{self._path}: {error}") from error

    def decoded(self, row: Row) -> Recorded:
        """Return a row as a value.

        Raises:
            ArchiveCorrupt: the row is not an event; names its number.
        """
        self._check(row)
        seq, at, kind, action, body = row
        try:
            return Recorded(seq, at, decode(kind, action, body))
        except ValueError as error:
            raise ArchiveCorrupt(f"{self._path}: event {seq}: {error}") from error

    @contextmanager
    def _statement(self, limit: StepLimit | None = None) -> Iterator[None]:
        (limit or self._limit).restart()
        with translate_errors(self._path):
            yield

    def close(self) -> None:
        """Close the file and let the next writer in."""
        self._connection.close()
        self._writer.close()
        if self._lock:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
