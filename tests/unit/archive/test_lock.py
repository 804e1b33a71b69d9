"""The lock of a run: who holds it, whether that process lives, and whether it can be signalled."""

import json
import os
import socket
import subprocess
import sys

import pytest

from dgm.archive.lock import WriterLock, describe_this_process, is_locked, parse_holder
from dgm.archive.run import writer
from dgm.errors import ArchiveBusy

HOLD = """
import sys
from pathlib import Path
from dgm.archive.lock import WriterLock
held = WriterLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""
HERE = socket.gethostname()


def test_a_writer_is_known_until_it_lets_go(tmp_path):
    lock = tmp_path / "run.lock"
    assert not is_locked(lock)
    held = WriterLock(lock)
    assert is_locked(lock)
    assert writer(tmp_path) == (os.getpid(), HERE, True, True)
    # Asking disturbs nobody.
    with pytest.raises(ArchiveBusy, match=f"pid {os.getpid()} on "):
        WriterLock(lock)
    held.close()
    assert not is_locked(lock)
    assert writer(tmp_path) is None


@pytest.mark.starts_processes
def test_a_writer_that_was_killed_is_dead(tmp_path):
    lock = tmp_path / "run.lock"
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert writer(tmp_path)[0] == process.pid
        process.kill()
        process.wait()
        assert json.loads(lock.read_text())["pid"] == process.pid
        assert writer(tmp_path) is None


def test_a_run_in_another_container_lives_while_its_lock_is_held(tmp_path):
    lock = tmp_path / "run.lock"
    held = WriterLock(lock)
    elsewhere = json.loads(lock.read_text()) | {"machine": "other", "pids": "other", "host": "box"}
    lock.write_text(json.dumps(elsewhere))
    assert writer(tmp_path) == (os.getpid(), "box", False, True)
    held.close()
    assert writer(tmp_path) is None


@pytest.mark.parametrize(
    ("changes", "is_reachable", "is_known"),
    [
        ({}, True, True),
        ({"host": "renamed"}, True, True),
        # Before a new start of the machine, pids were others.
        ({"boot": "before", "pids": "before/1"}, False, True),
        # Another container of this boot is asked about but not signalled.
        ({"machine": "container", "pids": "other"}, False, True),
        ({"machine": "other", "boot": "other", "pids": "other/1"}, False, False),
        *(
            ({"machine": "other", "boot": unknown, "pids": unknown}, False, False)
            for unknown in ("", None, 7)
        ),
    ],
)
def test_a_holder_can_be_asked_about_and_signalled(changes, is_reachable, is_known):
    record = json.loads(describe_this_process()) | changes
    assert parse_holder(json.dumps(record).encode()) == (os.getpid(), record["host"], is_reachable, is_known)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"pid": "x", "host": "h", "machine": "m"}',
        b'{"pid": 1e999, "host": "h", "machine": "m"}',
    ],
)
def test_what_names_nobody_is_refused(data):
    with pytest.raises(ValueError, match=r"^no holder of a lock"):
        parse_holder(data)
