"""What the program says when something went wrong: one line on stderr, and an exit code."""

import logging
import os
import sys

import click

from dgm.errors import DgmError, UserError
from dgm.show.safe import neutral

FAILED = 1
USAGE = 2
LIMIT = 3
INTERRUPTED = 130


def complain(error: BaseException) -> int:
    """Prints one line for ``error`` and returns the exit code; a fault of dgm's own keeps its traceback."""
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
        case UserError():
            _say(str(error))
            return USAGE
        case DgmError():
            _say(str(error))
            return FAILED
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        case BaseExceptionGroup():
            return complain(error.exceptions[0])
        case _:
            logging.getLogger(__name__).critical("this is a fault of dgm itself", exc_info=error)
            _say(f"a fault of dgm itself: {type(error).__name__}: {error} (please report it)")
            return FAILED


def _say(text: str) -> None:
    # What it quotes may be an agent's, or a file's that an agent wrote.
    line = neutral(" ".join(text.split("\n")))
    sys.stderr.write(f"dgm: {line}\n")
