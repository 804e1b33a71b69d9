"""``run.db``: the events of a run, its model calls and its traces. An appended event is final and never changes.

SQLite runs in WAL mode with ``synchronous=FULL``: a commit is on disk before ``append`` returns. An event is one
transaction with the traces that it names and the call that it ends. There is one writer, and any number of readers in
other processes meanwhile. ``Tree`` interprets the events.

An event names a trace (a transcript, a patch, a test log) by the SHA-256 of its bytes. So equal traces are stored once,
and damage is detected.
"""

import hashlib
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from msgspec import Struct

from dgm.archive.events import (
    SCHEMA_VERSION,
    ActionStarted,
    Event,
    ModelCalled,
    Recorded,
    VerdictWithdrawn,
    action_of,
    decode,
    encode,
    kind_of,
    traces_of,
)
from dgm.archive.lock import WriterLock
from dgm.bounded_reading import parse_json, refuse_odd_values
from dgm.domain import Action, Digest
from dgm.errors import ArchiveCorrupt, ArchiveHeld, DgmError, Infrastructure, UserError

FILE = "run.db"
APPLICATION_ID = 0x64676D65
"""``dgme`` in the file's header: identifies a database as a run's, for ``file`` and for dgm."""
LATEST = 1e11
"""Unix times of events lie before it; in the year 5138."""
SCHEMA = f"""
CREATE TABLE events(
    seq INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    action INTEGER,
    body JSON NOT NULL
);
CREATE INDEX events_by_action ON events(action);
CREATE INDEX events_by_kind ON events(kind);
CREATE UNIQUE INDEX graded_once ON events(
    json_extract(body, '$.outcome.agent'), json_extract(body, '$.outcome.task'),
    json_extract(body, '$.outcome.attempt'), coalesce(json_extract(body, '$.again'), 0)
) WHERE kind = 'task_graded' AND json_extract(body, '$.outcome.verdict') <> 'invalid';
CREATE UNIQUE INDEX called_once ON events(action, json_extract(body, '$.number')) WHERE kind = 'model_called';
CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
    BEGIN SELECT raise(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
    BEGIN SELECT raise(ABORT, 'events are append-only'); END;
CREATE TABLE calls(
    action INTEGER NOT NULL,
    number INTEGER NOT NULL,
    request BLOB NOT NULL,
    reply BLOB,
    PRIMARY KEY(action, number)
);
CREATE TABLE blobs(sha256 TEXT PRIMARY KEY, zlib BLOB NOT NULL);
CREATE VIEW agents AS SELECT
    json_extract(body, '$.id') AS id,
    json_extract(body, '$.outcome.parents') AS parents,
    json_extract(body, '$.outcome.commit') AS commit_id,
    json_extract(body, '$.outcome.operator') AS operator,
    json_extract(body, '$.outcome.rationale') AS rationale,
    action,
    at AS born_at
    FROM events WHERE kind = 'agent_born';
CREATE VIEW evaluations AS SELECT
    json_extract(body, '$.outcome.agent') AS agent,
    json_extract(body, '$.outcome.task') AS task,
    json_extract(body, '$.outcome.attempt') AS attempt,
    json_extract(body, '$.outcome.verdict') AS verdict,
    json_extract(body, '$.outcome.score') AS score,
    json_extract(body, '$.outcome.reason') AS reason,
    json_extract(body, '$.outcome.cost.seconds') AS seconds,
    action,
    at AS graded_at
    FROM events WHERE kind = 'task_graded' AND seq NOT IN (
        SELECT json_extract(body, '$.graded') FROM events WHERE kind = 'verdict_withdrawn'
    );
CREATE VIEW spend AS SELECT
    kind,
    action,
    json_extract(body, '$.number') AS number,
    json_extract(body, '$.model') AS model,
    json_extract(body, '$.role') AS role,
    coalesce(json_extract(body, '$.usage.input_tokens'), 0) AS input_tokens,
    coalesce(json_extract(body, '$.usage.output_tokens'), 0) AS output_tokens,
    coalesce(json_extract(body, '$.usage.usd'), 0.0) AS usd,
    coalesce(json_extract(body, '$.usage.cached_tokens'), 0) AS cached_tokens,
    coalesce(json_extract(body, '$.usage.written_tokens'), 0) AS written_tokens,
    coalesce(json_extract(body, '$.usage.reasoning_tokens'), 0) AS reasoning_tokens,
    json_extract(body, '$.seconds') AS seconds,
    at AS called_at
    FROM events WHERE kind IN ('model_called', 'call_booked', 'model_learned');
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""
"""Requests and replies in ``calls`` are compressed JSON (``exchange``); the views are for people with an SQL shell."""

_CHUNK = 5_000
_COLUMNS = "SELECT seq, at, body FROM events"
_NEWEST = "SELECT coalesce(max(seq), 0) FROM events"
A = TypeVar("A", bound=Struct)
B = TypeVar("B", bound=Struct)
C = TypeVar("C", bound=Struct)
Write = Callable[[sqlite3.Connection], None]
"""Writes to another table of the log, in a transaction."""


class Log:
    """The log of one run. ``with Log.open(…) as log`` closes it."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        clock: Callable[[], float],
        writer: sqlite3.Connection | None = None,
        lock: WriterLock | None = None,
    ) -> None:
        self.path = path
        self.pending: dict[Digest, tuple[int, bytes]] = {}
        """Traces that no event names yet: the last event when they were put, and their zlib stream.

        They become durable with the first event that names them.
        """
        self._connection = connection
        self._writer = writer or connection
        """Another connection: a thread may commit, and wait for the disk, while others read."""
        self._lock = lock
        self._clock = clock
        self._last = self.newest()

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
            return cls(path, _open_to_read(path), clock)
        lock = WriterLock(path.with_suffix(".lock"))
        try:
            with translate_errors(path):
                writer = _open_to_write(path)
                return cls(path, _open_to_read(path), clock, writer, lock)
        except DgmError:
            lock.close()
            raise

    @property
    def last(self) -> int:
        """Number of the last event that this process appended or found on opening; 0 if there is none."""
        return self._last

    def append(self, event: Event) -> Recorded:
        """Make one event durable, together with the traces that it names.

        Raises:
            Infrastructure: the disk is full or failing; nothing was written, and the append can be repeated.
            DgmError: the log already has this verdict or this model call, or the event has a value out of bounds.
        """
        return self.append_many((event,))[0]

    def append_many(self, events: Iterable[Event], write: Write | None = None) -> Sequence[Recorded]:
        """Make all of the events durable in one commit with what ``write`` does, or none; raises like ``append``.

        The returned events are those that a reader gets.
        """
        bodies = list(map(encode, events))
        try:
            recorded = [
                Recorded(self._last + n, self._clock(), decode(body)) for n, body in enumerate(bodies, 1)
            ]
        except ValueError as error:
            raise DgmError(
                f"{self.path}: an event that no reader would accept was not written: {error}"
            ) from error
        traces = {
            name: self.pending[name][1]
            for item in recorded
            for name in traces_of(item.event)
            if name in self.pending
        }
        with translate_errors(self.path):
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                _insert_traces(self._writer, traces.items())
                _insert_events(self._writer, zip(recorded, bodies, strict=True))
                if write:
                    write(self._writer)
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
        self._last += len(recorded)
        for name in traces:
            self.pending.pop(name, None)
        return recorded

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Recorded]:
        """Yield the events after number ``after`` in order, up to the last one at the time of reading.

        To follow a writer, call it again with the last ``seq``. No transaction stays open between events, so a slow
        reader never blocks the writer.

        Args:
            after: number of an event.
            limit: maximum number of events; None: no limit.

        Raises:
            ArchiveCorrupt: an event is unreadable.
        """
        remaining = sys.maxsize if limit is None else limit
        while remaining > 0:
            chunk = self.query(
                f"{_COLUMNS} WHERE seq > ? ORDER BY seq LIMIT ?", (after, min(_CHUNK, remaining))
            )
            yield from map(self._decode, chunk)
            if len(chunk) < _CHUNK:
                return
            after, remaining = chunk[-1][0], remaining - len(chunk)

    def select(self, condition: str, parameters: Sequence[float | str] = ()) -> Iterator[Recorded]:
        """Yield the events that a SQL condition on ``seq``, ``at``, ``kind`` and ``action`` selects, in order.

        Raises:
            ArchiveCorrupt: an event is unreadable.
        """
        return map(self._decode, self.query(f"{_COLUMNS} WHERE {condition} ORDER BY seq", parameters))

    @overload
    def events(self, one: type[A], /, *, until: int = ...) -> Iterator[A]: ...
    @overload
    def events(self, one: type[A], two: type[B], /, *, until: int = ...) -> Iterator[A | B]: ...
    @overload
    def events(
        self, one: type[A], two: type[B], three: type[C], /, *, until: int = ...
    ) -> Iterator[A | B | C]: ...
    def events(self, *types: type[Struct], until: int = sys.maxsize) -> Iterator[Struct]:
        """Yield the events of some types, up to number ``until``, in order."""
        kinds = ", ".join(f"'{kind_of(kind)}'" for kind in types)
        for item in self.select(f"kind IN ({kinds}) AND seq <= ?", (until,)):
            yield item.event

    def events_of_action(self, action: int) -> Sequence[Recorded]:
        """Return all events of one action, in order."""
        return list(self.select("action = ?", (action,)))

    def starts_of_action(self, action: int) -> Sequence[tuple[int, Action]]:
        """Return each start of an action: the number of its event, and what was started."""
        return [
            (item.seq, item.event.action)
            for item in self.events_of_action(action)
            if isinstance(item.event, ActionStarted)
        ]

    def graded(self, agent: int, until: int = sys.maxsize) -> Sequence[Recorded]:
        """Return the resolved and unresolved evaluations of one agent, in order.

        Args:
            agent: the agent.
            until: number of an event; verdicts withdrawn by then are left out.
        """
        withdrawn = self.withdrawn(until)
        # The index ``graded_once`` has the agents' verdicts; SQLite takes another one if that saves the sorting.
        verdicts = "kind = 'task_graded' AND json_extract(body, '$.outcome.verdict') <> 'invalid'"
        sql = f"{_COLUMNS} WHERE {verdicts} AND json_extract(body, '$.outcome.agent') = ? ORDER BY +seq"
        return [item for item in map(self._decode, self.query(sql, (agent,))) if item.seq not in withdrawn]

    def withdrawals(self, until: int = sys.maxsize) -> Sequence[VerdictWithdrawn]:
        """Return the verdicts that were withdrawn by event number ``until``, in order."""
        return list(self.events(VerdictWithdrawn, until=until))

    def withdrawn(self, until: int = sys.maxsize) -> AbstractSet[int]:
        """Return the numbers of ``TaskGraded`` events whose verdicts were withdrawn by event number ``until``."""
        return {event.graded for event in self.withdrawals(until)}

    def calls(self, action: int) -> Sequence[ModelCalled]:
        """Return the answered model calls of an action, ordered by number."""
        events = [item.event for item in self.events_of_action(action)]
        return sorted((e for e in events if isinstance(e, ModelCalled)), key=lambda event: event.number)

    def newest(self) -> int:
        """Return the number of the current last event, whichever process appended it; 0 if there is none."""
        return int(self.query(_NEWEST)[0][0])

    def query(
        self, sql: str, parameters: Sequence[float | str] | Mapping[str, float | str] = ()
    ) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a SQL query.

        It may use the tables ``events``, ``calls`` and ``blobs``, and the views ``agents``, ``evaluations`` and
        ``spend``.

        Raises:
            UserError: this log cannot answer the query.
            ArchiveCorrupt: the log is damaged.
        """
        with translate_errors(self.path):
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except (sqlite3.ProgrammingError, sqlite3.OperationalError) as error:
                # A text that is no UTF-8 has no code; it means damage.
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
                if isinstance(error, sqlite3.OperationalError) and code & 0xFF != sqlite3.SQLITE_ERROR:
                    raise
                raise UserError(f"{self.path}: {error}") from error

    def _decode(self, row: tuple[Any, ...]) -> Recorded:
        seq, at, body = row
        if type(at) is not float or not 0.0 <= at < LATEST:
            raise ArchiveCorrupt(f"{self.path}: event {seq}: its time is none; restore it from a copy")
        try:
            return Recorded(seq, at, decode(body))
        except (ValueError, TypeError) as error:
            raise ArchiveCorrupt(f"{self.path}: event {seq}: {error}") from error

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


def _insert_events(connection: sqlite3.Connection, events: Iterable[tuple[Recorded, bytes]]) -> None:
    """Insert events with their JSON, in the caller's transaction."""
    connection.executemany(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
        (
            (item.seq, item.at, kind_of(item.event), action_of(item.event), body.decode())
            for item, body in events
        ),
    )


def _insert_traces(connection: sqlite3.Connection, traces: Iterable[tuple[Digest, bytes]]) -> None:
    """Insert compressed traces by digest; those that are there already are left alone."""
    connection.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", traces)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise errors of the database as dgm's own, which name ``path``."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise DgmError(f"{path}: refused, because it would happen a second time: {error}") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise translate_error(path, error) from error


def translate_error(path: Path, error: Exception) -> DgmError:
    """Return the error for an error of the database: the machine's, the user's, or the file's fault."""
    # Python's own sqlite errors (text that is not UTF-8) have no code; they mean damage, too.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    match code & 0xFF if code != sqlite3.SQLITE_IOERR_SHORT_READ else sqlite3.SQLITE_CORRUPT:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            # The one writer of dgm has its own lock.
            return ArchiveHeld(
                f"{path}: {error} by another program, such as an editor of databases or a backup; nothing was written; "
                f"end that program's work, then resume the run"
            )
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return Infrastructure(f"{path}: {error}; nothing was written")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return UserError(f"{path}: cannot be opened ({error}); check that it exists and may be written")
        case _:
            return ArchiveCorrupt(f"{path}: {error}")


def _open_to_write(path: Path) -> sqlite3.Connection:
    fresh = not path.exists()
    connection = _connect(path, "?mode=rwc")
    try:
        if fresh:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        _check_schema(path, connection)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        # On a Mac, the log is else only in the disk's own memory; nothing changes elsewhere.
        connection.execute("PRAGMA fullfsync=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _open_to_read(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise UserError(f"{path}: no such file; is {path.parent} a run?")
    connection = _connect(path, "?mode=ro")
    try:
        with translate_errors(path):
            _check_schema(path, connection)
    except UserError as error:
        connection.close()
        if not isinstance(error.__cause__, sqlite3.Error):
            raise
        # A log in WAL mode needs files beside it even for reading; a read-only folder cannot hold them.
        connection = _open_unwritable(path)
    except DgmError:
        connection.close()
        raise
    connection.execute("PRAGMA query_only=ON")
    return connection


def _open_unwritable(path: Path) -> sqlite3.Connection:
    wal = path.with_name(path.name + "-wal")
    with translate_errors(path):
        if not (wal.exists() and wal.stat().st_size):
            connection = _connect(path, "?immutable=1")
        else:
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            with tempfile.TemporaryDirectory(prefix="dgm-") as folder:
                for part in (path, wal):
                    shutil.copyfile(part, Path(folder, part.name))
                with closing(_connect(Path(folder, path.name), "?mode=rw")) as copy:
                    copy.backup(connection)
        _check_schema(path, connection)
    return connection


def _connect(path: Path, options: str) -> sqlite3.Connection:
    uri = path.resolve().as_uri() + options
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30, check_same_thread=False)


def _check_schema(path: Path, connection: sqlite3.Connection) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise ArchiveCorrupt(f"{path}: a database, but not one that dgm wrote (application id {application})")
    if version > SCHEMA_VERSION:
        raise UserError(
            f"{path}: written by a newer dgm (schema {version}, this one reads {SCHEMA_VERSION}); upgrade dgm"
        )
    if _read_schema(connection) != _known_schema():
        raise ArchiveCorrupt(
            f"{path}: its tables are not those that dgm makes; restore it from a copy, "
            f"or have its owner pack it with dgm export RUN RUN.dgm"
        )


def _read_schema(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'")
    return frozenset(rows)


@cache
def _known_schema() -> frozenset[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return _read_schema(connection)


def write_log(
    path: Path,
    events: Iterable[Recorded],
    calls: Iterable[tuple[int, int, bytes, bytes | None]],
    traces: Iterable[tuple[Digest, bytes]],
) -> None:
    """Write a complete log into a new file; equal rows give equal bytes. The caller makes it durable.

    Args:
        path: the new file.
        events: all events; they are read first.
        calls: rows of the table ``calls``; they are read next.
        traces: compressed traces by digest; they are read last.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        connection.execute("BEGIN")
        _insert_events(connection, ((item, encode(item.event)) for item in events))
        connection.executemany("INSERT INTO calls VALUES (?, ?, ?, ?)", calls)
        _insert_traces(connection, traces)
        connection.execute("COMMIT")
        connection.execute("VACUUM")


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
