"""Logs that nobody should trust: each is refused in one line before a row is used."""

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from dgm.archive.events import AgentBorn
from dgm.archive.fold import fold
from dgm.archive.log import Log
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Born, CommitId
from dgm.errors import ArchiveCorrupt

DROP = "DROP TRIGGER events_are_never_changed; DROP TRIGGER events_are_never_deleted;"
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n"
ROW = "INSERT INTO events VALUES"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Log.open(tmp_path / "run.db", write=True) as store:
        store.append(AgentBorn(ActionId(0), AgentId(0), Born((), "seed", CommitId("0" * 40), "the first")))
    return tmp_path / "run.db"


def change(path: Path, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as log:
        log.executescript(sql)


@pytest.mark.parametrize(
    "sql",
    [
        (
            f"{DROP} DROP VIEW agents; DROP VIEW evaluations; DROP VIEW spend; ALTER TABLE events RENAME TO kept;"
            f"CREATE VIEW events AS {ENDLESS} AS seq, 0.0 AS at, 'x' AS kind, 1 AS action, '{{}}' AS body FROM r"
        ),
        "CREATE TRIGGER more AFTER INSERT ON events BEGIN SELECT 1; END",
        (
            "DROP TRIGGER events_are_never_deleted;"
            "CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events BEGIN SELECT 1; END"
        ),
        "ALTER TABLE events ADD COLUMN more TEXT AS (hex(zeroblob(1e9)))",
        "CREATE TABLE others(name)",
        "ALTER TABLE calls ADD COLUMN more TEXT AS (hex(zeroblob(1e9)))",
        f"DROP TABLE calls; CREATE VIEW calls AS {ENDLESS} AS number, 1 AS action, '' AS request, '' AS reply FROM r",
        "CREATE INDEX births_too ON events(at)",
        f"CREATE VIEW more AS {ENDLESS} FROM r",
        "DROP INDEX births; CREATE INDEX births ON events(hex(body))",
        f"{DROP} DROP VIEW agents; DROP VIEW evaluations; DROP VIEW spend; DROP TABLE events",
    ],
)
@pytest.mark.parametrize("write", [False, True])
def test_any_schema_but_that_of_a_log_is_refused(path: Path, sql: str, write: bool) -> None:
    change(path, sql)
    with pytest.raises(ArchiveCorrupt, match=r"run\.db: not the schema of a log"):
        Log.open(path, write=write)


def test_views_of_the_file_are_not_used(path: Path) -> None:
    change(path, f"DROP VIEW agents; CREATE VIEW agents AS {ENDLESS} AS id, 'x' AS operator FROM r")
    with Log.open(path, write=False) as store:
        assert store.query("SELECT id, operator FROM agents") == [(0, "seed")]


@pytest.mark.parametrize(
    "row",
    [
        "(2, 'x', 'run_paused', NULL, '{\"reason\": \"x\"}')",
        "(2, 9e999, 'run_paused', NULL, '{\"reason\": \"x\"}')",
        "(2, -1.0, 'run_paused', NULL, '{\"reason\": \"x\"}')",
        "(2, 1.0, x'00', NULL, '{\"reason\": \"x\"}')",
        "(2, 1.0, 'run_paused', 'x', '{\"reason\": \"x\"}')",
        "(2, 1.0, 'run_paused', 1000000000000, '{\"reason\": \"x\"}')",
        "(2, 1.0, 'run_paused', -1, '{\"reason\": \"x\"}')",
        "(2, 1.0, 'run_paused', NULL, x'7b7d')",
        "(2, 1.0, 'run_paused', NULL, 5)",
    ],
)
def test_a_column_that_holds_what_no_event_has_is_refused(path: Path, row: str) -> None:
    change(path, f"{ROW} {row}")
    with Log.open(path, write=False) as store:
        with pytest.raises(ArchiveCorrupt, match="event 2: "):
            list(store.rows())
        with pytest.raises(ArchiveCorrupt, match="event 2: "):
            list(store.select("seq = 2"))


def test_a_row_of_any_size_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dgm.archive.log_file.MAX_ROW_BYTES", 100_000)
    change(path, f"{ROW} (2, 1.0, 'run_paused', NULL, replace(hex(zeroblob(100000)), '0', 'x'))")
    with Log.open(path, write=False) as store, pytest.raises(ArchiveCorrupt, match="too big"):
        list(store.rows())


def test_a_statement_without_end_is_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dgm.archive.log_file._FREE_STEPS", 5_000_000)
    with Log.open(path, write=False) as store, pytest.raises(ArchiveCorrupt, match="interrupted"):
        store.query(f"SELECT count(n) FROM ({ENDLESS} FROM r)")


@pytest.mark.parametrize("end", ["", "-wal", "-journal"])
def test_links_and_pipes_in_place_of_its_files_are_refused(path: Path, tmp_path: Path, end: str) -> None:
    other, place = tmp_path / "other", Path(f"{path}{end}")
    other.write_bytes(path.read_bytes())
    for make in (lambda: place.symlink_to(other), lambda: os.mkfifo(place)):
        place.unlink(missing_ok=True)
        make()
        with pytest.raises(ArchiveCorrupt, match=f"{place.name}: a link, or not a file"):
            Log.open(path, write=False)


def test_a_journal_that_names_another_file_deletes_nothing(path: Path) -> None:
    journal = Path(f"{path}-journal")
    journal.write_bytes(bytes(512) + b"/some/file" + bytes(8) + bytes.fromhex("d9d505f920a163d7"))
    for write in (False, True):
        with pytest.raises(ArchiveCorrupt, match="names a file outside the run"):
            Log.open(path, write=write)


STARTED = '{"agent":0,"task":"t","attempt":0}'
CALLED = '{"number":1,"model":"m","role":"solve","usage":%s}'


@pytest.mark.parametrize(
    ("kind", "action", "body"),
    [
        ("task_graded", 1, '{"agent":-1,"task":"t","attempt":0,"verdict":"resolved","reason":""}'),
        ("task_graded", 1, '{"agent":"0","task":"t","attempt":0,"verdict":"resolved","reason":""}'),
        ("task_graded", 1, '{"agent":0,"task":["t"],"attempt":0,"verdict":"resolved","reason":""}'),
        ("task_graded", 1, '{"agent":0,"task":"t","attempt":"x","verdict":"resolved","reason":""}'),
        (
            "task_graded",
            1,
            f'{{"agent":{"9" * 5000},"task":"t","attempt":0,"verdict":"resolved","reason":""}}',
        ),
        ("task_graded", 1, "[" * 100_000),
        ("task_graded", 1, "[]"),
        ("model_called", 1, "[" * 100_000),
        ("model_called", 1, CALLED % "[1,1,1,NaN]"),
        ("model_called", 1, CALLED % "[1,1,1,1e300]"),
        ("model_called", 1, CALLED % "[1,1,1,1,NaN,1,1]"),
        ("model_called", 1, CALLED % "[1,1000000000000000000000000,1,1]"),
        ("model_called", 1, CALLED % '["1","1","1","1"]'),
        ("model_called", 1, '{"number":"x","model":"m","role":"solve","usage":[1,1,1,1]}'),
        ("model_called", 1, '{"number":1,"model":["m"],"role":"solve","usage":[1,1,1,1]}'),
    ],
)
def test_a_body_that_fits_no_event_ends_the_fold_in_one_line(
    path: Path, kind: str, action: int, body: str
) -> None:
    with contextlib.closing(sqlite3.connect(path)) as log:
        log.execute("DROP INDEX graded_once")
        log.execute("DROP INDEX called_once")
        log.execute("DROP INDEX resolved")
        log.execute(f"{ROW} (2, 1.0, 'action_started', 1, ?)", (STARTED,))
        log.execute(f"{ROW} (3, 1.0, ?, ?, ?)", (kind, action, body))
        log.commit()
    with Log.open(path, write=False) as store, pytest.raises(ArchiveCorrupt, match=r"^event 3: .*"):
        fold(store, Tree())
