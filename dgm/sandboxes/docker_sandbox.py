"""One running container as a sandbox: commands with bounds of time, memory and processor, and files as tar streams."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Completed, SharedSocket
from dgm.sandboxes import transfer
from dgm.sandboxes.confined import SIGNALLED, TIMED_OUT, Output, limit_command, out_of_processor
from dgm.sandboxes.container import ContainerBase
from dgm.sandboxes.container_programs import CANNOT_START, ContainerPrograms, Program
from dgm.sandboxes.engine_client import (
    EngineConnection,
    call_engine,
    convert_engine_errors,
    remove_container,
)
from dgm.sandboxes.relay import ContainerRelay, open_relay
from dgm.sandboxes.volumes import ShownFolder

log = logging.getLogger(__name__)

_ENVIRONMENT = {
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
}
_KILLED = 137
_GRACE_S = 15.0
"""Seconds that a program may take to end after its time, before the container is ended."""
_KILLING_TRIES = 8
"""Tries to kill: a fork bomb may hold every process slot, and the kill step needs a free one."""
_SETTLES_S = 1.0
_COPY_S = 300.0
"""Maximum seconds for the copy of a folder of the image, from a disk that may be cold, or of one that is shown."""
_UNPACK = 'umask 022; head -c "$2" | tar -x -p -f - -C "$1"'
OOM_COUNTERS = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
"""Files in a container, of which one exists."""
_NO_PROCESS_LEFT = (b"/usr/bin/timeout: fork system call failed", b"OCI runtime exec failed")
_FED = (
    'bytes=$1; shift; exec 3>&2 2>/dev/null; head -c "$bytes" | '
    '{ "$@" 2>&3 3>&-; code=$?; cat >/dev/null; exit $code; }'
)
"""Command whose program's input has a length; it reads what the program leaves, for which the engine would wait."""


class DockerSandbox:
    """One running container."""

    def __init__(self, connection: EngineConnection, ident: str, base: ContainerBase, uid: int) -> None:
        self._client = connection.client
        self._id = ident
        self._programs = ContainerPrograms(connection, ident)
        self._user = f"{uid}:{base.group}"
        self._keeper = f"{base.keeper}:{base.keeper}"
        self._environment = {**_ENVIRONMENT, "PATH": base.search_path}
        self._relay: ContainerRelay | None = None
        self._memory_kills = 0
        self._closed = False

    async def exec(  # noqa: PLR0913  (all but two have their usual value)
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd: str = "/work",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_limit: int = 1_000_000,
        processor_s: float | None = None,
    ) -> Completed:
        """Run a command to its end, or kill all of it; its background processes run on.

        Raises:
            AgentFault: stage ``processes``: so many run in the sandbox that no further one can be started.
            Infrastructure: the sandbox is closed or its lifetime is over, or the engine failed.
        """
        started = time.monotonic()
        bounded = bound_command(limit_command(argv, processor_s), cwd, timeout_s, len(stdin))
        for attempt in range(_KILLING_TRIES):
            output = Output(output_limit)
            async with self._halting_without_relay():
                exit_code = await self._run(bounded, env or {}, stdin, output, timeout_s + _GRACE_S)
            if not lacks_processes(exit_code, output):
                break
            log.warning("the sandbox %s is full of processes: killing them", self._id[:12])
            await asyncio.sleep(0.1 * attempt)
            await self._kill_strays()
        else:
            raise AgentFault("processes", "so many processes run in the sandbox that no other can be started")
        seconds = time.monotonic() - started
        if self._relay is not None and await self._relay.was_starved(self._memory_was_short):
            self._relay = None
            done = Completed(_KILLED, bytes(output.kept), output.truncated, out_of_memory=True)
        elif processor_s is not None and exit_code == SIGNALLED:
            await self._kill_strays()
            return out_of_processor(output, seconds)
        else:
            done = await self._classify(exit_code, output, late=seconds >= timeout_s)
        return replace(done, seconds=seconds)

    async def _classify(self, exit_code: int | None, output: Output, *, late: bool) -> Completed:
        """Return how a program ended that took its whole time (``late``) or not; kill what is left of it."""
        kept = output.result(exit_code)
        late = late and exit_code in (_KILLED, TIMED_OUT)
        if exit_code is None or late:
            await self._kill_strays()
        # A busy engine takes its time to start a program: one that died of memory did not run out of time.
        if exit_code is None or (late and not (exit_code == _KILLED and await self._memory_was_short())):
            return Completed(TIMED_OUT, kept, output.truncated, timed_out=True)
        out_of_memory = late or (exit_code == _KILLED and await self._killed_for_memory())
        return Completed(exit_code, kept, output.truncated, out_of_memory=out_of_memory)

    def _halting_without_relay(self) -> AbstractAsyncContextManager[None]:
        return self._relay.halting(self.halt) if self._relay else contextlib.nullcontext()

    async def put(self, files: Snapshot, target: str) -> None:
        """Write the files below ``target``, as the sandbox's user."""
        await transfer.put(self, files, target)

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> dict[str, Entry]:
        """Return the contents of a folder; end all programs in the sandbox first, so that none changes it meanwhile."""
        await self._kill_strays()
        return await transfer.get(self, source, limit_bytes=limit_bytes, exclude=exclude)

    async def halt(self) -> None:
        """End all programs in the sandbox; its files stay.

        Raises:
            AgentFault: stage ``processes``: so many run that they cannot be ended.
        """
        crowded = False
        for attempt in range(_KILLING_TRIES):
            # The kill fails if it found nothing to kill.
            ended = await self._kill_strays()
            if ended in (0, 1):
                return
            crowded = crowded or ended is not None
            await asyncio.sleep(0.1 * attempt)
        if not crowded:
            raise Infrastructure(
                f"the engine did not end the programs of a sandbox in {_KILLING_TRIES} tries"
            )
        raise AgentFault("processes", "so many processes run in the sandbox that they cannot be ended")

    async def copy(self, source: str, target: str) -> None:
        """Copy a folder of the image, as the sandbox's user, who owns the copy."""
        done = await self.exec(["cp", "-a", "--", f"{source}/.", target], timeout_s=_COPY_S, cwd="/")
        if done.exit_code:
            reason = (
                done.output.decode("utf-8", "replace").strip().split("\n", 1)[0] or f"exit {done.exit_code}"
            )
            raise Infrastructure(f"the image's folder {source} cannot be copied to {target}: {reason}")

    async def show(self, folder: ShownFolder) -> None:
        """Unpack a folder inside, as the user who owns its place: the sandbox's user can only read it."""
        output = Output(2000)
        argv = ["sh", "-c", _UNPACK, "unpack", folder.target, str(len(folder.stream))]
        environment = {"PATH": self._environment["PATH"], "LANG": "C.UTF-8"}
        program = Program(argv, self._keeper, environment)
        exit_code = await self._programs.run(program, folder.stream, output, _COPY_S)
        if exit_code is None:
            raise Infrastructure(f"showing {folder.target} in a sandbox took more than {_COPY_S:.0f} s")
        if exit_code:
            reason = bytes(output.said or output.kept).decode("utf-8", "replace").strip().split("\n", 1)[0]
            raise Infrastructure(
                f"cannot show {folder.target} in a sandbox (exit code {exit_code}): {reason}"
            )

    @contextlib.asynccontextmanager
    async def relaying(self, shared: SharedSocket | None) -> AsyncIterator[None]:
        """Offer a socket of the host, if there is one, while the context lasts."""
        if shared is None:
            yield
            return
        path = self._environment["PATH"]
        async with open_relay(self._programs, self._keeper, path, shared) as self._relay:
            yield

    def close(self) -> None:
        """Remove the container; the second call does nothing."""
        if self._closed:
            return
        self._closed = True
        with convert_engine_errors("remove a sandbox"):
            remove_container(self._client, self._id)

    async def _run(
        self, argv: Sequence[str], env: Mapping[str, str], stdin: bytes, output: Output, patience_s: float
    ) -> int | None:
        """Return the exit code, or ``None`` if the program had to be left behind."""
        if self._closed:
            raise Infrastructure("the sandbox is closed")
        program = Program(argv, self._user, {**self._environment, **env})
        return await self._programs.run(program, stdin, output, patience_s)

    async def _kill_strays(self) -> int | None:
        """Kill all processes of the sandbox's user: a program may have moved out of reach of its timeout."""
        return await self._run(["sh", "-c", "kill -9 -1"], {}, b"", Output(1000), _GRACE_S)

    async def _killed_for_memory(self) -> bool:
        """Return whether memory ran out, by the container's counters: the engine's flag covers its first process."""
        short = await self._memory_was_short()
        if short is not None:
            return short
        await asyncio.sleep(_SETTLES_S)
        state = await call_engine("look at a sandbox", lambda: self._client.api.inspect_container(self._id))
        if not state["State"]["Running"]:
            raise Infrastructure("the sandbox ended while a program ran in it")
        return True

    async def _memory_was_short(self) -> bool | None:
        """Return whether programs were killed for memory since the last call; None if that cannot be read."""
        output = Output(10_000)
        if await self._run(["cat", *OOM_COUNTERS], {}, b"", output, _GRACE_S) not in (0, 1):
            return None
        kills = count_memory_kills(bytes(output.kept))
        before, self._memory_kills = self._memory_kills, kills
        return kills > before


def bound_command(argv: Sequence[str], cwd: str, timeout_s: float, input_bytes: int = 0) -> list[str]:
    """Return the command that runs a program in a folder, gives it so much input, and kills it after its time."""
    feeding = ["/bin/sh", "-c", _FED, "sh", str(input_bytes)] if input_bytes else []
    timeout = ["/usr/bin/timeout", "-s", "KILL", f"{timeout_s:.3f}"]
    return [*timeout, *feeding, "/usr/bin/env", "-C", cwd, "--", *argv]


def lacks_processes(exit_code: int | None, output: Output) -> bool:
    """Return whether the program never started for lack of processes."""
    return exit_code in CANNOT_START and (output.kept or output.said).startswith(_NO_PROCESS_LEFT)


def count_memory_kills(counters: bytes) -> int:
    """Return how many programs were killed for memory, by the contents of ``OOM_COUNTERS``."""
    counts = [line.split() for line in counters.decode("utf-8", "replace").splitlines()]
    return sum(int(fields[1]) for fields in counts if fields[:1] == ["oom_kill"])
