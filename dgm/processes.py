"""Programs that a Ctrl-C at the terminal does not reach: each in a session of its own.

A terminal sends SIGINT to every process of its group. ``start_new_session`` takes a program out of the group, but only
a moment after it was made, when it already takes signals: one that comes in between ends it before its first
instruction, which looks like a fault of the program. Whatever did not get as far as its program is started again.
"""

import contextlib
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_NO_PROGRAM_YET = 0x40


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
        with contextlib.suppress(ProcessLookupError):  # nobody can tell
            if not has_begun(process.pid):
                with process:
                    continue
        return process


def has_begun(pid: int) -> bool:
    """Whether a child that was made has got as far as its program, even if it has ended since.

    The kernel keeps a flag of it (``PF_FORKNOEXEC``; in column F of ps(1) it counts 1).

    Raises:
        ProcessLookupError: somebody has waited for it (the kernel, where SIGCHLD is ignored), or there is no /proc.
    """
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error
    return not int(state.rpartition(b")")[2].split()[6]) & _NO_PROGRAM_YET
