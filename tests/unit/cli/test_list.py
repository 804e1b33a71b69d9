"""``dgm list``: every run is a row; what cannot be read says so and hides no other."""

import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from dgm.analysis.best import best_of
from dgm.analysis.best_cache import find_cached_best
from dgm.analysis.budget_use import BudgetUse, nearest_limit
from dgm.analysis.run_list import list_runs, read_row
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.cli.main import main
from dgm.domain import AgentId, Tally
from dgm.show.runs import left_text, run_lines
from dgm.show.spans import plain_text
from dgm.show.times import rough_duration_text
from tests.support.runs.packable import begin, child, evaluate

pytestmark = pytest.mark.slow


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive with a running run, an interrupted one, and whatever else may lie there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "archive"
    folder.mkdir()
    with begin(folder / "cut") as run:
        evaluate(run, "it")
        child(run)
    shutil.copytree(folder / "cut", folder / "foreign")
    (folder / "foreign" / "events.lock").write_text('{"pid": 7, "host": "gpu-7\\u001b[31m"}')
    shutil.copytree(folder / "cut", folder / "newer")
    with closing(sqlite3.connect(folder / "newer" / "events.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    shutil.copytree(folder / "cut", folder / "broken")
    (folder / "broken" / "events.db").write_bytes(b"SQLite format 3\0" + bytes(5_000))
    shutil.copytree(folder / "cut", folder / "odd")
    (folder / "odd" / "run.json").write_text('{"format": 1, "config": {"settings": [1], "created": "x"}}')
    (folder / "notes").mkdir()
    (folder / "seed").mkdir()
    (folder / ".draft.new").mkdir()
    (folder / "README.md").write_text("hello")
    (folder / "given.dgm").write_bytes(b"no pack")
    return folder


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict]:
    with pytest.raises(SystemExit) as left:
        main(["list", "--json", *words])
    assert left.value.code == 0
    return {row["run"]: row for row in json.loads(capsys.readouterr().out)["runs"]}


def test_every_folder_is_a_row(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Run.open(archive / "cut", write=True):
        rows = listed(capsys, "--sizes")
    states = {name: row["state"] for name, row in rows.items()}
    assert states == {
        "cut": "running",
        "foreign": "running",
        "newer": "unreadable",
        "broken": "damaged",
        "odd": "damaged",
        "notes": "not a run",
        "given.dgm": "packed",
    }
    assert (rows["cut"]["pid"], rows["cut"]["host"]) == (os.getpid(), None)
    assert (rows["foreign"]["pid"], rows["foreign"]["host"]) == (None, "gpu-7\x1b[31m")
    assert "newer dgm" in rows["newer"]["problem"]
    assert rows["cut"]["budget"] == {"evaluations": {"limit": 5, "used": 1.0, "left": 4.0}}
    assert rows["cut"]["best"]["own"]["resolved"] == 1
    assert all(row["bytes"] for row in rows.values())
    assert listed(capsys)["cut"]["bytes"] is None


def test_people_read_every_row_and_no_control_character(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["list"])
    out = capsys.readouterr().out
    assert left.value.code == 0
    assert "\x1b" not in out
    assert all(name in out for name in ("cut", "foreign", "newer", "broken", "odd", "notes", "given.dgm"))
    assert "it runs there, or this is a copy from there" in out
    assert "4 of 5 evaluations" in out
    # Damage goes last.
    assert out.index("interrupted") < out.index("damaged")


def test_columns_go_where_a_terminal_is_narrow(archive: Path) -> None:
    rows = [row for row in list_runs(archive) if row.seen]
    wide = next(plain_text(line) for line in run_lines(rows, time.time()))
    narrow = [plain_text(line) for line in run_lines(rows, time.time(), width=70)]
    assert wide.split() == ["RUN", "STATE", "AGE", "LAST", "AGENTS", "BEST", "SPENT", "LEFT"]
    assert "LEFT" in narrow[0]
    assert len(narrow[0]) <= 70
    assert "AGENTS" not in narrow[0]


def test_a_folder_that_is_not_there_is_told(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["list", str(archive / "nowhere")])
    assert left.value.code == 2
    assert "no such folder" in capsys.readouterr().err


def test_an_empty_archive_says_how_to_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["list", str(tmp_path)])
    assert left.value.code == 0
    assert "start one with: dgm run" in capsys.readouterr().out


def test_the_best_agent_is_kept_until_the_log_grows(archive: Path) -> None:
    seen = read_row(archive / "cut").seen
    assert seen is not None
    [kept] = (archive.parent / "cache" / "dgm" / "best").iterdir()
    kept.write_bytes(kept.read_bytes().replace(b'"agent":0', b'"agent":1'))
    known = find_cached_best(archive / "cut", seen)
    assert known is not None
    assert known.agent == 1
    with Run.open(archive / "cut", write=True) as run:
        evaluate(run, "more", "b")
        row = read_row(archive / "cut")
        assert row.best is not None
        assert (row.best.agent, row.best.own) == (best_of(run), Tally(2, 0))


def test_a_copy_that_went_on_by_itself_has_a_best_agent_of_its_own(archive: Path) -> None:
    for name in ("cut", "foreign"):
        with Run.open(archive / name, write=True) as run:
            evaluate(run, name, "b")
    assert read_row(archive / "cut").best == read_row(archive / "foreign").best
    with EventStore.open(archive / "cut" / "events.db", write=False) as log:
        first = log.newest()
    assert first == read_row(archive / "foreign").seen.events  # type: ignore[union-attr]
    [kept] = (archive.parent / "cache" / "dgm" / "best").iterdir()
    kept.write_bytes(kept.read_bytes().replace(b'"agent":0', b'"agent":1'))
    assert read_row(archive / "cut").best.agent == AgentId(0)  # type: ignore[union-attr]


def test_the_nearest_limit_is_the_one_of_which_most_is_used() -> None:
    uses = [BudgetUse("agents", 9, 9), BudgetUse("usd", 1.0, 4.0), BudgetUse("evaluations", 10, 100)]
    found = nearest_limit(uses)
    assert found is not None
    assert left_text(found) == "3.00 of 4.00 USD"
    assert nearest_limit([]) is None


@pytest.mark.parametrize(
    ("seconds", "said"), [(-5, "0 s"), (59, "59 s"), (120, "2 min"), (7_200, "2 h"), (3e5, "3 d")]
)
def test_ages_are_short(seconds: float, said: str) -> None:
    assert rough_duration_text(seconds, 1) == said
