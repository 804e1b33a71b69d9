"""The three streams of the program: opened at its start even if the shell closed them, flushed at its end.

A character that a stream cannot encode is written as an escape. The program ends in good order after a broken pipe, a
full disk or a closed stream.
"""

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAILED = 1
_MODES = ("r", "w", "w")


class _File(io.FileIO):
    """Standard output that remembers a failed write."""

    lost: OSError | None = None

    def write(self, data: "Buffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.lost = error
            raise


def open_streams() -> None:
    """Make all three streams usable: a closed one leads to the null device, and none fails at a character."""
    _fill_closed()
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    before = sys.stdout
    if isinstance(before, io.TextIOWrapper) and before is sys.__stdout__:
        before.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_File(before.fileno(), "wb", closefd=False)),
            encoding=before.encoding,
            errors="backslashreplace",
            line_buffering=before.line_buffering,
            write_through=before.write_through,
        )


def close_streams(code: int) -> int:
    """Flush the output and return the exit code: ``code``, or 1 if standard output did not take all."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    lost = take_write_error()
    if lost is None:
        return code
    # A reader that has gone, as with "| head", is no error to report.
    if lost.errno != errno.EPIPE:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"dgm: the output cannot be written: {lost.strerror}\n")
            sys.stderr.flush()
    return code or FAILED


def take_write_error() -> OSError | None:
    """Return the error of the first failed write to standard output; None if there is none.

    After an error, standard output leads to the null device, so that nothing else fails at it.
    """
    file = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if not isinstance(file, _File) or file.lost is None:
        return None
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)
    return file.lost


def _fill_closed() -> None:
    # A file opened later would take the number of a closed stream, and receive the output of child processes.
    while (number := os.open(os.devnull, os.O_RDWR)) < len(_MODES):
        stream = open(number, _MODES[number], encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
    os.close(number)
