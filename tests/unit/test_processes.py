"""Programs are out of reach of a Ctrl-C from their first moment on."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dgm.processes import GivenUp, ended_by, run_apart, start_apart

pytestmark = pytest.mark.starts_processes

HAIL = """
import os, signal, sys, threading, time
from pathlib import Path

def begin():
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    def hail():
        while True:
            os.killpg(0, signal.SIGINT)
            time.sleep(0.001)
    threading.Thread(target=hail, daemon=True).start()
    while not heard:
        time.sleep(0.001)

def open_files():
    return len(os.listdir("/proc/self/fd"))
"""
"""A process group in which every process hears SIGINT hundreds of times a second."""
RUN = """
from dgm.processes import run_apart
begin()
before = open_files()
for number in range(40):
    done = run_apart(["cat"], cwd=Path("/"), env=os.environ, timeout_s=60, given=str(number).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, str(number).encode(), b""), done
assert open_files() == before
"""
UNATTENDED = """
from dgm.processes import run_apart
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(40):
    assert run_apart(["true"], cwd=Path("/"), env=os.environ, timeout_s=60).returncode == 0
"""
"""As below some supervisors: the kernel waits for children, and how they ended is not to be had."""
CONFINED = """
import asyncio
from dgm.sandboxes.confined import _start

async def starts():
    await one("first", True)
    before = open_files()
    begin()
    for number in range(40):
        await one(str(number), number % 2)
    await asyncio.sleep(0.2)
    assert open_files() <= before, (before, open_files())

async def one(word, long):
    process = await _start(["sh", "-c", f"{'sleep 0.05;' if long else ''} echo {word}"], ())
    assert (await process.stdout.read(), await process.wait()) == (f"{word}\\n".encode(), 0), process
    process.stdin.close()
    await process.stdin.wait_closed()

asyncio.run(starts())
"""


@pytest.mark.parametrize("starts", [RUN, CONFINED, UNATTENDED])
def test_no_ctrl_c_reaches_them_and_no_supervisor_confuses_them(starts):
    done = subprocess.run(
        [sys.executable, "-c", HAIL + starts],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        start_new_session=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_program_prints_is_kept_whatever_its_exit_code(tmp_path):
    done = run_apart(
        ["sh", "-c", "pwd; echo $WORD >&2; exit 3"], cwd=tmp_path, env={"WORD": "word"}, timeout_s=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path}\n".encode(), b"word\n")


def test_one_that_takes_too_long_is_killed(tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        run_apart(["sh", "-c", "echo $$ > pid; exec sleep 600"], cwd=tmp_path, env={}, timeout_s=0.5)
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_what_one_that_has_ended_left_behind_is_killed(tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        run_apart(["sh", "-c", "sleep 600 & echo $! > pid"], cwd=tmp_path, env=os.environ, timeout_s=0.3)
    started = int((tmp_path / "pid").read_text())
    for _ in range(1000):
        if not is_running(started):
            break
        time.sleep(0.01)
    assert not is_running(started)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_one_that_nobody_waits_for_is_killed_with_what_it_started(tmp_path):
    program = "sleep 600 & echo $! > pid.new; mv pid.new pid; wait"
    given_up = threading.Event()

    def give_up():
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        given_up.set()

    threading.Thread(target=give_up).start()
    with ended_by(given_up), pytest.raises(GivenUp):
        run_apart(["sh", "-c", program], cwd=tmp_path, env=os.environ, timeout_s=60)
    started = int((tmp_path / "pid").read_text())
    for _ in range(1000):
        if not is_running(started):
            break
        time.sleep(0.01)
    assert not is_running(started)
    with ended_by(given_up), pytest.raises(GivenUp):
        run_apart(["touch", "begun"], cwd=tmp_path, env=os.environ, timeout_s=60)
    assert not (tmp_path / "begun").exists()


def test_one_that_is_waited_for_gets_all_of_its_input(tmp_path):
    program = ["sh", "-c", "sleep 0.2; wc -c"]
    with ended_by(threading.Event()):
        done = run_apart(program, cwd=tmp_path, env=os.environ, timeout_s=60, given=b"x" * 300_000)
    assert done.stdout.strip() == b"300000"
    with ended_by(threading.Event()), pytest.raises(subprocess.TimeoutExpired):
        run_apart(["sleep", "600"], cwd=tmp_path, env=os.environ, timeout_s=0.3)


def test_one_that_is_not_there_is_the_callers_to_report(tmp_path):
    with pytest.raises(FileNotFoundError):
        start_apart(["no-such-program"], cwd=tmp_path, env={})


def test_each_has_a_session_of_its_own(tmp_path):
    with start_apart(["cat"], cwd=tmp_path, env={}) as process:
        assert os.getsid(process.pid) == process.pid
