"""Runs that nobody should trust: nothing of them becomes ours before all of it is checked."""

import contextlib
import json
import os
import shutil
import sqlite3
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from dgm.archive import adopt as adopting
from dgm.archive.adopt import adopt, inflate, verify
from dgm.archive.events import RunStopped, encode
from dgm.archive.packed import unpack
from dgm.archive.run import Run, read_config
from dgm.domain import SEED
from dgm.errors import ArchiveCorrupt, UserError
from tests.support.runs.packable import ask_raw, begin, child, evaluate

pytestmark = pytest.mark.starts_processes

EARLIER = Path(__file__).parent / "earlier" / "real.dgm"
"""Packed by the previous version: a search with a real model."""
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"
DROP = "DROP TRIGGER events_are_never_changed; DROP TRIGGER events_are_never_deleted;"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that came from elsewhere."""
    with begin(tmp_path / "theirs") as run:
        child(run)
        evaluate(run, "nothing of note")
        ask_raw(run, "nothing either")
    return tmp_path / "theirs"


def change_log(folder: Path, sql: str, *parameters: object) -> None:
    with contextlib.closing(sqlite3.connect(folder / "run.db")) as log:
        log.executescript(DROP)
        if parameters:
            log.execute(sql, parameters)
        else:
            log.executescript(sql)
        log.commit()


def test_an_adopted_run_is_the_same_and_goes_on(folder: Path, tmp_path: Path) -> None:
    (folder / "agents.git" / "hooks").mkdir(exist_ok=True)
    (folder / "agents.git" / "config").write_text("[core]\n\tfsmonitor = touch /tmp/owned\n")
    adopt(folder, tmp_path / "ours")
    with Run.open(folder) as theirs, Run.open(tmp_path / "ours", write=True) as ours:
        assert list(ours.store.read()) == list(theirs.store.read())
        assert ours.repository.refs() == theirs.repository.refs()
        assert ours.source(SEED) == theirs.source(SEED)
        ours.append(RunStopped("budget"))
        child(ours)
    assert "owned" not in (tmp_path / "ours" / "agents.git" / "config").read_text()
    assert verify(tmp_path / "ours")["traces"] == 1


def test_a_pack_of_the_previous_version_is_unpacked(tmp_path: Path) -> None:
    unpack(EARLIER, tmp_path / "run")
    assert verify(tmp_path / "run") == {"events": 358, "exchanges": 154, "traces": 59, "agents": 1}


def test_the_last_events_of_a_killed_writer_are_adopted(folder: Path, tmp_path: Path) -> None:
    with Run.open(folder, write=True) as run:
        recorded = run.append(RunStopped("budget"))
        assert (folder / "run.db-wal").stat().st_size
        shutil.copytree(folder, tmp_path / "copy")
    adopt(tmp_path / "copy", tmp_path / "ours")
    with Run.open(tmp_path / "ours") as ours:
        assert list(ours.store.read())[-1] == recorded


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000 + "]" * 200_000,
        "[]",
        '{"format": "x", "config": {}}',
        '{"format": null, "config": {}}',
        '{"format": 1e999, "config": {}}',
        '{"format": 1, "config": []}',
        *(
            json.dumps({"format": 1, "config": config})
            for config in (
                {"id": "../../x"},
                {"id": "x\n"},
                {"id": 5},
                {"created": 1e300},
                {"sandbox": ["docker"]},
                {"versions": ["x"]},
                {"kind": "else"},
                {"settings": []},
                {"settings": {"workers": "many"}},
                {"settings": {"seed": 10**400}},
                {"settings": {"benchmark": None}},
                {"settings": {"policy": "hgm"}},
                {"settings": {"limits": 5}},
            )
        ),
    ],
)
def test_a_configuration_of_another_shape_is_refused(folder: Path, tmp_path: Path, text: str) -> None:
    (folder / "run.json").write_text(text)
    with pytest.raises(ArchiveCorrupt, match=r"run\.json: [^\n]*$"):
        adopt(folder, tmp_path / "ours")


def test_a_configuration_behind_a_link_or_in_a_pipe_is_not_read(folder: Path) -> None:
    path = folder / "run.json"
    path.rename(folder / "moved")
    path.symlink_to(folder / "moved")
    with pytest.raises(ArchiveCorrupt, match="a link"):
        read_config(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ArchiveCorrupt, match="not a regular file"):
        read_config(path)


STOPPED = encode(RunStopped("x")).decode()


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ("DROP TABLE blobs", "no table 'blobs'"),
        (f"DROP TABLE calls; CREATE VIEW calls AS {ENDLESS} SELECT n, n, n, n FROM r", "no table 'calls'"),
        ("PRAGMA application_id = 1", "not a log that dgm wrote"),
        (f"INSERT INTO events VALUES (99, 1.0, '', NULL, '{STOPPED}')", "missing, or its time is none"),
        ("UPDATE events SET at = 9e999 WHERE seq = 2", "event 2: missing, or its time is none"),
        ("UPDATE events SET at = 'x' WHERE seq = 2", "event 2: missing, or its time is none"),
        ("UPDATE events SET body = '[' WHERE seq = 2", "event 2: "),
        ("UPDATE events SET body = x'7b7d' WHERE seq = 2", "event 2: "),
        (f"UPDATE events SET body = '{'[' * 20_000}' WHERE seq = 2", "event 2: "),
        (
            "UPDATE events SET body = json_set(body, '$.outcome.commit', '--output=x') WHERE seq = 2",
            "event 2: ",
        ),
        ("UPDATE events SET body = json_set(body, '$.id', 7) WHERE seq = 2", "event 2 does not fit"),
        ("UPDATE calls SET request = 'text'", "call [01] of action 2: damaged"),
        ("UPDATE calls SET reply = x'00'", "call [01] of action 2: damaged"),
        ("UPDATE calls SET action = 'x' WHERE number = 1 AND action = 2", "."),
        ("DELETE FROM calls", "its request cannot be read"),
        ("DELETE FROM blobs", "is missing"),
    ],
)
def test_a_log_of_another_shape_is_refused(folder: Path, tmp_path: Path, sql: str, fault: str) -> None:
    change_log(folder, sql)
    with pytest.raises(ArchiveCorrupt, match=fault):
        adopt(folder, tmp_path / "ours")


@pytest.mark.parametrize("stored", [zlib.compress(b"another"), b"no zlib", 5])
def test_a_trace_that_is_not_what_its_name_says_is_refused(
    folder: Path, tmp_path: Path, stored: object
) -> None:
    change_log(folder, "UPDATE blobs SET zlib = ?", stored)
    with pytest.raises(ArchiveCorrupt, match=r"trace [0-9a-f]{64}: "):
        adopt(folder, tmp_path / "ours")


@pytest.mark.parametrize(
    "packed", [b"", zlib.compress(b"x" * 99)[:-1], zlib.compress(b"x") + b"more", b"x" * 99, None, "x"]
)
def test_what_is_not_one_complete_stream_is_refused(packed: object) -> None:
    assert b"".join(inflate("", zlib.compress(b"x" * 99))) == b"x" * 99
    with pytest.raises(ArchiveCorrupt, match=r"^place: damaged"):
        list(inflate("place", packed))


def test_a_stream_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adopting, "MAX_BYTES", 1_000)
    assert len(b"".join(inflate("", zlib.compress(bytes(1_000))))) == 1_000
    with pytest.raises(ArchiveCorrupt, match="1000 bytes"):
        list(inflate("place", zlib.compress(bytes(1_001))))


def test_an_honest_log_may_take_far_more_steps_than_it_has_bytes(folder: Path) -> None:
    copy = folder / "run.db"
    with adopting._reading(copy, copy) as log:
        (rows,) = log.execute(f"{ENDLESS} SELECT count(*) FROM (SELECT n FROM r LIMIT 400000)").fetchone()
    assert rows == 400_000 > copy.stat().st_size


def test_reading_a_log_without_end_is_stopped(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adopting, "_FREE_STEPS", -(10**9))
    change_log(folder, f"DROP TABLE calls; CREATE TABLE calls AS {ENDLESS} SELECT n AS action, n AS number, "
                       "x'' AS request, NULL AS reply FROM r LIMIT 200000")  # fmt: skip
    with pytest.raises(ArchiveCorrupt, match=r"interrupted|damaged"):
        adopt(folder, tmp_path / "ours")


@pytest.mark.parametrize("at", ["x", 9e999, 1e300, -1.0])
def test_an_event_at_no_time_is_refused_in_a_folder(folder: Path, at: object) -> None:
    names = ("events_are_never_changed", "events_are_never_deleted")
    with contextlib.closing(sqlite3.connect(folder / "run.db")) as log:
        rows = log.execute("SELECT sql FROM sqlite_master WHERE name IN (?, ?)", names).fetchall()
        log.executescript(DROP)
        log.execute("UPDATE events SET at = ? WHERE seq = 2", (at,))
        log.executescript(";".join(sql for (sql,) in rows))
        log.commit()
    with pytest.raises(ArchiveCorrupt, match=r"run\.db: event 2: its time is none"):
        Run.open(folder)


def test_a_newer_log_says_to_upgrade(folder: Path, tmp_path: Path) -> None:
    change_log(folder, "PRAGMA user_version = 99")
    with pytest.raises(UserError, match="upgrade dgm"):
        adopt(folder, tmp_path / "ours")


def put_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


@pytest.mark.parametrize("name", ["run.db", "run.db-wal", "agents.git/objects/ab/" + "c" * 38])
@pytest.mark.parametrize("make", [put_link, os.mkfifo])
def test_links_and_pipes_in_place_of_files_are_refused(
    folder: Path, tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    with pytest.raises((ArchiveCorrupt, UserError), match=r"link|regular file|no such file"):
        adopt(folder, tmp_path / "ours")
    if name.startswith("run.db"):
        with pytest.raises(ArchiveCorrupt, match=f"{name}: a link, or not a file"):
            Run.open(folder)


def test_a_damaged_object_is_refused(folder: Path, tmp_path: Path) -> None:
    path = next((folder / "agents.git" / "objects").glob("pack/*.pack"))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:60] + b"\xff\xff" + path.read_bytes()[62:])
    with pytest.raises(ArchiveCorrupt):
        adopt(folder, tmp_path / "ours")


def test_a_trace_of_many_zeros_is_never_in_memory_as_a_whole() -> None:
    packed = zlib.compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        assert sum(map(len, inflate("", packed))) == 50_000_000
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
