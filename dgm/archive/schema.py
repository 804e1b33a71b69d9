"""The layout of ``events.db``: append-only events, the calls' exchanges, and views for people with an SQL shell.

A log may come from a stranger. ``check_schema`` refuses any other table, trigger or index. Its views are never used:
``VIEWS`` are made anew in each connection, in front of those in the file.
"""

import sqlite3
from functools import cache

from dgm.archive.events import SCHEMA_VERSION
from dgm.errors import ArchiveCorrupt

APPLICATION_ID = 0x64676D65
"""``dgme`` in the file's header: identifies a database as a run's, for ``file`` and for dgm."""

_GRADED_ONCE = """
CREATE UNIQUE INDEX graded_once ON events(
    json_extract(body, '$.agent'), json_extract(body, '$.task'), json_extract(body, '$.attempt'),
    coalesce(json_extract(body, '$.again'), 0)
) WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid';
"""
_GRADED_ONCE_BEFORE_4 = (
    "CREATE UNIQUE INDEX graded_once ON events("
    "json_extract(body, '$.agent'), json_extract(body, '$.task'), json_extract(body, '$.attempt')) "
    "WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid'"
)
_AGENTS = """
CREATE VIEW agents AS SELECT
    json_extract(body, '$.id') AS id,
    json_extract(body, '$.parents') AS parents,
    json_extract(body, '$.commit') AS commit_id,
    json_extract(body, '$.operator') AS operator,
    json_extract(body, '$.rationale') AS rationale,
    action,
    at AS born_at
    FROM events WHERE kind = 'agent_born';
"""
_EVALUATIONS = """
CREATE VIEW evaluations AS SELECT
    json_extract(body, '$.agent') AS agent,
    json_extract(body, '$.task') AS task,
    json_extract(body, '$.attempt') AS attempt,
    json_extract(body, '$.verdict') AS verdict,
    coalesce(json_extract(body, '$.score'), 0.0) AS score,
    json_extract(body, '$.reason') AS reason,
    coalesce(json_extract(body, '$.seconds'), 0.0) AS seconds,
    action,
    at AS graded_at
    FROM events WHERE kind = 'task_graded' AND seq NOT IN (
        SELECT json_extract(body, '$.graded') FROM events WHERE kind = 'verdict_withdrawn'
    );
"""

_SPEND = """
CREATE VIEW spend AS SELECT
    kind,
    action,
    json_extract(body, '$.number') AS number,
    json_extract(body, '$.model') AS model,
    json_extract(body, '$.role') AS role,
    json_extract(body, '$.usage[1]') AS input_tokens,
    json_extract(body, '$.usage[2]') AS output_tokens,
    json_extract(body, '$.usage[3]') AS usd,
    coalesce(json_extract(body, '$.usage[4]'), 0) AS cached_tokens,
    coalesce(json_extract(body, '$.usage[5]'), 0) AS written_tokens,
    coalesce(json_extract(body, '$.usage[6]'), 0) AS reasoning_tokens,
    json_extract(body, '$.seconds') AS seconds,
    at AS called_at
    FROM events WHERE kind IN ('model_called', 'call_booked', 'model_learned');
"""
INDICES = (
    """CREATE INDEX IF NOT EXISTS births ON events(json_extract(body, '$.id'), json_extract(body, '$.parents'))
    WHERE kind = 'agent_born'""",
    """CREATE INDEX IF NOT EXISTS resolved ON events(json_extract(body, '$.agent'))
    WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') = 'resolved'""",
    """CREATE INDEX IF NOT EXISTS withdrawn ON events(json_extract(body, '$.graded'))
    WHERE kind = 'verdict_withdrawn'""",
)
"""Indices that let an outline of a long run be read without the log itself. Runs from an older dgm get them with their
next event."""

_CALLS = """
CREATE TABLE calls(
    action INTEGER NOT NULL,
    number INTEGER NOT NULL,
    request BLOB NOT NULL,
    reply BLOB,
    PRIMARY KEY(action, number)
);
"""
"""Requests and replies as compressed JSON (``exchange``). Whatever else is known of a call is in its events."""

SCHEMA = f"""
CREATE TABLE events(
    seq INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    action INTEGER,
    body JSON NOT NULL
);
CREATE INDEX events_by_action ON events(action);
{_GRADED_ONCE.strip()}
CREATE UNIQUE INDEX called_once ON events(action, json_extract(body, '$.number')) WHERE kind = 'model_called';
{"; ".join(INDICES)};
CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
    BEGIN SELECT raise(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
    BEGIN SELECT raise(ABORT, 'events are append-only'); END;
{_CALLS.strip()}
{_AGENTS.strip()}
{_EVALUATIONS.strip()}
{_SPEND.strip()}
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""

UPGRADE = (
    "DROP INDEX graded_once",
    _GRADED_ONCE,
    # Views of dgm's own connection have the same names.
    "DROP VIEW main.evaluations",
    _EVALUATIONS,
    "DROP VIEW main.spend",
    _SPEND,
    *INDICES,
    _CALLS.replace("TABLE", "TABLE IF NOT EXISTS"),
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
"""Statements that migrate the tables of a log of schema 1 to 4 to schema 5, with the first new event."""

VIEWS = "".join((_AGENTS, _EVALUATIONS, _SPEND)).replace("CREATE VIEW", "CREATE TEMP VIEW")
"""SQL that makes the views in a connection alone."""
_TABLES = ("events", "calls")
_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master"


def check_schema(connection: sqlite3.Connection) -> None:
    """Raise if a database is not a log; no row of it is read.

    Raises:
        ArchiveCorrupt: it lacks the table ``events`` as dgm makes it, or has another table, trigger, index or view.
    """
    known = _known_objects()
    tables = set()
    for kind, name, table, sql in connection.execute(_OBJECTS):
        if kind == "table" and str(name).startswith("sqlite_stat"):
            continue  # SQLite's own, made by ANALYZE
        if kind == "view":
            expected = (kind, name) in known
        else:
            expected = table in _TABLES and _squeeze(str(sql)) in known.get((kind, name), ())
        if not expected:
            raise ArchiveCorrupt(f"not the schema of a log: {kind} {str(name)[:60]!r} is not dgm's")
        tables.add(name)
    if "events" not in tables:
        raise ArchiveCorrupt("not the schema of a log: it has no table 'events'")


@cache
def _known_objects() -> dict[tuple[str, str], set[str]]:
    """Return the SQL that dgm has used for each object, by its type and name."""
    found: dict[tuple[str, str], set[str]] = {}
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(SCHEMA)
        for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
            found[kind, name] = {_squeeze(str(sql))}
    finally:
        connection.close()
    found["index", "graded_once"].add(_GRADED_ONCE_BEFORE_4)
    return found


def _squeeze(sql: str) -> str:
    """Return the SQL with single blanks: versions of dgm differ in their line breaks."""
    return " ".join(sql.split())
