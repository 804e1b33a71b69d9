"""The engine that needs no daemon: every command is a fresh ``bwrap`` process over one sandbox's own folders.

Every process of a command is gone when the command ends, because it lives in a process namespace of its own. Each
command also has its own loopback. If the host's process dies, the kernel ends the command, and ``reap`` removes the
folders.
"""

import asyncio
import contextlib
import os
import shutil
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dgm.domain import Entry, Snapshot
from dgm.errors import Infrastructure, UserError
from dgm.protocols import Completed, Mount, SandboxSpec
from dgm.sandboxes import cgroups, recipes, scratch, transfer
from dgm.sandboxes.confined import ConfinedResult, Output, memory_file, run
from dgm.sandboxes.confinement import Confinement, search_path
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.owners import label_owner
from dgm.sandboxes.processor import SIGNALLED, ProcessorMeter, limit_command, out_of_processor
from dgm.sandboxes.seccomp import filter_program
from dgm.sandboxes.threads import finish_work, make_or_dispose
from dgm.sandboxes.users import UserLease, lease_user

_BWRAP_PIDS = 7
"""Processes of bubblewrap and the timeout in a control group, for three commands at once."""
_WATCH_EVERY_S = 0.25
_STDERR = 2
_PROOF_S = 10.0
_OWN_END_S = 1.0
_KILLED, _TIMED_OUT = 137, 124
_OVER_DISK = b"\nkilled: the sandbox wrote more than its disk_mb\n"


class BubblewrapEngine:
    """An engine that opens sandboxes with bubblewrap.

    Attributes:
        grouped: whether each sandbox has a control group.
    """

    name = "bubblewrap"

    def __init__(self) -> None:
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise Infrastructure(
                "bubblewrap is not installed: install the package 'bubblewrap', or start Docker"
            )
        self._bwrap = os.fspath(Path(bwrap).absolute())
        self._privileged = os.geteuid() == 0
        self.grouped = cgroups.available()
        self._seccomp = filter_program()

    @property
    def bounds(self) -> str:
        """The mechanism that bounds a program's processes and memory, in a word or two."""
        return "control groups" if self.grouped else "resource limits"

    def prove(self) -> None:
        """Start a trivial program, because namespaces may be forbidden even if bubblewrap is installed.

        Raises:
            Infrastructure: it cannot be confined here; the message quotes bubblewrap.
        """
        sandbox = self._make(SandboxSpec(image=""), scratch.SANDBOX_GID)
        try:
            sandbox.prove()
        finally:
            sandbox.close()

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator["BubblewrapSandbox"]:
        """Open a fresh sandbox, and remove it when the context ends.

        Raises:
            UserError: there is no such recipe, the host lacks a command that it needs, or only Docker can run it.
            Infrastructure: it could not be made.
        """
        if spec.filled or spec.image.startswith(IN_ENGINE):
            raise UserError(f"{spec.image}: bubblewrap has no images; start Docker and use --sandbox docker")
        recipe = recipes.load(spec.image)
        mounts = (*spec.mounts, *_socket_folder(spec), *recipe.shown, *find_host_files(recipe))
        beside = _find_runtime(spec.runtime)
        known = {mount.target for mount in mounts}
        shown = replace(spec, mounts=(*mounts, *(mount for mount in beside if mount.target not in known)))
        sandbox = await make_or_dispose(lambda: self._make(shown, recipe.user), BubblewrapSandbox.close)
        try:
            yield sandbox
        finally:
            await finish_work(sandbox.close)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox of this user that carries all of ``labels``; return their number."""
        return await asyncio.to_thread(scratch.reap, labels)

    async def reap_left(self, labels: Mapping[str, str]) -> int:
        """Do the same with those whose owners have ended; leave those of living processes alone."""
        return await asyncio.to_thread(scratch.reap, labels, only_left=True)

    def _make(self, spec: SandboxSpec, gid: int) -> "BubblewrapSandbox":
        name = scratch.fresh_name()
        group = cgroups.group(name) if self.grouped else None
        folders = [str(path) for path in group.folders] if group else []
        note = scratch.Note({**spec.labels, **label_owner()}, folders, os.getpid())
        # Inside the user namespace of an ordinary user's sandbox its id is its own, whatever it is.
        user = lease_user() if self._privileged else None
        uid = user.uid if user else gid
        inside = Confinement(
            bwrap=self._bwrap,
            scratch=scratch.scratch_of(name),
            mounts=spec.mounts,
            uid=uid,
            gid=gid,
            entrances=group.entrances if group else (),
            privileged=self._privileged,
            capable=not Path(self._bwrap).stat().st_mode & stat.S_ISUID,
            pids=spec.pids,
            memory_mb=spec.memory_mb,
            disk_mb=spec.disk_mb,
        )
        sandbox = BubblewrapSandbox(inside, group, user, self._seccomp, spec.lifetime_s)
        try:
            inside.scratch.create(note, spec.disk_mb, uid, gid, bounded=self._privileged)
            if group:
                group.create(cgroups.GroupLimits(spec.pids + _BWRAP_PIDS, spec.memory_mb, spec.cpus))
        except BaseException:
            sandbox.close()
            raise
        return sandbox


class BubblewrapSandbox:
    """One sandbox: only its folders last from command to command."""

    def __init__(
        self,
        inside: Confinement,
        group: cgroups.ControlGroup | None,
        user: UserLease | None,
        seccomp: bytes,
        lifetime_s: float,
    ) -> None:
        self._inside = inside
        self._group = group
        self._user = user
        self._seccomp = seccomp
        self._ends_at = time.monotonic() + lifetime_s
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
        """Run a command to its end, or kill all of it.

        Raises:
            Infrastructure: the sandbox is closed, its lifetime is over, or bubblewrap itself failed.
        """
        left_s = self._remaining()
        output = Output(output_limit)
        killed_before = self._group.out_of_memory_kills() if self._group else 0
        started = time.monotonic()

        limit_s = min(timeout_s, left_s)
        # The kernel ends bwrap with its parent only after its first milliseconds; the program also ends by itself.
        bounded = ["/usr/bin/timeout", "-s", "KILL", "--", f"{limit_s + _OWN_END_S:.3f}"]
        bounded += limit_command(argv, processor_s)
        meter = ProcessorMeter(processor_s, self._processor_s)
        await meter.begin()

        program = self._inside.program(bounded, cwd, env or {})
        running = asyncio.ensure_future(run(program, self._seccomp, stdin, limit_s, output))

        async def end() -> None:
            running.cancel()

        async with meter.watching(end):
            over_disk = await self._watch_disk_use(running)
        seconds = time.monotonic() - started
        if over_disk:
            return Completed(_KILLED, bytes(output.kept) + _OVER_DISK, output.truncated, seconds=seconds)
        used_s = await meter.used_s()
        if meter.over:
            return out_of_processor(output, seconds, used_s)
        ended = running.result()
        if ended.timed_out and timeout_s > left_s:
            raise Infrastructure("the sandbox's lifetime is over")
        if processor_s is not None and ended.exit_code == SIGNALLED:
            return out_of_processor(output, seconds, used_s)
        killed = self._group is not None and self._group.out_of_memory_kills() > killed_before
        return replace(_to_completed(ended, output, killed=killed, seconds=seconds), processor_s=used_s)

    async def put(self, files: Snapshot, target: str) -> None:
        """Write the files below ``target``, as the sandbox's user."""
        await transfer.put(self, files, target)

    async def halt(self) -> None:
        """Do nothing: no program outlives the command that started it."""

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> dict[str, Entry]:
        """Return the contents of a folder."""
        return await transfer.get(self, source, limit_bytes=limit_bytes, exclude=exclude)

    def prove(self) -> None:
        """Run ``true`` and wait for it, without an event loop.

        Raises:
            Infrastructure: it did not run.
        """
        program = self._inside.program(["true"], "/work", {})
        seccomp_fd = memory_file(self._seccomp)
        options_fd = memory_file(program.options(seccomp_fd, _STDERR))
        try:
            done = subprocess.run(
                program.command(options_fd),
                pass_fds=[seccomp_fd, options_fd],
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROOF_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Infrastructure(f"bubblewrap does not start: {error}") from error
        finally:
            os.close(seccomp_fd)
            os.close(options_fd)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise Infrastructure(f"bubblewrap cannot confine a program here: {said[-300:]}")

    def close(self) -> None:
        """Kill all processes and remove the folders; the second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._group is not None:
            self._group.remove()
        self._inside.scratch.remove()
        if self._user is not None:
            self._user.close()

    def _remaining(self) -> float:
        if self._closed or not self._inside.scratch.folder.exists():
            raise Infrastructure("the sandbox is closed")
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise Infrastructure("the sandbox's lifetime is over")
        return left_s

    async def _processor_s(self) -> float | None:
        return None if self._group is None else self._group.processor_s()

    async def _watch_disk_use(self, running: "asyncio.Future[ConfinedResult]") -> bool:
        """Wait for the program; return whether it was killed because it had written too much."""
        bounded_by_kernel = self._inside.privileged
        try:
            while not running.done():
                await asyncio.wait([running], timeout=None if bounded_by_kernel else _WATCH_EVERY_S)
                if not bounded_by_kernel and await asyncio.to_thread(self._over_disk):
                    running.cancel()
                    await asyncio.wait([running])
                    return True
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait([running])
        return False

    def _over_disk(self) -> bool:
        size, count = self._inside.scratch.usage()
        bound = self._inside.disk_mb * 1024 * 1024
        return size > bound or count * scratch.BYTES_PER_FILE > bound


def _to_completed(ended: ConfinedResult, output: Output, *, killed: bool, seconds: float) -> Completed:
    kept = output.result(ended.exit_code)
    if ended.timed_out:
        return Completed(_TIMED_OUT, kept, output.truncated, timed_out=True, seconds=seconds)
    if ended.exit_code is None and not killed:
        said = output.said.decode("utf-8", "replace").strip() or "it said nothing"
        raise Infrastructure(f"bubblewrap could not start a program: {said[:500]}")
    exit_code = _KILLED if ended.exit_code is None else ended.exit_code
    out_of_memory = killed and exit_code == _KILLED
    return Completed(exit_code, kept, output.truncated, out_of_memory=out_of_memory, seconds=seconds)


def _socket_folder(spec: SandboxSpec) -> list[Mount]:
    """Return the folder of the shared socket: the socket itself may be made again."""
    shared = spec.socket
    return [Mount(shared.source.parent, os.path.dirname(shared.target))] if shared else []  # noqa: PTH120


def _find_runtime(image: str) -> list[Mount]:
    """Return the files of the recipe of an agent's own image; raise as ``find_host_files``."""
    if not image:
        return []
    recipe = recipes.load(image)
    return [*recipe.shown, *find_host_files(recipe)]


def find_host_files(recipe: recipes.Recipe) -> list[Mount]:
    """Return the host files that the recipe needs beside ``/usr``, which every sandbox shows.

    Raises:
        UserError: the host lacks some of the files.
    """
    path = search_path()
    found = {pattern: sorted(map(str, Path("/").glob(pattern.lstrip("/")))) for pattern in recipe.files}
    missing = [command for command in recipe.commands if shutil.which(command, path=path) is None]
    missing += [pattern for pattern, files in found.items() if not files]
    if missing:
        where = Path(recipe.folder, "sandbox.toml")
        raise UserError(f"{where}: this host lacks {', '.join(missing)}: install them, or start Docker")
    beside = [file for files in found.values() for file in files if not file.startswith("/usr/")]
    return [Mount(Path(file), file) for file in beside]
