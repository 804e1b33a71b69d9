"""Programs that a Ctrl-C at the terminal does not reach: each in a session of its own.

A terminal sends SIGINT to every process of its group. ``start_new_session`` takes a program out of the group, but only
a moment after it was made, when it already takes signals: one that comes in between ends it before its first
instruction, which looks like a fault of the program. Whoever did not get as far as its own session is started again.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


def run_apart(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float, given: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    """Runs a program to its end, with ``given`` as its input; what it prints is kept, whatever its exit code.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    with start_apart(command, cwd=cwd, env=env) as process:
        try:
            out, errors = process.communicate(given, timeout_s)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def start_apart(
    command: Sequence[str],
    *,
    cwd: Path | str,
    env: Mapping[str, str],
    stderr: int | IO[bytes] = subprocess.PIPE,
) -> "subprocess.Popen[bytes]":
    """Starts a program with pipes as its input and output.

    Raises:
        OSError: it cannot be started.
    """
    while True:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            apart = is_apart(process.pid)
        except (
            ProcessLookupError
        ):  # SIGCHLD is ignored, so that the kernel waits for children: nobody can tell
            apart = True
        if apart:
            return process
        with process:
            pass


def is_apart(pid: int) -> bool:
    """Whether a child that was started in a new session has got there, even if it has ended since.

    Raises:
        ProcessLookupError: somebody has waited for it.
    """
    return os.getsid(pid) == pid
