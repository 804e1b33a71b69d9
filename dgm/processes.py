"""Programs that a Ctrl-C at the terminal does not reach, each in its own session.

A terminal sends SIGINT to every process of its group. ``start_new_session`` takes a program out of the group, but only
shortly after its creation. A signal in between ends the program before its first instruction, which looks like the
program's fault. So a process that died before it executed its program is started again.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import IO

_NO_PROGRAM_YET = 0x40
_LOOK_S = 0.1
_given_up: ContextVar[threading.Event | None] = ContextVar("_given_up", default=None)


class GivenUp(BaseException):
    """Nobody waits any more for the work of this thread."""


@contextlib.contextmanager
def ended_by(event: threading.Event) -> Iterator[None]:
    """Let programs that ``run_apart`` runs in this thread, without input, be killed soon after the event is set."""
    token = _given_up.set(event)
    try:
        yield
    finally:
        _given_up.reset(token)


def check_given_up() -> None:
    """Raise ``GivenUp`` if nobody waits any more for the work of this thread."""
    event = _given_up.get()
    if event is not None and event.is_set():
        raise GivenUp


def run_apart(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float, given: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    """Run a program to its end with ``given`` as its input; return its output, whatever its exit code.

    Raises:
        OSError: the program cannot be started.
        subprocess.TimeoutExpired: it took longer than ``timeout_s``, and was killed, with what it had started.
        GivenUp: nobody waits for it any more (``ended_by``); it was killed likewise.
    """
    check_given_up()
    with start_apart(command, cwd=cwd, env=env) as process:
        try:
            out, errors = _communicate(process, given, timeout_s)
        except BaseException:
            # Not reaped yet, so the group is still its own, even if the program has ended and others hold its output.
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def _communicate(process: "subprocess.Popen[bytes]", given: bytes, timeout_s: float) -> tuple[bytes, bytes]:
    if given or _given_up.get() is None:
        # Python 3.11 does not go on sending input after the first timeout.
        return process.communicate(given, timeout_s)
    end = time.monotonic() + timeout_s
    while True:
        try:
            return process.communicate(None, min(_LOOK_S, max(0.0, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            check_given_up()
            if time.monotonic() >= end:
                raise


def start_apart(
    command: Sequence[str],
    *,
    cwd: Path | str,
    env: Mapping[str, str],
    stderr: int | IO[bytes] = subprocess.PIPE,
) -> "subprocess.Popen[bytes]":
    """Start a program with pipes as its input and output.

    Raises:
        OSError: the program cannot be started.
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
        with contextlib.suppress(ProcessLookupError):  # its state is unknown
            if not has_begun(process.pid):
                with process:
                    continue
        return process


def has_begun(pid: int) -> bool:
    """Return whether a child process has executed its program, even if it has ended since.

    The kernel has a flag for it (``PF_FORKNOEXEC``; in column F of ps(1) it counts 1).

    Raises:
        ProcessLookupError: the process was already reaped (by the kernel, if SIGCHLD is ignored), or /proc is missing.
    """
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error
    return not int(state.rpartition(b")")[2].split()[6]) & _NO_PROGRAM_YET
