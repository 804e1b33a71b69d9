"""What the program says when something went wrong: one line on stderr, and an exit code."""

import contextlib
import logging
import sys
from importlib.metadata import entry_points
from traceback import walk_tb

import click

from dgm.cli.streams import lost_output
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
        case OSError() if lost_output():
            return FAILED  # said when the streams are closed
        case BaseExceptionGroup():
            return complain(error.exceptions[0])
        case _:
            where = _in_plug_in(error)
            whose = f"a fault of a plug-in, {where}" if where else "a fault of dgm itself"
            logging.getLogger(__name__).critical("this is %s", whose, exc_info=error)
            report = "" if where else " (please report it)"
            _say(f"{whose}: {type(error).__name__}: {error}{report}")
            return FAILED


def _in_plug_in(error: BaseException) -> str:
    """Where in an installed plug-in the error came up, or passed through last; empty where in none."""
    groups = (group for group in entry_points().groups if group.startswith("dgm."))
    packages = {point.module.partition(".")[0] for group in groups for point in entry_points(group=group)}
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in packages - {"dgm"}
    ]
    return places[-1] if places else ""


def _say(text: str) -> None:
    # What it quotes may be an agent's, or a file's that an agent wrote.
    line = neutral(" ".join(text.split("\n")))
    with contextlib.suppress(OSError):
        sys.stderr.write(f"dgm: {line}\n")
