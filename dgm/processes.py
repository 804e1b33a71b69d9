"""Processes: programs that a Ctrl-C does not reach, times in which dgm itself stood still, addresses of sockets.

A terminal sends SIGINT to every process of its group. ``start_new_session`` takes a program out of the group, but only
shortly after its creation. A signal in between ends the program before its first instruction, which looks like the
program's fault. So a process that died before it executed its program is started again.

dgm stands still after Ctrl-Z, in a frozen container, or while the lid is closed. Sandboxes run on meanwhile, but their
model does not answer and their clocks run out, which is no agent's fault.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self, TypeVar

from dgm.errors import AgentFault, Infrastructure, StoodStill

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

BEAT_S = 1.0
GAP_S = 5.0
"""Seconds in which the process neither beat, nor worked, nor waited for a processor, that count as a standstill."""
_PATH_BYTES = 103
"""Maximum length of a socket's path on every system; Linux allows 107."""
_DESCRIPTORS = Path("/proc/self/fd")
if sys.platform == "linux":
    _CLOCK = time.CLOCK_BOOTTIME
else:
    _CLOCK = time.CLOCK_MONOTONIC
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
                _kill_group(process.pid)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program of ``start_apart`` with what it has started, unless it has ended."""
    if process.poll() is None:
        _kill_group(process.pid)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


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


def _clock() -> float:
    """Return a clock that also passes while the machine is suspended, in seconds."""
    return time.clock_gettime(_CLOCK)


def _busy() -> float:
    """Return the seconds in which this process worked, or the calling thread waited for a processor."""
    try:
        waited_ns = int(Path("/proc/thread-self/schedstat").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):  # not Linux, or a kernel without it
        waited_ns = 0
    return time.process_time() + waited_ns / 1e9


class StandstillWatch:
    """A heartbeat of the running event loop; it ends with its context."""

    def __init__(self, clock: Callable[[], float] = _clock, processor: Callable[[], float] = _busy) -> None:
        self._clock, self._processor = clock, processor
        self._began = self._last = clock()
        self._last_used = processor()
        self._gap_end, self._gap_s = float("-inf"), 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        import asyncio  # not with the module, which every reader of a run loads

        self._task = asyncio.create_task(self._keep_beating(), name="heartbeat")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _keep_beating(self) -> None:
        import asyncio

        while True:
            self.beat()
            await asyncio.sleep(BEAT_S)

    def beat(self) -> float:
        """Record that the process is running; return the time by the watch's clock, in seconds."""
        now, used = self._clock(), self._processor()
        # A loop that is held up by work, or by a busy machine, does not stand still.
        gap_s = (now - self._last) - (used - self._last_used)
        if gap_s > GAP_S:
            self._gap_end, self._gap_s = now, gap_s
        self._last, self._last_used = now, used
        return now

    def find_standstill(self, since: float | None = None) -> StoodStill | None:
        """Return the error for work begun at that ``beat``, or with the watch, if the process stood still meanwhile."""
        self.beat()
        if self._gap_end <= (self._began if since is None else since):
            return None
        return StoodStill(f"dgm itself stood still for {self._gap_s:.0f} s meanwhile (stopped or suspended)")


async def repeat_after_standstill(
    perform: Callable[[], Awaitable[T]],
    failed: Callable[[T], bool],
    open_watch: Callable[[], StandstillWatch] = StandstillWatch,
) -> T:
    """Return the result of ``perform``; perform again what failed while the process stood still."""
    async with open_watch() as watch:
        while True:
            began = watch.beat()
            try:
                result = await perform()
                if not failed(result) or not watch.find_standstill(began):
                    return result
            except (AgentFault, Infrastructure):
                if not watch.find_standstill(began):
                    raise


@contextmanager
def short_address(path: Path) -> Iterator[str]:
    """Yield an address of the socket: its path, or, where that is too long, one by way of the folder's descriptor.

    Raises:
        Infrastructure: the path is too long for this system.
        OSError: the folder cannot be opened.
    """
    if len(os.fsencode(path)) <= _PATH_BYTES:
        yield os.fspath(path)
        return
    if not _DESCRIPTORS.is_dir():
        raise Infrastructure(
            f"{path}: longer than {_PATH_BYTES} bytes, the limit for a socket here: set TMPDIR to a shorter folder"
        )
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"{_DESCRIPTORS}/{folder}/{path.name}"
    finally:
        os.close(folder)
