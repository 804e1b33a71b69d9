"""SIGTERM and SIGHUP end a command as Ctrl-C does, also where its terminal is closed."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.cli.signals import allow_interrupts

CLOSED = """
import sys, time
from dgm.cli.signals import allow_interrupts, print_line
with allow_interrupts():
    try:
        print_line("ready")
        # In pieces: a signal that comes right before a sleep begins does not cut it short.
        for _ in range(1200):
            time.sleep(0.05)
    except KeyboardInterrupt:
        print_line("said to nobody")
        sys.stderr.write("nor this\\n")
        sys.stderr.flush()
        open(sys.argv[1], "w").write("in good order")
"""


@pytest.fixture(autouse=True)
def _heard():
    """SIGHUP is not ignored here, also where the tests themselves were started by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_is_interrupted(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), allow_interrupts():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_second_hang_up_does_not_cut_the_end_short() -> None:
    with allow_interrupts():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)


@pytest.mark.starts_processes
def test_a_closed_terminal_is_no_error(tmp_path: Path) -> None:
    master, terminal = pty.openpty()
    done = tmp_path / "done"
    process = subprocess.Popen(
        [sys.executable, "-c", CLOSED, str(done)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    assert b"ready" in os.read(master, 100)
    os.close(master)
    process.send_signal(signal.SIGHUP)  # the kernel tells it only to whoever has it as controlling terminal
    assert process.wait(60) == 0
    assert done.read_text() == "in good order"
