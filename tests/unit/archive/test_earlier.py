"""Runs of the previous version are converted once: nothing is lost, whatever happens meanwhile."""

import contextlib
import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest

from dgm.archive import adopt as adopting
from dgm.archive.adopt import convert_run, verify
from dgm.archive.lock import WriterLock
from dgm.archive.log import FILE
from dgm.archive.run import Run
from dgm.errors import ArchiveBusy, ArchiveCorrupt, UserError
from tests.support.mounts import read_only

pytestmark = pytest.mark.starts_processes
RECORDED = Path(__file__).parents[2] / "recorded" / "examined.tar.xz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(RECORDED) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path / "examined"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def count_rows(path: Path, table: str) -> int:
    with contextlib.closing(sqlite3.connect(path)) as log:
        return int(log.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_the_first_opening_converts_a_run_and_the_next_one_finds_it_converted(folder: Path) -> None:
    events, calls = (count_rows(folder / "events.db", table) for table in ("events", "calls"))
    traces = len(list((folder / "traces").glob("??/*.z")))
    Run.open(folder).close()
    assert {"events.db", "traces"}.isdisjoint(names(folder))
    rows = [count_rows(folder / FILE, table) for table in ("events", "calls", "blobs")]
    assert rows == [events, calls, traces]
    file = (folder / FILE).stat().st_ino
    Run.open(folder, write=True).close()
    assert (folder / FILE).stat().st_ino == file
    assert verify(folder)["traces"] == traces


def test_a_trace_that_no_event_names_goes_and_a_missing_one_stays_missing(folder: Path) -> None:
    kept, *_, lost = sorted((folder / "traces").glob("??/*.z"))
    lost.unlink()
    (kept.parent / f"{'0' * 62}.z").write_bytes(b"x")
    before = len(list((folder / "traces").glob("??/*.z")))
    convert_run(folder)
    assert count_rows(folder / FILE, "blobs") == before - 1
    with pytest.raises(ArchiveCorrupt, match=f"{lost.parent.name}{lost.stem} is missing"):
        verify(folder)


@pytest.mark.parametrize("step", ["sync_file", "sync_folder", "shutil.rmtree"])
def test_a_death_during_the_conversion_loses_nothing(
    folder: Path, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, tmp_path / "other")
    convert_run(tmp_path / "other")
    with monkeypatch.context() as patch:

        def die(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(f"{adopting.__name__}.{step}", die)
        with pytest.raises(KeyboardInterrupt):
            convert_run(folder)
    assert (folder / "events.db").exists()
    Run.open(folder).close()
    assert names(folder) == names(tmp_path / "other")
    assert verify(folder) == verify(tmp_path / "other")


def test_a_run_that_the_previous_version_writes_is_left_alone(folder: Path) -> None:
    before = names(folder) | {"events.lock"}
    lock = WriterLock(folder / "events.lock")
    try:
        for write in (False, True):
            with pytest.raises(ArchiveBusy):
                Run.open(folder, write=write)
    finally:
        lock.close()
    assert names(folder) == before
    Run.open(folder).close()


def test_a_run_in_a_read_only_folder_is_left_alone(folder: Path) -> None:
    with read_only(folder), pytest.raises(UserError, match="read-only"):
        Run.open(folder)


@pytest.mark.parametrize("version", [0, 4, 6])
def test_a_still_earlier_version_is_refused(folder: Path, version: int) -> None:
    with contextlib.closing(sqlite3.connect(folder / "events.db")) as log:
        log.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(UserError, match=rf"events\.db: schema {version} is no longer read"):
        Run.open(folder)
    assert FILE not in names(folder)
    assert not [name for name in names(folder) if name.startswith(".")]


def test_a_damaged_event_is_named_and_nothing_is_changed(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "events.db")) as log:
        log.execute("DROP TRIGGER events_are_never_changed")
        log.execute("UPDATE events SET body = '{}' WHERE seq = 3")
        log.commit()
    with pytest.raises(ArchiveCorrupt, match=r"events\.db: event 3: "):
        Run.open(folder)
    assert {"events.db", "traces"} <= names(folder)
    assert FILE not in names(folder)
