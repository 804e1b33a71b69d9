"""Runs a command with a terminal for its streams, and returns what it shows."""

import os
import pty
import subprocess
import termios
from collections.abc import Mapping, Sequence


def shown_on_a_terminal(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what a command that must end with 0 writes to its terminal, lines ended by a line feed alone."""
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 10_000):
            said += chunk
    except OSError:
        pass  # what a terminal says when nobody is on its other end
    os.close(ours)
    assert process.wait(60) == 0, said
    return said.decode()
