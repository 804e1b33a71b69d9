"""A person at a terminal is asked about what is another's, once; elsewhere the command ends."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ASKING = """
from dgm.cli.app import call_with_consent
from dgm.consents import ConsentNeeded, Subject

SUBJECTS = [Subject("one", "one"), Subject("two", "two")]

def command():
    for subject in SUBJECTS:
        if not subject.is_agreed():
            raise ConsentNeeded("no consent", f"Use \\x1b[2J{subject.words}", [subject])
    print("performed")

try:
    call_with_consent(command, agree=False)
except ConsentNeeded as needed:
    print("ended:", needed.problem)
"""

pytestmark = pytest.mark.starts_processes


def ask(state, answers):
    """What a real terminal shows; it also echoes the answers."""
    screen, line = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(state), "TERM": "dumb"}
    words = [sys.executable, "-c", ASKING]
    with subprocess.Popen(words, stdin=line, stdout=line, stderr=line, env=environment, cwd=ROOT) as asking:
        os.close(line)
        os.write(screen, answers)
        shown = b""
        while True:
            try:
                shown += os.read(screen, 4096)
            except OSError:
                break
        os.close(screen)
        asking.wait(60)
    return shown.decode()


def test_each_thing_is_asked_about_once(tmp_path):
    first = ask(tmp_path, b"y\ny\n")
    assert [first.count(question) for question in ("one? [y/N]", "two? [y/N]", "performed")] == [1, 1, 1]
    assert "\x1b" not in first
    again = ask(tmp_path, b"")
    assert ("?" in again, "performed" in again) == (False, True)
    files = list((tmp_path / "dgm" / "agreed").iterdir())
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]


def test_enter_alone_is_no(tmp_path):
    said = ask(tmp_path, b"\n")
    assert ("ended: no consent" in said, "performed" in said) == (True, False)


def test_without_a_terminal_nobody_is_asked(tmp_path):
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    words = [sys.executable, "-c", ASKING]
    done = subprocess.run(words, input=b"y\ny\n", capture_output=True, env=environment, cwd=ROOT, check=True)
    assert (done.stdout, done.stderr) == (b"ended: no consent\n", b"")
