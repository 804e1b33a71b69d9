"""Errors of the program as one line on stderr and an exit code."""

import contextlib
import logging
import os
import sys
import traceback

import click

from dgm.cli.streams import take_write_error
from dgm.errors import ArchiveCorrupt, DgmError, UserError
from dgm.plugins import find_faulty_plugin
from dgm.render.safe import neutralise

DEBUG = "DGM_DEBUG"
FAILED = 1
USAGE = 2
LIMIT = 3
INTERRUPTED = 130


def complain(error: BaseException) -> int:
    """Print one line for ``error`` and return the exit code.

    A fault of dgm's own keeps its traceback. With the environment variable ``DGM_DEBUG`` every error does.
    """
    if _debugging() and not isinstance(error, SystemExit | click.exceptions.Exit):
        with contextlib.suppress(OSError):
            traceback.print_exception(error)
    return _complain(error)


def _complain(error: BaseException) -> int:
    match error:
        case SystemExit(code=code):
            return code if isinstance(code, int) else FAILED
        case click.exceptions.Exit():
            return error.exit_code
        case click.exceptions.Abort() | KeyboardInterrupt():
            _say("interrupted")
            return INTERRUPTED
        case click.exceptions.NoArgsIsHelpError():
            sys.stderr.write(error.format_message() + "\n")
            return USAGE
        case click.ClickException():
            where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "dgm"
            _say(f"{error.format_message()} (see {where} --help)")
            return USAGE
        case UserError() | ArchiveCorrupt():
            _say(error.in_shell() if isinstance(error, UserError) else str(error))
            return USAGE
        case DgmError():
            _say(str(error))
            return FAILED
        case OSError() if take_write_error():
            return FAILED  # said when the streams are closed
        case BaseExceptionGroup():
            return _complain(error.exceptions[0])
        case _:
            where = find_faulty_plugin(error)
            whose = f"a fault of a plug-in: {where}" if where else "a fault of dgm itself"
            if not where and not _debugging():
                logging.getLogger(__name__).critical("this is %s", whose, exc_info=error)
            hint = f"{DEBUG}=1 shows the traceback" if where else "please report it"
            _say(f"{whose}: {type(error).__name__}: {error} ({hint})")
            return FAILED


def _debugging() -> bool:
    return os.environ.get(DEBUG, "") not in ("", "0")


def _say(text: str) -> None:
    # The message may quote an agent, or a file that an agent wrote.
    line = neutralise(" ".join(text.split("\n")))
    with contextlib.suppress(OSError):
        sys.stderr.write(f"dgm: {line}\n")
