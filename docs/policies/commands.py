"""Commands that a program starts: Ctrl-C lets them end in their own time, and a stop is told in a line."""

import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

INTERRUPTED = 130


def finish(command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """What a command prints.

    A terminal's Ctrl-C reaches the command as well, which then puts its sandboxes and files away: it is waited for.

    Raises:
        subprocess.CalledProcessError: it failed, and has said why.
        KeyboardInterrupt: Ctrl-C was pressed meanwhile.
    """
    heard: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=env)
    finally:
        signal.signal(signal.SIGINT, before)
    if heard or done.returncode in (INTERRUPTED, -signal.SIGINT):
        raise KeyboardInterrupt
    done.check_returncode()
    return done.stdout


def exit_code(main: Callable[[], int]) -> int:
    """That of a program whose work stays where it stops."""
    try:
        return main()
    except KeyboardInterrupt:
        code, why = INTERRUPTED, "interrupted"
    except subprocess.CalledProcessError as error:
        code, why = 1, f"{shlex.join(error.cmd)}: ended with exit code {error.returncode}"
    sys.stderr.write(f"{why}; what is done is kept, start this again to go on\n")
    return code
