"""The lock of a run, and whether a process holds it, without any help of ``/proc``."""

import json
import os
import subprocess
import sys

import pytest

from dgm.archive.history import writer
from dgm.archive.lock import WriterLock, is_locked
from dgm.errors import ArchiveBusy

HOLD = """
import sys
from pathlib import Path
from dgm.archive.lock import WriterLock
held = WriterLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_writer_is_known_until_it_lets_go(tmp_path):
    lock = tmp_path / "run.lock"
    assert not is_locked(lock)
    held = WriterLock(lock)
    assert is_locked(lock)
    assert writer(tmp_path)[0] == os.getpid()
    held.close()
    assert not is_locked(lock)
    assert writer(tmp_path) is None


def test_asking_disturbs_nobody(tmp_path):
    held = WriterLock(tmp_path / "run.lock")
    for _ in range(3):
        writer(tmp_path)
    with pytest.raises(ArchiveBusy, match=f"pid {os.getpid()} on "):
        WriterLock(tmp_path / "run.lock")
    held.close()


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
