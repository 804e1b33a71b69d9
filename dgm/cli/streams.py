"""The three streams of the program: open at its start whatever the shell closed, flushed at its end.

A character that a stream cannot encode is written as ASCII. A reader that has gone, a full disk and a closed stream end
the program in good order.
"""

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING

from dgm.show.ascii import INSTEAD
from dgm.show.terminal import wants_ascii

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAILED = 1
_MODES = ("r", "w", "w")


class _File(io.FileIO):
    """Standard output, which remembers that it did not take what was printed."""

    lost: OSError | None = None

    def write(self, data: "Buffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.lost = error
            raise


def open_streams() -> None:
    """Make all three streams usable: a closed one leads nowhere, and none fails at a character that it lacks."""
    _fill_closed()
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(encoding=_encoding(sys.stderr), errors=INSTEAD)
    before = sys.stdout
    if isinstance(before, io.TextIOWrapper) and before is sys.__stdout__:
        before.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_File(before.fileno(), "wb", closefd=False)),
            encoding=_encoding(before),
            errors=INSTEAD,
            line_buffering=before.line_buffering,
            write_through=before.write_through,
        )


def close_streams(code: int) -> int:
    """Flush what was printed and return the exit code: ``code``, or 1 where standard output did not take all."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    lost = lost_output()
    if lost is None:
        return code
    # Whose reader has gone, as with "| head", wants to hear nothing.
    if lost.errno != errno.EPIPE:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"dgm: the output cannot be written: {lost.strerror}\n")
            sys.stderr.flush()
    return code or FAILED


def lost_output() -> OSError | None:
    """Return the error at which standard output stopped to take what is printed; None where it takes it.

    It leads nowhere from then on, so that nothing else fails at it.
    """
    file = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if not isinstance(file, _File) or file.lost is None:
        return None
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)
    return file.lost


def _encoding(stream: io.TextIOWrapper) -> str:
    return "ascii" if stream.isatty() and wants_ascii(os.environ) else stream.encoding


def _fill_closed() -> None:
    # A file that the program opens later would take the number of a closed stream, and receive what children print.
    while (number := os.open(os.devnull, os.O_RDWR)) < len(_MODES):
        stream = open(number, _MODES[number], encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
    os.close(number)
