"""Opening of ``events.db``, which may come from a stranger, and the errors of its database.

A file beside it may be no link. Its schema is checked before a row is read, and only dgm's own views are used. The
size of rows and the steps of a statement are bounded, because pages that name each other could make one endless.
"""

import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dgm.archive.events import SCHEMA_VERSION
from dgm.archive.schema import APPLICATION_ID, INDICES, SCHEMA, UPGRADE, VIEWS, check_schema
from dgm.errors import ArchiveCorrupt, ArchiveHeld, DgmError, Infrastructure, UserError

MAX_ROW_BYTES = 32_000_000
"""Maximum size of a row, and of any text that a query makes."""
_STEPS = 1_000_000
_FREE_STEPS = 500_000_000
"""Steps that any statement may take; a few seconds. Honest scans take less than one for each byte of the log."""
_STEPS_PER_BYTE = 20
_MAGIC = b"SQLite format 3\0"
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


class StepLimit:
    """A bound on the steps of one statement, in proportion to the size of the log."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._steps = 0
        connection.set_progress_handler(self._count, _STEPS)

    def restart(self) -> None:
        """Count from zero: a statement begins."""
        self._steps = 0

    def _count(self) -> int:
        self._steps += _STEPS
        if self._steps <= _FREE_STEPS:
            return 0
        with suppress(OSError):
            return int(self._steps > _FREE_STEPS + _STEPS_PER_BYTE * self._path.stat().st_size)
        return 0


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


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the log's schema."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open a log for its writer, who holds the lock; create it if it does not exist."""
    fresh = not path.exists()
    if not fresh:
        _check_files(path)
    connection = _connect(path, "?mode=rwc")
    try:
        if fresh:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        _check(path, connection)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        # On a Mac, the log is else only in the disk's own memory; nothing changes elsewhere.
        connection.execute("PRAGMA fullfsync=ON")
        _check_pages(path, connection)
        connection.executescript(VIEWS)
    except BaseException:
        connection.close()
        raise
    return connection


def upgrade(connection: sqlite3.Connection) -> None:
    """Give an older log the tables and indices of this version, within the transaction of its first new event."""
    for statement in UPGRADE if version_of(connection) < SCHEMA_VERSION else INDICES:
        connection.execute(statement)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a log for a reader; raise like ``EventStore.open``."""
    if not path.exists():
        raise UserError(f"{path}: no such file; is {path.parent} a run?")
    _check_files(path)
    connection = _connect(path, "?mode=ro")
    try:
        with translate_errors(path):
            _prepare_to_read(path, connection)
    except UserError as error:
        connection.close()
        if not isinstance(error.__cause__, sqlite3.Error):
            raise
        # A log in WAL mode needs files beside it even for reading; a read-only folder cannot hold them.
        connection = _open_unwritable(path)
    except DgmError:
        connection.close()
        raise
    return connection


def _open_unwritable(path: Path) -> sqlite3.Connection:
    wal = path.with_name(path.name + "-wal")
    with translate_errors(path):
        if not (wal.exists() and wal.stat().st_size):
            connection = _connect(path, "?immutable=1")
            _prepare_to_read(path, connection)
            return connection
        connection = _bounded(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
        with tempfile.TemporaryDirectory(prefix="dgm-") as folder:
            for part in (path, wal):
                shutil.copyfile(part, Path(folder, part.name))
            with closing(_connect(Path(folder, path.name), "?mode=rw")) as copy:
                copy.backup(connection)
        _prepare_to_read(path, connection)
    return connection


def _connect(path: Path, options: str) -> sqlite3.Connection:
    uri = path.resolve().as_uri() + options
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30, check_same_thread=False)
    StepLimit(path, connection)  # the connection keeps it
    return _bounded(connection)


def _bounded(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    # No trusted_schema=OFF: older SQLite then refuses json_extract in dgm's own indices. check_schema leaves no other.
    return connection


def _prepare_to_read(path: Path, connection: sqlite3.Connection) -> None:
    _check(path, connection)
    connection.executescript(VIEWS)
    connection.execute("PRAGMA query_only=ON")


def _check(path: Path, connection: sqlite3.Connection) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = version_of(connection)
    if application != APPLICATION_ID:
        raise ArchiveCorrupt(f"{path}: a database, but not one that dgm wrote (application id {application})")
    if version > SCHEMA_VERSION:
        raise UserError(
            f"{path}: written by a newer dgm (schema {version}, this one reads {SCHEMA_VERSION}); upgrade dgm"
        )
    try:
        check_schema(connection)
    except ArchiveCorrupt as error:
        raise ArchiveCorrupt(f"{path}: {error}") from error


def _check_pages(path: Path, connection: sqlite3.Connection) -> None:
    first = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if first != "ok":
        raise ArchiveCorrupt(f"{path}: {first}")


def _check_files(path: Path) -> None:
    """Raise unless a database lies here and SQLite will open no file outside this folder for it."""
    for end in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + end)
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(part.lstat().st_mode):
                raise ArchiveCorrupt(f"{part}: a link, or not a file; put the file itself there")
    magic, last = _read_ends(path)[0], b""
    with suppress(FileNotFoundError):
        last = _read_ends(path.with_name(f"{path.name}-journal"))[1]
    if magic != _MAGIC:
        what = "empty" if not magic else "not a database"
        raise ArchiveCorrupt(f"{path}: {what}; restore it from a copy")
    if last == _JOURNAL_MAGIC:
        # SQLite would open, and may delete, the file that this journal names. No log of dgm has such a one.
        raise ArchiveCorrupt(f"{path}-journal: names a file outside the run; delete it")


def _read_ends(path: Path) -> tuple[bytes, bytes]:
    """Return the first 16 and the last 8 bytes of a file."""
    try:
        with path.open("rb") as file:
            first = file.read(len(_MAGIC))
            file.seek(max(0, path.stat().st_size - len(_JOURNAL_MAGIC)))
            return first, file.read(len(_JOURNAL_MAGIC))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
