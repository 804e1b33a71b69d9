import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import structs

import dgm
from dgm.archive.events import SCHEMA_VERSION, AgentBorn, ModelCalled, RunStarted, TaskGraded
from dgm.archive.log import APPLICATION_ID, Log, translate_error
from dgm.archive.tree import Tree
from dgm.domain import (
    SEED,
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Digest,
    Evaluation,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import ArchiveBusy, ArchiveCorrupt, ArchiveHeld, DgmError, Infrastructure, UserError
from tests.support.mounts import mounted, read_only

WRITER = Path(__file__).parents[2] / "support" / "runs" / "archive_writer.py"


def born(agent: int) -> AgentBorn:
    return AgentBorn(ActionId(0), AgentId(agent), Born((), "op", CommitId("0" * 40), "why " * 100))


def graded(attempt: int, verdict: Verdict = Verdict.RESOLVED) -> TaskGraded:
    cost = Cost(Usage(2, 30, 4, 0.5), 1.5, {"log": Digest("d" * 64)})
    return TaskGraded(ActionId(1), Evaluation(SEED, TaskId("a"), attempt, verdict, "ok", 1.0, cost))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


@pytest.fixture
def filled(path: Path) -> Path:
    with Log.open(path, write=True) as store:
        store.append_many([born(n) for n in range(500)])
    return path


def test_appended_events_are_read_back_in_order(path: Path) -> None:
    events = [RunStarted(Budget(usd=2.5), (TaskId("a"),)), born(0), graded(0)]
    with Log.open(path, write=True, clock=lambda: 12.5) as store:
        assert [store.append(event).seq for event in events] == [1, 2, 3]
    with Log.open(path, write=False) as store:
        assert [(item.seq, item.at, item.event) for item in store.read()] == [
            (n, 12.5, event) for n, event in enumerate(events, 1)
        ]


def test_same_verdict_twice_is_refused_and_changes_nothing(path: Path) -> None:
    with Log.open(path, write=True) as store:
        store.append(graded(0))
        with pytest.raises(DgmError, match="second time"):
            store.append(graded(0, Verdict.UNRESOLVED))
        store.append(graded(1))
        assert [item.seq for item in store.read()] == [1, 2]


def test_invalid_verdicts_may_repeat_before_one_that_counts(path: Path) -> None:
    with Log.open(path, write=True) as store:
        for verdict in (Verdict.INVALID, Verdict.INVALID, Verdict.RESOLVED):
            store.append(graded(0, verdict))
        assert store.last == 3


def test_same_model_call_twice_is_refused(path: Path) -> None:
    call = ModelCalled(ActionId(3), 1, "m", "solve", Usage(1, 2, 3, 0.5))
    with Log.open(path, write=True) as store:
        store.append(call)
        with pytest.raises(DgmError, match="second time"):
            store.append(call)
        assert store.calls(3) == [call]
        assert store.calls(4) == []


def test_batch_is_written_whole_or_not_at_all(path: Path) -> None:
    with Log.open(path, write=True) as store:
        with pytest.raises(DgmError, match="second time"):
            store.append_many([born(0), graded(0), graded(0)])
        assert (store.last, list(store.read())) == (0, [])


def test_events_cannot_be_changed_or_deleted(filled: Path) -> None:
    with contextlib.closing(sqlite3.connect(filled)) as connection:
        for statement in ("UPDATE events SET at = 0", "DELETE FROM events WHERE seq = 500"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)


def test_views_answer_an_ordinary_sql_shell(path: Path) -> None:
    with Log.open(path, write=True) as store:
        usage = Usage(1, 20, 3, 0.5)
        store.append(ModelCalled(ActionId(1), 1, "m", "solve", usage))
        store.append(born(0))
        store.append(graded(0))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        evaluation = connection.execute("SELECT agent, task, verdict, score, seconds FROM evaluations")
        assert evaluation.fetchall() == [(0, "a", "resolved", 1.0, 1.5)]
        assert connection.execute("SELECT id, parents, operator FROM agents").fetchall() == [(0, "[]", "op")]
        spend = connection.execute("SELECT action, model, input_tokens, usd FROM spend")
        assert spend.fetchall() == [(1, "m", 20, 0.5)]


def test_second_writer_is_told_who_the_first_one_is(path: Path) -> None:
    with Log.open(path, write=True), pytest.raises(ArchiveBusy, match=f"pid {os.getpid()} on "):
        Log.open(path, write=True)
    Log.open(path, write=True).close()


@pytest.mark.starts_processes
def test_twenty_kills_lose_nothing_that_was_acknowledged(path: Path) -> None:
    rng = random.Random(7)
    environment = {**os.environ, "PYTHONPATH": str(Path(dgm.__file__).parents[1])}
    for _ in range(20):
        with subprocess.Popen(
            [sys.executable, str(WRITER), str(path)], stdout=subprocess.PIPE, text=True, env=environment
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            said = [writer.stdout.readline() for _ in range(rng.randrange(1, 10))]
            time.sleep(rng.uniform(0, 0.01))
            writer.send_signal(signal.SIGKILL)
            said += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        acknowledged = int(said[-1])
        tree = Tree()
        with Log.open(path, write=False) as store:
            for item in store.read():
                tree.apply(item)
        assert tree.seq - acknowledged in (0, 1)


def test_truncated_file_is_reported_not_traced_back(filled: Path) -> None:
    size = filled.stat().st_size
    with filled.open("r+b") as file:
        file.truncate(size // 2)
    for write in (False, True):
        with pytest.raises(ArchiveCorrupt, match=r"run\.db"):
            _open_and_fold(filled, write)


@pytest.mark.parametrize("size", [0, 10, 50, 100, 4000, 4096])
def test_file_cut_within_its_first_page_is_reported(filled: Path, size: int) -> None:
    with filled.open("r+b") as file:
        file.truncate(size)
    for write in (False, True):
        with pytest.raises(ArchiveCorrupt, match=r"run\.db"):
            _open_and_fold(filled, write)


def test_garbage_in_the_middle_is_reported(filled: Path) -> None:
    size = filled.stat().st_size
    with filled.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff\x00garbage" * 2000)
    for write in (False, True):
        with pytest.raises(ArchiveCorrupt, match=r"run\.db|event \d+"):
            _open_and_fold(filled, write)


def test_file_that_is_no_database_is_reported(path: Path) -> None:
    path.write_text("this is not a database, it is a text")
    for write in (False, True):
        with pytest.raises(ArchiveCorrupt, match="not a database"):
            Log.open(path, write=write)


def test_database_of_another_program_is_reported(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cookies(name)")
        connection.commit()
    for write in (False, True):
        with pytest.raises(ArchiveCorrupt, match="not one that dgm wrote"):
            Log.open(path, write=write)


def test_newer_schema_says_to_upgrade(filled: Path) -> None:
    with contextlib.closing(sqlite3.connect(filled)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for write in (False, True):
        with pytest.raises(UserError, match=f"schema {SCHEMA_VERSION + 1}.*upgrade dgm"):
            Log.open(filled, write=write)


@pytest.mark.parametrize(
    ("seq", "change"),
    [
        (7, 'UPDATE events SET body = \'{"id": 6, "par\' WHERE seq = 7'),
        (7, "UPDATE events SET body = json_set(body, '$.event', 'agent_eaten') WHERE seq = 7"),
        (7, "UPDATE events SET body = '{}' WHERE seq = 7"),
        (7, "UPDATE events SET body = 5 WHERE seq = 7"),
        (7, "UPDATE events SET body = CAST(x'7bff7d' AS TEXT) WHERE seq = 7"),
    ],
)
def test_damaged_event_is_named(filled: Path, seq: int, change: str) -> None:
    with contextlib.closing(sqlite3.connect(filled)) as connection:
        trigger = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name LIKE '%never_changed'"
        ).fetchone()[0]
        connection.execute("DROP TRIGGER events_are_never_changed")
        connection.execute(change)
        connection.execute(trigger)
        connection.commit()
    with pytest.raises(ArchiveCorrupt, match=rf"event {seq}\b|UTF-8"):
        _open_and_fold(filled, write=False)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER more AFTER INSERT ON events BEGIN SELECT 1; END",
        "CREATE TABLE others(name)",
        "CREATE INDEX more ON events(at)",
        "DROP VIEW agents; CREATE VIEW agents AS SELECT 1 AS id",
        "DROP TABLE calls",
    ],
)
def test_any_schema_but_that_of_a_log_is_refused(filled: Path, change: str) -> None:
    with contextlib.closing(sqlite3.connect(filled)) as connection:
        connection.executescript(change)
    for write in (False, True):
        with pytest.raises(ArchiveCorrupt, match=r"run\.db: its tables are not those that dgm makes"):
            Log.open(filled, write=write)


@pytest.mark.parametrize("change", [{"seconds": float("nan")}, {"number": -1}, {"model": "m" * 10_001}])
def test_an_event_that_no_reader_would_accept_is_not_written(path: Path, change: dict[str, object]) -> None:
    call = structs.replace(ModelCalled(ActionId(3), 1, "m", "solve"), **change)
    with Log.open(path, write=True) as log:
        with pytest.raises(DgmError, match="was not written"):
            log.append(call)
        assert (log.last, list(log.read())) == (0, [])


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (None, ArchiveCorrupt),
        (sqlite3.SQLITE_FULL, Infrastructure),
        (sqlite3.SQLITE_IOERR_WRITE, Infrastructure),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, ArchiveHeld),
        (sqlite3.SQLITE_LOCKED, ArchiveHeld),
        (sqlite3.SQLITE_READONLY_DIRECTORY, UserError),
        (sqlite3.SQLITE_CANTOPEN_ISDIR, UserError),
        (sqlite3.SQLITE_IOERR_SHORT_READ, ArchiveCorrupt),
        (sqlite3.SQLITE_CORRUPT_INDEX, ArchiveCorrupt),
        (sqlite3.SQLITE_NOTADB, ArchiveCorrupt),
    ],
)
def test_a_code_says_whose_fault_an_error_is(code: int | None, kind: type[DgmError]) -> None:
    error = sqlite3.OperationalError("why")
    if code is not None:
        error.sqlite_errorcode = code
    assert type(translate_error(Path("run.db"), error)) is kind


def test_missing_file_is_the_users_to_mend(path: Path) -> None:
    with pytest.raises(UserError, match=r"run\.db: no such file"):
        Log.open(path, write=False)


def test_header_tells_what_the_file_is(filled: Path) -> None:
    assert filled.read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big") == b"dgme"


@pytest.mark.starts_processes
def test_read_only_folder_can_be_read_but_not_written(filled: Path) -> None:
    with read_only(filled.parent):
        with pytest.raises(UserError, match="read-only"):
            Log.open(filled, write=True)
        with Log.open(filled, write=False) as store:
            assert len(list(store.read())) == 500


@pytest.mark.starts_processes
@pytest.mark.parametrize("shared_memory", [True, False])
def test_read_only_folder_of_a_killed_writer_shows_its_last_event(
    filled: Path, tmp_path: Path, shared_memory: bool
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    with Log.open(filled, write=True) as store:
        store.append(born(500))
        for part in ("run.db", "run.db-wal", *(["run.db-shm"] if shared_memory else [])):
            (copy / part).write_bytes((filled.parent / part).read_bytes())
    with read_only(copy), Log.open(copy / "run.db", write=False) as reader:
        assert [item.seq for item in reader.read(499)] == [500, 501]


@pytest.mark.starts_processes
def test_full_disk_writes_nothing_half_and_the_event_can_be_appended_later(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=2m", "tmpfs"):
        with Log.open(disk / "run.db", write=True) as store:
            written = _fill(store)
            (disk / "run.lock").stat()
            with pytest.raises(Infrastructure, match="full"):
                store.append(born(written))
            assert len(list(store.read())) == written
            subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
            assert store.append(born(written)).seq == written + 1
        with Log.open(disk / "run.db", write=False) as store:
            assert [item.event for item in store.read()] == [born(n) for n in range(written + 1)]


def _fill(store: Log) -> int:
    for n in range(100_000):
        try:
            store.append(born(n))
        except Infrastructure:
            return n
    raise AssertionError("the disk never filled")


def _open_and_fold(path: Path, write: bool) -> None:
    with Log.open(path, write=write) as store:
        tree = Tree()
        for item in store.read():
            tree.apply(item)
