"""Errors of the program as one line on standard error and an exit code."""

import contextlib
import errno
import logging
import os
import sys
import traceback

from dgm.errors import ArchiveCorrupt, DgmError, UserError
from dgm.plugins import find_faulty_plugin
from dgm.render.safe import neutralise

DEBUG = "DGM_DEBUG"
FAILED = 1
USAGE = 2
LIMIT = 3
INTERRUPTED = 130


def complain(error: BaseException) -> int:
    """Print one line for an error and return the exit code.

    A fault of dgm's own keeps its traceback. With the environment variable ``DGM_DEBUG`` every error does.
    """
    if _debugging() and not isinstance(error, SystemExit):
        with contextlib.suppress(OSError):
            traceback.print_exception(error)
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case SystemExit(code=code):
            return code if isinstance(code, int) else FAILED
        case KeyboardInterrupt():
            return _print("interrupted", INTERRUPTED)
        case UserError():
            return _print(error.in_shell(), USAGE)
        case ArchiveCorrupt():
            return _print(str(error), USAGE)
        case DgmError():
            return _print(str(error), FAILED)
        case BrokenPipeError():
            return FAILED  # the reader has gone, as with "| head"
        case OSError(errno=errno.ENAMETOOLONG):
            return _print(f"a name is too long: {str(error.filename)[:60]}…", USAGE)
        case OSError(errno=errno.ENOSPC):
            return _print(f"cannot write: {error.strerror}", FAILED)
        case _:
            return _print(_describe_fault(error), FAILED)


def _describe_fault(error: BaseException) -> str:
    plugin = find_faulty_plugin(error)
    subject = f"a fault of a plug-in: {plugin}" if plugin else "a fault of dgm itself"
    if not plugin and not _debugging():
        logging.getLogger(__name__).critical("this is %s", subject, exc_info=error)
    hint = f"{DEBUG}=1 shows the traceback" if plugin else "please report it"
    return f"{subject}: {type(error).__name__}: {error} ({hint})"


def _debugging() -> bool:
    return os.environ.get(DEBUG, "") not in ("", "0")


def _print(text: str, code: int) -> int:
    # The message may quote an agent, or a file that an agent wrote.
    line = neutralise(" ".join(text.split("\n")))
    with contextlib.suppress(OSError):
        sys.stderr.write(f"dgm: {line}\n")
    return code
