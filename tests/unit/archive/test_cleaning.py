"""``dgm.clean``: what is removed, and above all what is not."""

import json
import os
import shutil
import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from dgm.api.machine import clean_runs, remove_runs
from dgm.archive.adopt import verify
from dgm.archive.cleanup import FILE, FOLDER, OBJECT, clean_run, find_dead_drafts, remove_run
from dgm.archive.run import Run
from dgm.domain import ActionId, Entry
from dgm.errors import UserError
from dgm.gateway.leftovers import find_dead_gateways
from tests.support.runs.packable import ask_raw, begin, child, evaluate

pytestmark = pytest.mark.slow

LONG_AGO = 1_000_000_000


@pytest.fixture
def dirty(tmp_path: Path) -> Path:
    """A run with all that a dead process can leave in it."""
    folder = tmp_path / "archive" / "dirty"
    folder.parent.mkdir()
    with begin(folder) as run:
        evaluate(run, "it")
        child(run)
        ask_raw(run, "raw")
        run.repository.commit({"agent.toml": Entry(b"nobody's")}, (run.tree.agents[0].commit,))
        run.repository.name_waiting(ActionId(77), run.repository.commit({"a": Entry(b"waits")}, ()))
        (folder / "approvals").mkdir()
        (folder / "approvals" / ".0123456789ab").write_bytes(b"half")
        (folder / "approvals" / "mine").write_bytes(b"not ours")
        (folder / ".0123456789ab").write_bytes(b"half")
        (folder / "notes.txt").write_text("mine")
    return folder


def files(folder: Path) -> set[str]:
    """All but what SQLite puts beside a log that is read."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    return {name for name in found if not name.endswith(("-wal", "-shm"))}


@pytest.mark.starts_processes
def test_only_what_nothing_names_is_removed(dirty: Path) -> None:
    before = files(dirty)
    shown = clean_run(dirty, delete=False)
    assert files(dirty) == before
    found = [left.what for left in shown.found]
    assert {what: found.count(what) for what in found} == {OBJECT: 1, FILE: 2}
    removed = clean_run(dirty, delete=True)
    assert removed.found == shown.found
    gone = {name for name in before - files(dirty) if not name.startswith("agents.git/objects/")}
    assert gone == {str(left.path.relative_to(dirty)) for left in shown.found if left.what != OBJECT}
    assert clean_run(dirty, delete=True).found == []
    (dirty / "approvals" / "mine").unlink()
    verify(dirty)


@pytest.mark.starts_processes
def test_a_commit_that_an_event_names_is_kept_without_its_ref(dirty: Path) -> None:
    clean_run(dirty, delete=True)
    (dirty / "agents.git" / "refs" / "heads" / "agents" / "1").unlink()
    assert clean_run(dirty, delete=False).found == []


@pytest.mark.slow
def test_a_run_that_is_written_is_left_alone(dirty: Path) -> None:
    before = files(dirty)
    with Run.open(dirty, write=True):
        assert f"pid {os.getpid()}" in clean_run(dirty, delete=True).skipped
        with pytest.raises(UserError, match="being written"):
            remove_run(dirty)
    assert files(dirty) == before


@pytest.mark.slow
def test_a_run_inside_a_run_keeps_both(dirty: Path) -> None:
    with begin(dirty / "holdout"), pytest.raises(UserError, match="holdout: is being written"):
        remove_run(dirty)


@pytest.mark.slow
def test_a_run_of_another_host_is_left_alone(dirty: Path) -> None:
    holder = {"pid": 1, "host": "elsewhere", "machine": "another", "boot": "b", "pids": "p"}
    (dirty / "run.lock").write_text(json.dumps(holder))
    assert "may be running on elsewhere" in clean_run(dirty, delete=True).skipped
    with pytest.raises(UserError, match="may be running on elsewhere"):
        remove_run(dirty)


def test_nothing_is_removed_where_the_log_cannot_be_read(dirty: Path) -> None:
    (dirty / "run.db").write_bytes(b"garbage")
    before = files(dirty)
    assert "not a database" in clean_run(dirty, delete=True).skipped
    assert files(dirty) == before


@pytest.mark.starts_processes
def test_links_are_not_followed(dirty: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.move(dirty / "approvals", outside)
    (dirty / "approvals").symlink_to(outside)
    group = outside / "0f"
    group.mkdir(exist_ok=True)
    before = files(outside)
    assert {left.what for left in clean_run(dirty, delete=True).found} == {OBJECT, FILE}
    link = dirty.with_name("link")
    link.symlink_to(dirty)
    assert "a link" in clean_run(link, delete=True).skipped
    with pytest.raises(UserError, match="is a link"):
        remove_run(link)
    remove_run(dirty)
    assert files(outside) == before


@pytest.mark.slow
def test_files_of_the_user_stay_when_a_run_is_removed(dirty: Path) -> None:
    with begin(dirty / "evaluate-x"):
        pass
    assert remove_run(dirty) == ["notes.txt"]
    assert files(dirty) == {"notes.txt"}
    assert [path.name for path in dirty.parent.iterdir()] == ["dirty"]


@pytest.mark.slow
def test_a_damaged_run_can_be_removed(dirty: Path) -> None:
    (dirty / "notes.txt").unlink()
    (dirty / "run.db").write_bytes(b"garbage")
    assert remove_run(dirty) == []
    assert list(dirty.parent.iterdir()) == []


def test_drafts_of_dead_processes_are_found_when_they_are_old(tmp_path: Path) -> None:
    for name in (".a.new", ".b.0123456789ab", ".c.new", ".d.new", ".e.dgm.abcd1234"):
        (tmp_path / name).mkdir()
    (tmp_path / ".a.new" / "run.json").write_text("{}")
    (tmp_path / ".b.0123456789ab" / "traces").mkdir()
    (tmp_path / ".c.new" / "run.json").write_text("{}")
    (tmp_path / ".d.new" / "mine.txt").write_text("{}")
    (tmp_path / ".e.dgm.abcd1234" / "pack").write_text("{}")
    for path in tmp_path.rglob("*"):
        if ".c.new" not in str(path):
            os.utime(path, (LONG_AGO, LONG_AGO))
    found = list(find_dead_drafts(tmp_path))
    assert [left.path.name for left in found] == [".a.new", ".b.0123456789ab", ".e.dgm.abcd1234"]
    assert {left.what for left in found} == {FOLDER}


def test_a_gateway_is_dead_when_nobody_listens(tmp_path: Path) -> None:
    names = {
        "living": "dgm-gateway-0123456789abcdef-aaaaaaaa",
        "beside_living": "dgm-gateway-0123456789abcdef-aaaaaaaa-evidence-bbbbbbbb",
        "dead": "dgm-gateway-0123456789abcdef-cccccccc",
        "beside_dead": "dgm-gateway-0123456789abcdef-cccccccc-evidence-dddddddd",
        "new": "dgm-gateway-eeeeeeee",
        "old": "dgm-gateway-ffffffff",
        "other": "dgm-gateway-mine",
    }
    for name in names.values():
        (tmp_path / name).mkdir()
    os.utime(tmp_path / names["old"], (LONG_AGO, LONG_AGO))
    os.utime(tmp_path / names["other"], (LONG_AGO, LONG_AGO))
    (tmp_path / "dgm-gateway-gggggggg").symlink_to(tmp_path)
    with closing(socket.socket(socket.AF_UNIX)) as dead:
        _bind(dead, tmp_path / names["dead"])
    with closing(socket.socket(socket.AF_UNIX)) as living:
        _bind(living, tmp_path / names["living"])
        living.listen()
        found = {left.path.name for left in find_dead_gateways(tmp_path)}
    assert found == {names["dead"], names["beside_dead"], names["old"]}


def _bind(one: socket.socket, folder: Path) -> None:
    """The path of a socket must be short, and a test's folder may be long."""
    opened = os.open(folder, os.O_RDONLY)
    one.bind(f"/proc/self/fd/{opened}/gateway.sock")
    os.close(opened)


@pytest.fixture
def here(dirty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive around the run, with an empty place for temporary folders."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("DGM_ARCHIVE", str(dirty.parent))
    monkeypatch.chdir(tmp_path)
    return dirty


@pytest.mark.starts_processes
def test_leftovers_are_removed_and_counted(here: Path) -> None:
    with begin(here.parent / "busy"):
        shutil.copytree(here, here.parent / ".draft.new")
        os.utime(here.parent / ".draft.new", (LONG_AGO, LONG_AGO))
        found = clean_run(here, delete=False).found
        cleaned = clean_runs()
        busy, dirty = cleaned.runs
        assert "is being written" in busy.skipped
        assert dirty.bytes == sum(left.size_bytes for left in found)
        assert (cleaned.bytes >= dirty.bytes, cleaned.failed) == (True, ())
    assert "dirty" not in [run.run for run in clean_runs().runs]


def test_whole_runs_are_removed_only_after_a_yes(here: Path) -> None:
    asked: list[Mapping[Path, int]] = []

    def answer(sizes: Mapping[Path, int]) -> bool:
        asked.append(sizes)
        return len(asked) > 1

    assert remove_runs("dirty", confirm=answer).runs == ()
    assert here.exists()
    with pytest.raises(UserError, match="no run 'dirt'"):
        remove_runs("dirty", "dirt", confirm=answer)
    assert here.exists()
    (run,) = remove_runs("dirty", "dirty", confirm=answer).runs
    assert (run.kept, run.bytes) == (("notes.txt",), *asked[-1].values())
    assert [path.name for path in here.iterdir()] == ["notes.txt"]
