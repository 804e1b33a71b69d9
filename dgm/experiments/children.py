"""A run of a sweep as a process of its own, so that a crash of one leaves the others."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

from dgm.archive.history import writer
from dgm.archive.stop_request import stop_run
from dgm.errors import DgmError, Infrastructure
from dgm.sandboxes.engine_address import OPTION, find_given_engine

LOOK_S = 1.0
"""Seconds between looks at a run that another process writes."""
_TAIL = 20_000
"""Bytes at the end of a log in which its last line is searched for."""


class RunProcess(Protocol):
    """A process that performs a run."""

    def stop(self) -> None:
        """Ask the process to end in good order; asked again, it ends at once."""
        ...

    async def wait(self) -> int | None:
        """Return the exit code when the process has ended; None where the code is not known."""
        ...


Start = Callable[[Sequence[str], Path], Awaitable[RunProcess]]
"""A function that starts ``dgm`` with words, its output appended to a file."""


class StartedProcess:
    """A process that this one started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def stop(self) -> None:
        """Ask the process to end in good order; asked again, it ends at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    async def wait(self) -> int | None:
        """Return the exit code when the process has ended."""
        return await self._process.wait()


class ForeignProcess:
    """A process, started by an earlier session of the sweep or by a person, that still writes the run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def stop(self) -> None:
        """Ask the process to end in good order; asked again, it ends at once."""
        with contextlib.suppress(DgmError):
            stop_run(self._folder)

    async def wait(self) -> int | None:
        """Wait until no process of this machine writes the run; return None."""
        while is_written_here(self._folder):
            await asyncio.sleep(LOOK_S)
        return None


async def start_dgm(words: Sequence[str], log: Path) -> StartedProcess:
    """Start ``dgm`` with these words; its output is appended to ``log``.

    The engines that this command or call names are passed on.

    The process is in a session of its own: neither a Ctrl-C at the terminal nor the terminal's end reaches it.

    Raises:
        Infrastructure: it cannot be started, or the log cannot be written.
    """
    try:
        with log.open("ab") as output:
            return StartedProcess(
                await asyncio.create_subprocess_exec(
                    *_dgm_command(),
                    *words,
                    *_engine_words(),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    # Both streams go to one file, in the order in which they were written.
                    env={**os.environ, "PYTHONUNBUFFERED": "1"},
                )
            )
    except OSError as error:
        raise Infrastructure(
            error.errno, f"{log}: dgm {words[0]} cannot be started: {error.strerror}"
        ) from error


def _engine_words() -> Sequence[str]:
    given = find_given_engine()
    return [word for address in given.addresses for word in (OPTION, address)] if given else []


def read_last_line(log: Path) -> str:
    """Return the last line of a log that is not empty, unchanged; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def is_written_here(folder: Path) -> bool:
    """Return whether a process of this machine, in whatever container, writes the run in a folder."""
    holder = writer(folder)
    return holder is not None and holder.is_known


def _dgm_command() -> Sequence[str]:
    # Starts dgm from this process's modules: "python -m dgm" looks in the working folder, the command "dgm" does not.
    here = sys.path[0] in ("", str(Path.cwd()))
    return (sys.executable, *([] if here else ["-P"]), "-m", "dgm")
