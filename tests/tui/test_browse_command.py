"""``dgm browse`` as it is typed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "dgm", "browse"]


def test_without_a_terminal_it_is_one_line(example: Path) -> None:
    done = subprocess.run(
        [*COMMAND, str(example)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "browse needs a terminal" in done.stderr


class Typed:
    """The command on a terminal of its own."""

    def __init__(self, *words: str, term: str = "xterm-256color", columns: int = 100) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {**os.environ, "TERM": term}
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = b""

    def read(self, until: bytes, seconds: float = 300.0) -> bytes:
        end = time.monotonic() + seconds
        while until not in self.seen and time.monotonic() < end:
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.master, 1 << 16)
                except OSError:
                    break
        return self.seen

    def code(self) -> int:
        try:
            return self.process.wait(300)
        finally:
            self.process.kill()
            os.close(self.master)


def test_it_shows_the_run_and_leaves_the_terminal_as_it_was(example: Path) -> None:
    typed = Typed(str(example), "3", "--theme", "light")
    assert b"first-search" in typed.read(b"first-search")
    typed.read(b"self-edit")
    os.write(typed.master, b"q")
    assert typed.read(b"\x1b[?1049l").endswith(b"\x1b[?1049l") or b"\x1b[?1049l" in typed.seen
    assert typed.code() == 0
    assert b"Traceback" not in typed.seen


@pytest.mark.parametrize(
    ("words", "term", "complaint"),
    [
        (("no-such-run",), "xterm", b"no run 'no-such-run'"),
        (("{run}",), "dumb", b"browse needs a terminal"),
        (("{run}", "x"), "xterm", b"'x' is neither the number of an agent nor 'best'"),
        (("{run}", "--theme", "pink"), "xterm", b"pink"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], term: str, complaint: bytes, example: Path) -> None:
    typed = Typed(*(word.format(run=example) for word in words), term=term)
    typed.read(b"\n")
    assert typed.code() == 2
    typed_lines = typed.seen.strip().splitlines()
    assert complaint in typed.seen
    assert b"Traceback" not in typed.seen
    assert len(typed_lines) == 1


def test_an_unknown_agent_is_named_once_the_run_is_read(example: Path) -> None:
    typed = Typed(str(example), "99")
    assert b"no agent 99; there are 0 to 11" in typed.read(b"no agent 99")
    typed.read(b"\n")
    assert typed.code() == 2
    assert b"Traceback" not in typed.seen
