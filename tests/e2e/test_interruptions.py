"""Searches that are stopped, doubled, starved of disk or cut off from their engine."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import SMALL
from tests.support.program import OFFLINE, PATIENCE_S, copy_of_run

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


@contextlib.contextmanager
def searches(dgm):
    """Starts searches in the background; none outlives the context."""
    processes = []

    def start(name, *words, archive=dgm.archive):
        given = [*OFFLINE, "--name", name, *map(str, words)]
        process = subprocess.Popen(
            [sys.executable, "-m", "dgm", "run", *given],
            env={**os.environ, "DGM_ARCHIVE": str(archive)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        wait_for(lambda: graded(archive / name) >= 1 or process.poll() is not None)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def started(dgm):
    with searches(dgm) as start:
        yield start


@pytest.fixture(scope="module")
def busy(dgm):
    """A search that goes on until the last test that looks at it stops it."""
    with searches(dgm) as start:
        yield start("busy", "--max-evaluations", 200)


def wait_for(holds, seconds=PATIENCE_S):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def graded(run: Path) -> int:
    try:
        with sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True) as connection:
            return connection.execute("select count(*) from evaluations").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def test_ctrl_c_ends_in_good_order(dgm, started):
    process = started("once", "--max-evaluations", 60)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "to continue: dgm resume once" in errors
    status = dgm.json("status", "once")
    assert status["evaluations"]["invalid"] == 0
    assert (status["state"], status["running"]) == ("stopped", 0)
    assert status["evaluations"]["graded"] == graded(dgm.archive / "once") < 60
    more = status["evaluations"]["graded"] + 1
    assert dgm.json("resume", "once", "--max-evaluations", more)["evaluations"]["graded"] == more


def test_twice_stops_at_once_and_loses_nothing_recorded(dgm, started):
    process = started("twice", "--max-evaluations", 60)
    process.send_signal(signal.SIGHUP)  # of a terminal that is closed: the same as Ctrl-C
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 130)
    assert "dgm resume twice" in errors
    before = graded(dgm.archive / "twice")
    done = dgm.json("resume", "twice", "--max-evaluations", before + 1)
    assert done["evaluations"]["graded"] >= before + 1


def test_a_run_is_read_while_it_is_written(dgm, busy):
    seen = [dgm.json("status", "busy")["evaluations"]["graded"] for _ in range(3)]
    assert seen == sorted(seen)
    assert dgm.json("show", "busy")["agents"][0]["agent"] == 0


def test_a_second_writer_is_refused_by_name(dgm, busy):
    refused = dgm("resume", "busy", code=2).stderr
    assert f"pid {busy.pid}" in refused
    assert busy.poll() is None


def test_stop_is_asked_for_from_elsewhere(dgm, busy):
    assert dgm.json("status", "busy")["state"] == "running"
    assert dgm.json("stop", "busy")["pid"] == busy.pid
    busy.communicate(timeout=PATIENCE_S)
    assert busy.returncode == 0
    assert dgm.json("status", "busy")["state"] == "stopped"


def test_the_same_run_twice_is_the_same_run(dgm, searched):
    dgm(*SMALL, "--name", "again", cold=True)
    logs = []
    for name in ("small", "again"):
        agents = [a["commit"] for a in dgm.json("show", name)["agents"]]
        with contextlib.closing(sqlite3.connect(dgm.archive / name / "run.db")) as connection:
            verdicts = connection.execute(
                "select action, agent, task, verdict, reason from evaluations"
            ).fetchall()
        logs.append((agents, verdicts))
    assert logs[0] == logs[1]
    assert len(logs[0][0]) > 3


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 16 MB."""
    place = tmp_path / "tiny"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", place]
    mounted = subprocess.run(words, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("a file system cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=False)


def test_a_full_disk_stops_the_run_and_room_lets_it_go_on(dgm, started, tiny_disk):
    process = started("full", "--max-evaluations", 30, archive=tiny_disk)
    filler = tiny_disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert "disk" in errors or "space" in errors
    before = graded(tiny_disk / "full")
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=60m", tiny_disk], check=True)
    words = [sys.executable, "-m", "dgm", "resume", "full", "--max-evaluations", str(before + 2), "--json"]
    done = subprocess.run(
        words, env={**os.environ, "DGM_ARCHIVE": str(tiny_disk)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evaluations"]["graded"] == before + 2


def damage(run: Path, how: str) -> None:
    database = run / "run.db"
    for extra in ("run.db-wal", "run.db-shm"):
        (run / extra).unlink(missing_ok=True)
    data = database.read_bytes()
    if how == "truncated":
        database.write_bytes(data[: len(data) // 2])
    elif how == "overwritten":
        database.write_bytes(data[:100] + b"\xff" * 9000 + data[9100:])
    elif how == "not a database":
        database.write_bytes(b"hello" * 100)
    else:
        database.unlink()


@pytest.mark.parametrize("how", ["truncated", "overwritten", "not a database", "missing"])
def test_a_damaged_log_is_named(dgm, searched, how):
    folder = dgm.archive / f"damaged-{how.replace(' ', '-')}"
    copy_of_run(dgm.archive / "small", folder)
    damage(folder, how)
    for words in (["status", folder.name], ["resume", folder.name, "--max-evaluations", 99]):
        done = dgm.warm([*map(str, words)], dgm.variables, timeout_s=PATIENCE_S)
        assert done.returncode in (1, 2)
        assert "run.db" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_an_archive_of_a_newer_schema_is_refused(dgm, searched):
    folder = dgm.archive / "newer"
    copy_of_run(dgm.archive / "small", folder)
    with sqlite3.connect(folder / "run.db") as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    assert "newer" in dgm("status", "newer", code=2).stderr
    assert "newer" in dgm("resume", "newer", code=2).stderr
