"""Signals that ask a command to end: SIGTERM, and SIGHUP of a closed terminal, do the same as Ctrl-C.

The command then closes its sandboxes, the gateway and temporary folders. A signal that the command's parent has set to
be ignored stays ignored: that is how nohup keeps a search alive.
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
def allow_interrupts() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt the code inside as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in _drop_ignored(_ASKING)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_closed_terminal() -> bool:
    """Discard all further output to a closed terminal; return whether there is one."""
    closed = [number for number in (1, 2) if _is_closed_terminal(number)]
    if closed:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in closed:
            os.dup2(nowhere, number)
        os.close(nowhere)
    return bool(closed)


def print_line(text: str) -> None:
    """Print a line at once; do nothing if standard output was a terminal that is now closed."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EIO or not leave_closed_terminal():
            raise


def _drop_ignored(numbers: Sequence[signal.Signals]) -> list[signal.Signals]:
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    if number == signal.SIGHUP:
        # Both the kernel and the shell send SIGHUP for a closed terminal; the second must not cut the cleanup short.
        signal.signal(number, signal.SIG_IGN)
        leave_closed_terminal()
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):
        # A shell script started this in the background, where Ctrl-C is ignored.
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _is_closed_terminal(number: int) -> bool:
    """Return whether a descriptor was of a terminal that has hung up: any query to it then fails with EIO."""
    try:
        os.tcgetpgrp(number)
    except OSError as error:
        return error.errno == errno.EIO
    return False
