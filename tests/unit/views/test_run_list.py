"""The list of runs: every run is a row, and an unreadable one hides no other."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dgm.archive.run import Run
from dgm.errors import UserError
from dgm.views.run_list import RunListView, RunRow
from tests.support.runs.packable import begin, child, evaluate

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive with an interrupted run, damaged copies of it, and other files."""
    folder = tmp_path / "archive"
    monkeypatch.setenv("DGM_ARCHIVE", str(folder))
    monkeypatch.chdir(tmp_path)
    folder.mkdir()
    with begin(folder / "cut") as run:
        evaluate(run, "it")
        child(run)
    for name in ("foreign", "newer", "broken", "odd", "exam"):
        shutil.copytree(folder / "cut", folder / name)
    (folder / "foreign" / "run.lock").write_text(
        '{"pid": 7, "host": "gpu-7\\u001b[31m", "machine": "another"}'
    )
    with closing(sqlite3.connect(folder / "newer" / "run.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    (folder / "broken" / "run.db").write_bytes(b"SQLite format 3\0" + bytes(5_000))
    (folder / "odd" / "run.json").write_text('{"format": 1, "config": {"settings": [1], "created": "x"}}')
    exam = (folder / "exam" / "run.json").read_text()
    (folder / "exam" / "run.json").write_text(exam.replace('"config": {', '"config": {"evaluation": {}, ', 1))
    (folder / "notes").mkdir()
    (folder / "seed").mkdir()
    (folder / ".draft.new").mkdir()
    (folder / "README.md").write_text("hello")
    (folder / "given.dgm").write_bytes(b"no pack")
    return folder


def rows_of(folder: Path | None = None) -> dict[str, RunRow]:
    return {row.run: row for row in RunListView.load(folder).runs}


def test_every_run_is_a_row_and_nothing_else(archive: Path) -> None:
    with Run.open(archive / "cut", write=True):
        rows = rows_of()
    assert {name: row.state for name, row in rows.items()} == {
        "cut": "running",
        "foreign": "running",
        "newer": "unreadable",
        "broken": "damaged",
        "odd": "damaged",
        "given.dgm": "packed",
    }
    assert (rows["cut"].pid, rows["cut"].host, rows["cut"].written_here) == (os.getpid(), None, True)
    assert (rows["foreign"].pid, rows["foreign"].host) == (None, "gpu-7\x1b[31m")
    assert "newer dgm" in (rows["newer"].problem or "")
    best, budget = rows["cut"].best, rows["cut"].budget
    assert best is not None
    assert budget is not None
    assert (best.agent, best.own.resolved) == (0, 1)
    assert (budget["evaluations"].limit, budget["evaluations"].used, budget["evaluations"].left) == (5, 1, 4)


def test_damaged_runs_come_last(archive: Path) -> None:
    assert [row.events is None for row in RunListView.load().runs] == [False, False, True, True, True, True]


def test_a_missing_folder_is_refused_and_an_empty_one_is_no_error(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        RunListView.load(archive / "nowhere")
    assert RunListView.load(archive / "notes").runs == ()
