"""One confined program from start to end: send input, cut the output while it streams, kill it in time.

Bubblewrap's process gets nothing of the host: no variables, no descriptor that it does not need, and options through a
nameless file, because a program in the sandbox of an ordinary user can read all that of bubblewrap's own process there.
"""

import asyncio
import contextlib
import json
import math
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dgm.errors import Infrastructure
from dgm.processes import has_begun
from dgm.protocols import Completed
from dgm.sandboxes.threads import complete, finish_work

_CHUNK = 1 << 18
_GONE_WITHIN_S = 10.0
_SAID_BYTES = 4000
_NOT_STARTED = (125, 126, 127)
TIMED_OUT = 124
SIGNALLED = 128 + 24
"""Exit code by which a shell reports a process ended by its own limit (SIGXCPU)."""
_MERGED = 'exec "$@" 2>&1'
_LIMITED = f'ulimit -S -t "$1"; ulimit -H -t "$2"; shift 2; {_MERGED}'


@dataclass(slots=True)
class Output:
    """The first bytes of a program's output; the rest is read and discarded, so that its writer is not blocked."""

    limit: int
    kept: bytearray = field(default_factory=bytearray)
    truncated: bool = False
    said: bytearray = field(default_factory=bytearray)
    """Messages of the helpers around the program (``timeout``, ``env``, the engine); no part of its output."""

    def add(self, chunk: bytes) -> None:
        """Add the next piece of the stream."""
        room = self.limit - len(self.kept)
        self.kept += chunk[:room]
        self.truncated = self.truncated or len(chunk) > room

    def add_said(self, chunk: bytes) -> None:
        """Add the next piece of what helpers say."""
        self.said += chunk[: _SAID_BYTES - len(self.said)]

    def result(self, exit_code: int | None) -> bytes:
        """Return the output; for a program that could not be started, the helpers' message about that."""
        never_began = exit_code in _NOT_STARTED and not self.kept
        return bytes(self.said if never_began else self.kept)


@dataclass(frozen=True, slots=True)
class ConfinedResult:
    """The result of a confined program."""

    exit_code: int | None
    """Exit code; ``None`` if the program never started, or was killed together with bubblewrap."""
    timed_out: bool


def limit_command(argv: Sequence[str], processor_s: float | None) -> list[str]:
    """Return the command line that merges both outputs of a program, with a limit on each of its processes, if any.

    Messages of helpers that start it stay out of its output.
    """
    if processor_s is None:
        return ["/bin/sh", "-c", _MERGED, "sh", *argv]
    soft = math.ceil(processor_s) + 1
    return ["/bin/sh", "-c", _LIMITED, "sh", str(soft), str(soft + 1), *argv]


def out_of_processor(output: Output, seconds: float, used_s: float | None = None) -> Completed:
    """Return the result of a command that exceeded its processor time."""
    return Completed(
        TIMED_OUT,
        bytes(output.kept),
        output.truncated,
        timed_out=True,
        seconds=seconds,
        out_of_processor=True,
        processor_s=used_s,
    )


async def run(
    options: Callable[[int, int], bytes],
    command: Callable[[int], Sequence[str]],
    seccomp: bytes,
    *,
    stdin: bytes,
    timeout_s: float,
    output: Output,
) -> ConfinedResult:
    """Run a program to its end.

    Args:
        options: returns bubblewrap's options, from the descriptors of the seccomp program and of the status pipe.
        command: returns the command line, from the descriptor of the file with the options.
        seccomp: the seccomp program.
        stdin: the program's input.
        timeout_s: seconds after which it is killed.
        output: always holds the output so far.

    Raises:
        Infrastructure: it could not be started, or cannot be killed.
    """
    seccomp_fd = _memory_file(seccomp)
    status_fd, status_end = os.pipe()
    options_fd = _memory_file(options(seccomp_fd, status_end))
    descriptors = (seccomp_fd, status_end, options_fd)
    try:
        process = await _start(command(options_fd), descriptors)
    except BaseException:
        os.close(status_fd)
        raise
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    timed_out = False
    try:
        timed_out = await _feed_and_wait(process, stdin, timeout_s, output)
    finally:
        report = _read_report(status_fd)
        os.close(status_fd)
        if os.getpid() == 1 and "child-pid" in report:
            await finish_work(lambda: _reap_inherited(report["child-pid"]))
    return ConfinedResult(report.get("exit-code"), timed_out)


def _memory_file(content: bytes) -> int:
    """Return a descriptor at the start of a nameless file with this content; only Linux has such files."""
    descriptor: int = os.memfd_create("dgm")  # type: ignore[attr-defined, unused-ignore]
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


async def _start(argv: Sequence[str], descriptors: Sequence[int]) -> asyncio.subprocess.Process:
    """Start the program; a cancellation waits for the start, so that the program can be killed."""
    try:
        return await complete(_start_apart(argv, descriptors), _kill)
    except OSError as error:
        raise Infrastructure(f"cannot start a confined program: {error}") from error


async def _start_apart(argv: Sequence[str], descriptors: Sequence[int]) -> asyncio.subprocess.Process:
    """Start the program in a session of its own: Ctrl-C stops dgm, but not the running step (``dgm.processes``)."""
    while True:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=descriptors,
            cwd="/",
            env={},
            limit=_CHUNK,
            start_new_session=True,
        )
        try:
            begun = has_begun(process.pid)
        except ProcessLookupError:  # asyncio has waited for it
            begun = await process.wait() not in (-signal.SIGINT, -signal.SIGTERM)
        if begun:
            return process
        await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill bubblewrap and any newly made child, which does not yet die with it."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGSTOP)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    with contextlib.suppress(OSError):
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        process.kill()


async def _feed_and_wait(
    process: asyncio.subprocess.Process, stdin: bytes, timeout_s: float, output: Output
) -> bool:
    """Send input, read output and wait; return whether the time ran out. The process is gone afterwards."""
    feeding = asyncio.ensure_future(_feed(process, stdin))
    listening = [
        asyncio.ensure_future(_listen(process.stdout, output.add)),
        asyncio.ensure_future(_listen(process.stderr, output.add_said)),
    ]
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        if process.returncode is None:
            _kill(process)
        feeding.cancel()
        await asyncio.wait([feeding, *listening], timeout=_GONE_WITHIN_S)
        for task in listening:
            task.cancel()
    try:
        async with asyncio.timeout(_GONE_WITHIN_S):
            await process.wait()
    except TimeoutError as error:
        raise Infrastructure(f"the confined process {process.pid} does not die") from error
    return timed_out


async def _feed(process: asyncio.subprocess.Process, stdin: bytes) -> None:
    assert process.stdin is not None
    # A program need not read its input. Nobody waits for the rest to be sent; asyncio's own pipe does that. If
    # cancelled during such a wait, Python 3.11 prints a traceback when the program ends.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()


async def _listen(stream: asyncio.StreamReader | None, add: Callable[[bytes], None]) -> None:
    assert stream is not None
    while chunk := await stream.read(_CHUNK):
        add(chunk)


def _read_report(status_fd: int) -> Mapping[str, int]:
    """Return the numbers of bubblewrap's report; it has an exit code only for a program that did start."""
    os.set_blocking(status_fd, False)
    report: dict[str, int] = {}
    with contextlib.suppress(BlockingIOError):
        for line in os.read(status_fd, 65536).splitlines():
            report |= {name: number for name, number in json.loads(line).items() if isinstance(number, int)}
    return report


def _reap_inherited(pid: int) -> None:
    """Wait for the first process of an ended sandbox, which process 1 inherits: dgm, in a container."""
    end = time.monotonic() + _GONE_WITHIN_S
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < end:
            time.sleep(0.01)
