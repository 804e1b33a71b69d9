"""What the programs of ``docs/policies`` start, and how a stop of them ends and is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.starts_processes

FOLDER = Path(__file__).parents[3] / "docs" / "policies"
PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
from commands import exit_code, finish
def main():
    print(finish([sys.executable, "-c", sys.argv[2]]), end="")
    return 0
sys.exit(exit_code(main))
"""
PUTS_AWAY = """\
import pathlib, time
try:
    pathlib.Path("began").touch()
    for _ in range(1200):
        time.sleep(0.05)
except KeyboardInterrupt:
    time.sleep(1)
    pathlib.Path("put-away").touch()
    raise SystemExit(130)
"""
"""Sleeps in pieces: a signal that comes right before a sleep begins does not cut it short."""
ENDS_ALL_THE_SAME = PUTS_AWAY.replace("raise SystemExit(130)", "print('whole')")
IGNORES = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""
TOLD = "interrupted; what is done is kept, start this again to go on\n"


@pytest.fixture(autouse=True)
def _heard():
    """Ctrl-C is not ignored here, also where a shell started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("command", [PUTS_AWAY, ENDS_ALL_THE_SAME])
def test_an_interrupted_command_puts_away_what_it_has_before_the_program_says_so_and_ends(command, tmp_path):
    program = _started(command, tmp_path)
    _wait_for(tmp_path / "began")

    os.killpg(program.pid, signal.SIGINT)
    said, complaint = program.communicate(timeout=300)

    assert (program.returncode, said, complaint) == (130, "", TOLD)
    assert (tmp_path / "put-away").exists()


def test_where_interrupts_are_ignored_the_command_ignores_them_as_well(tmp_path):
    waits = "import pathlib, time; pathlib.Path('began').touch(); time.sleep(1); print('whole')"
    program = _started(waits, tmp_path, sys.executable, "-c", IGNORES)
    _wait_for(tmp_path / "began")

    os.killpg(program.pid, signal.SIGINT)

    assert program.communicate(timeout=300) == ("whole\n", "")
    assert program.returncode == 0


def test_a_failed_command_is_named_and_ends_the_program(tmp_path):
    program = _started("raise SystemExit('no space left')", tmp_path)

    said, complaint = program.communicate(timeout=300)

    assert (program.returncode, said) == (1, "")
    assert complaint.splitlines()[0] == "no space left"
    assert complaint.splitlines()[1].startswith(f"{sys.executable} -c ")
    assert complaint.endswith(": ended with exit code 1; what is done is kept, start this again to go on\n")
    assert len(complaint.splitlines()) == 2


def _started(command: str, folder: Path, *through: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*through, sys.executable, "-c", PROGRAM, str(FOLDER), command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wait_for(path: Path) -> None:
    until = time.monotonic() + 300
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.02)
