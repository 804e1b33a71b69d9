"""Signals that ask a command to end: SIGTERM, and SIGHUP of a closed terminal, do what Ctrl-C does.

What a command has open is then put away: sandboxes, the gateway, temporary folders. A signal that whoever started the
command has ignored stays ignored: that is how nohup keeps a search alive.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_ASKING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt what runs inside as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in _heeded(_ASKING)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stopping_signals() -> Sequence[signal.Signals]:
    """Return the signals that ask a search to stop in good order: Ctrl-C, SIGTERM and SIGHUP, without ignored ones."""
    return [signal.SIGINT, *_heeded(_ASKING)]


def leave_closed_terminal() -> bool:
    """Write nowhere from now on instead of to a terminal that is closed; return whether one is."""
    closed = [number for number in (1, 2) if _is_closed_terminal(number)]
    if closed:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in closed:
            os.dup2(nowhere, number)
        os.close(nowhere)
    return bool(closed)


def print_line(text: str) -> None:
    """Print a line at once; where standard output was a terminal that is closed by now, nothing happens."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EIO or not leave_closed_terminal():
            raise


def _heeded(numbers: Sequence[signal.Signals]) -> list[signal.Signals]:
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    if number == signal.SIGHUP:
        # The kernel says that a terminal is closed, and so does the shell; the second must not cut the end short.
        signal.signal(number, signal.SIG_IGN)
        leave_closed_terminal()
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):
        # Started by a shell script in the background, where Ctrl-C is not for it.
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _is_closed_terminal(number: int) -> bool:
    """Whether a descriptor was of a terminal that has hung up: any question to it is then an error of input."""
    try:
        os.tcgetpgrp(number)
    except OSError as error:
        return error.errno == errno.EIO
    return False
