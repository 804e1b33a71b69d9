"""The engine that needs no daemon: every command is a fresh ``bwrap`` process over one sandbox's own folders.

The only part of the host in view is ``/usr`` (and the interpreter, if it lies elsewhere). Home folders, ``/run``,
``/var`` and the environment are hidden. The program is never root. If dgm runs as root, it changes the program's uid
for real before the start; an ordinary user's program gets a user namespace.

Every process of a command is gone when the command ends, because it lives in a process namespace of its own. Each
command also has its own loopback. If the host's process dies, the kernel ends the command, and ``reap`` removes the
folders.
"""

import asyncio
import contextlib
import os
import shutil
import stat
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dgm.domain import Entry, Snapshot
from dgm.errors import Infrastructure, UserError
from dgm.protocols import Completed, Mount, SandboxSpec
from dgm.sandboxes import recipes, transfer, users
from dgm.sandboxes.confined import (
    SIGNALLED,
    TIMED_OUT,
    ConfinedResult,
    Output,
    limit_command,
    out_of_processor,
    run,
)
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.owners import label_owner
from dgm.sandboxes.scratch import (
    BYTES_PER_FILE,
    WRITABLE,
    ControlGroup,
    Note,
    Scratch,
    find_groups,
    new_scratch,
    reap,
)
from dgm.sandboxes.seccomp import filter_program
from dgm.sandboxes.threads import finish_work, make_or_dispose

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_ALIASES = "/opt/dgm-bin"
"""Folder for ``python`` where the host calls it ``python3`` only."""
_TOP_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_KEEPS = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
_LIMITS_WATCHES = ("CAP_SYS_RESOURCE", "CAP_SETPCAP")
_WATCHES = '{ echo 24 >/proc/sys/user/max_inotify_instances; } 2>/dev/null; exec "$@"'
"""Command that bounds the inotify instances of its user namespace: an ordinary user has 128 (by default) for all."""
_JOIN = 'if [ "$1" ]; then echo $$ > "$1" || exit 125; fi; shift; ulimit -c 0; ulimit -n 1024; exec "$@"'
_MIB = 1024 * 1024
_BWRAP_PIDS = 7
"""Processes of bubblewrap and the timeout in a control group, for three commands at once."""
_WATCH_EVERY_S = 0.25
_PROOF_S = 10.0
_GRACE_S = 1.0
_KILLED = 137
_OVER_DISK = b"\nkilled: the sandbox wrote more than its disk_mb\n"


class BubblewrapEngine:
    """An engine that opens sandboxes with bubblewrap.

    Attributes:
        bounds: the mechanism that bounds a program's processes and memory, in a word or two.
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
        self._groups = find_groups()
        self.bounds = "control groups" if self._groups else "resource limits"
        self._seccomp = filter_program()

    def prove(self) -> None:
        """Start a trivial program, because namespaces may be forbidden even if bubblewrap is installed.

        Raises:
            Infrastructure: it cannot be confined here; the message quotes bubblewrap.
        """
        sandbox = self._make(SandboxSpec(image=""), users.SANDBOX_GID)
        try:
            with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop
                proof = thread.submit(
                    lambda: asyncio.run(sandbox.exec(["true"], timeout_s=_PROOF_S))
                ).result()
        finally:
            sandbox.close()
        if proof.exit_code:
            message = proof.output.decode("utf-8", "replace").strip() or f"exit {proof.exit_code}"
            raise Infrastructure(f"bubblewrap cannot confine a program here: {message[-300:]}")

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator["BubblewrapSandbox"]:
        """Open a fresh sandbox, and remove it when the context ends.

        Raises:
            UserError: there is no such recipe, the host lacks a command that it needs, or only Docker can run it.
            Infrastructure: it could not be made.
        """
        if spec.filled or spec.image.startswith(IN_ENGINE):
            raise UserError(
                f"{spec.image}: bubblewrap has no images; start Docker, and set sandbox to docker"
            )
        recipe = recipes.load(spec.image)
        mounts = [*spec.mounts, *recipe.shown, *find_host_files(recipe)]
        if spec.socket:
            mounts.append(Mount(spec.socket.source.parent, str(Path(spec.socket.target).parent)))
        if spec.runtime:
            runtime = recipes.load(spec.runtime)
            targets = {mount.target for mount in mounts}
            beside = (*runtime.shown, *find_host_files(runtime))
            mounts += [mount for mount in beside if mount.target not in targets]
        shown = replace(spec, mounts=mounts)
        sandbox = await make_or_dispose(lambda: self._make(shown, recipe.user), BubblewrapSandbox.close)
        try:
            yield sandbox
        finally:
            await finish_work(sandbox.close)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox of this user that carries all of ``labels``; return their number."""
        return await asyncio.to_thread(reap, labels)

    async def reap_left(self, labels: Mapping[str, str]) -> int:
        """Do the same with those whose owners have ended; leave those of living processes alone."""
        return await asyncio.to_thread(reap, labels, only_left=True)

    def _make(self, spec: SandboxSpec, gid: int) -> "BubblewrapSandbox":
        folder = new_scratch()
        group = ControlGroup(self._groups / folder.name) if self._groups else None
        # Inside the user namespace of an ordinary user's sandbox its id is its own, whatever it is.
        user = users.lease_user() if self._privileged else None
        confinement = Confinement(
            bwrap=self._bwrap,
            scratch=folder,
            group=group,
            spec=spec,
            uid=user.uid if user else gid,
            gid=gid,
            privileged=self._privileged,
            capable=not Path(self._bwrap).stat().st_mode & stat.S_ISUID,
        )
        sandbox = BubblewrapSandbox(confinement, user, self._seccomp)
        note = Note({**spec.labels, **label_owner()}, group, os.getpid())
        try:
            folder.create(note, spec.disk_mb, confinement.uid, gid, bounded=self._privileged)
            if group:
                group.create(pids=spec.pids + _BWRAP_PIDS, memory_mb=spec.memory_mb, cpus=spec.cpus)
        except BaseException:
            sandbox.close()
            raise
        return sandbox


class BubblewrapSandbox:
    """One sandbox: only its folders last from command to command."""

    def __init__(self, confinement: "Confinement", user: users.UserLease | None, seccomp: bytes) -> None:
        self._confinement = confinement
        self._group = confinement.group
        self._scratch = confinement.scratch
        self._user = user
        self._seccomp = seccomp
        self._ends_at = time.monotonic() + confinement.spec.lifetime_s
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
        kills = self._group.count_memory_kills() if self._group else 0
        used_s = self._group.processor_s() if self._group else 0.0
        started = time.monotonic()

        limit_s = min(timeout_s, left_s)
        # The kernel ends bwrap with its parent only after its first milliseconds; the program also ends by itself.
        bounded = ["/usr/bin/timeout", "-s", "KILL", "--", f"{limit_s + _GRACE_S:.3f}"]
        bounded += limit_command(argv, processor_s)
        running = asyncio.ensure_future(
            run(
                self._confinement.options,
                partial(self._confinement.command, bounded, cwd, env or {}),
                self._seccomp,
                stdin=stdin,
                timeout_s=limit_s,
                output=output,
            )
        )
        over_disk = await self._watch_disk_use(running)

        seconds = time.monotonic() - started
        measured_s = self._group.processor_s() - used_s if self._group else None
        if over_disk:
            return Completed(_KILLED, bytes(output.kept) + _OVER_DISK, output.truncated, seconds=seconds)
        ended = running.result()
        if ended.timed_out and timeout_s > left_s:
            raise Infrastructure("the sandbox's lifetime is over")
        if processor_s is not None and ended.exit_code == SIGNALLED:
            return out_of_processor(output, seconds, measured_s)
        killed = self._group is not None and self._group.count_memory_kills() > kills
        return replace(_to_completed(ended, output, killed=killed, seconds=seconds), processor_s=measured_s)

    async def put(self, files: Snapshot, target: str) -> None:
        """Write the files below ``target``, as the sandbox's user."""
        await transfer.put(self, files, target)

    async def halt(self) -> None:
        """Do nothing: no program outlives the command that started it."""

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> dict[str, Entry]:
        """Return the contents of a folder."""
        return await transfer.get(self, source, limit_bytes=limit_bytes, exclude=exclude)

    def close(self) -> None:
        """Kill all processes and remove the folders; the second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._group is not None:
            self._group.remove()
        self._scratch.remove()
        if self._user is not None:
            self._user.close()

    def _remaining(self) -> float:
        if self._closed or not self._scratch.folder.exists():
            raise Infrastructure("the sandbox is closed")
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise Infrastructure("the sandbox's lifetime is over")
        return left_s

    async def _watch_disk_use(self, running: "asyncio.Future[ConfinedResult]") -> bool:
        """Wait for the program; return whether it was killed because it had written too much."""
        bounded_by_kernel = self._confinement.privileged
        try:
            while not running.done():
                await asyncio.wait([running], timeout=None if bounded_by_kernel else _WATCH_EVERY_S)
                if not bounded_by_kernel and await asyncio.to_thread(self._over_disk):
                    return True
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait([running])
        return False

    def _over_disk(self) -> bool:
        size, count = self._scratch.usage()
        return max(size, count * BYTES_PER_FILE) > self._confinement.spec.disk_mb * _MIB


def _to_completed(ended: ConfinedResult, output: Output, *, killed: bool, seconds: float) -> Completed:
    kept = output.result(ended.exit_code)
    if ended.timed_out:
        return Completed(TIMED_OUT, kept, output.truncated, timed_out=True, seconds=seconds)
    if ended.exit_code is None and not killed:
        message = output.said.decode("utf-8", "replace").strip() or "without a message"
        raise Infrastructure(f"bubblewrap could not start a program: {message[:500]}")
    exit_code = _KILLED if ended.exit_code is None else ended.exit_code
    out_of_memory = killed and exit_code == _KILLED
    return Completed(exit_code, kept, output.truncated, out_of_memory=out_of_memory, seconds=seconds)


@dataclass(frozen=True, slots=True)
class Confinement:
    """The constant properties of a sandbox, common to all its commands."""

    bwrap: str
    """Path of bubblewrap."""
    scratch: Scratch
    group: ControlGroup | None
    """Control group to join; without one, resource limits bound the program."""
    spec: SandboxSpec
    uid: int
    gid: int
    privileged: bool
    capable: bool
    """Whether bubblewrap gives an ordinary user's program capabilities in its namespace; a setuid one does not."""

    def options(self, seccomp_fd: int, status_fd: int) -> bytes:
        """Return the contents of the file with bubblewrap's options."""
        words = [
            "--die-with-parent", "--new-session", "--clearenv",
            *self._identity(),
            *_system(self.scratch),
            *self._folders(),
            "--seccomp", str(seccomp_fd), "--json-status-fd", str(status_fd),
            *(part for item in _environment().items() for part in ("--setenv", *item)),
        ]  # fmt: skip
        return b"".join(os.fsencode(word) + b"\0" for word in _check_words(words))

    def command(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], options_fd: int) -> list[str]:
        """Return the command line, which shows nothing of the host to the program.

        The program's variables are set after the switch to its user: some tell a program what to load.
        """
        words = [
            "/bin/sh", "-c", _JOIN, "sh", str(self.group.folder / "cgroup.procs") if self.group else "",
            self.bwrap, "--args", str(options_fd), *self.scratch.mark,
            "--", *self._user_switch(), "/usr/bin/env", "-C", cwd, "--",
            *(f"{name}={value}" for name, value in env.items()), *argv,
        ]  # fmt: skip
        return _check_words(words)

    def _identity(self) -> list[str]:
        parts = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        if self.privileged:
            # A user namespace made by root would map the sandbox's user to the host's root.
            parts += ["--cap-drop", "ALL"]
        else:
            parts += ["--unshare-user", "--uid", str(self.uid), "--gid", str(self.gid)]
        keeps = _KEEPS if self.privileged else _LIMITS_WATCHES if self.capable else ()
        for capability in keeps:
            parts += ["--cap-add", capability]
        return [*parts, "--hostname", "localhost"]

    def _folders(self) -> list[str]:
        parts = ["--dev-bind", str(self.scratch.terminals), "/dev/pts"] if self.privileged else []
        for name, target in WRITABLE.items():
            parts += ["--bind", str(self.scratch.disk / name), target]
        for mount in self.spec.mounts:
            # Only root can enter the parent folders that bubblewrap makes itself.
            for folder in reversed(Path(mount.target).parents[:-1]):
                parts += ["--dir", str(folder)]
            parts += ["--ro-bind", str(mount.source), mount.target]
        return [*parts, "--remount-ro", "/dev", "--remount-ro", "/"]

    def _user_switch(self) -> list[str]:
        """Return the arguments that switch the program to the sandbox's user, inside."""
        limits = ["/usr/bin/prlimit", f"--sigpending={users.SIGNALS}", f"--msgqueue={users.QUEUE_BYTES}"]
        if not self.group:
            # Not the address space, of which Java and Node.js reserve gigabytes that they never use.
            limits += [f"--nproc={self.spec.pids}", f"--data={self.spec.memory_mb * _MIB}"]
        if self.privileged:
            user = [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
            return [*limits, "--", "/usr/bin/setpriv", *user, "--inh-caps=-all", "--bounding-set=-all", "--"]
        limits.append(f"--fsize={self.spec.disk_mb * _MIB}")
        if not self.capable:
            return [*limits, "--"]
        gone = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--"]
        return [*limits, "--", "/bin/sh", "-c", _WATCHES, "sh", "/usr/bin/setpriv", *gone]


def _check_words(words: list[str]) -> list[str]:
    """Return the words; raise ``UserError`` if one holds a zero byte, which would make it several for bubblewrap."""
    for word in words:
        if "\0" in word:
            raise UserError(
                f"a sandbox's command, variable or path holds a zero byte: {word[:80]!r}: remove it"
            )
    return words


def _interpreter_prefix() -> Path | None:
    """Return the folder of the running Python, if ``/usr`` has none."""
    return None if shutil.which("python3", path=SEARCH_PATH) else Path(sys.base_prefix)


def _search_path() -> str:
    prefix = _interpreter_prefix()
    return f"{prefix}/bin:{SEARCH_PATH}" if prefix else SEARCH_PATH


def _environment() -> dict[str, str]:
    return {"PATH": f"{_search_path()}:{_ALIASES}", "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}


def _system(folders: Scratch) -> list[str]:
    parts = ["--ro-bind", "/usr", "/usr"]
    for name in _TOP_LINKS:
        top = Path("/") / name
        if top.is_symlink():
            parts += ["--symlink", str(top.readlink()), str(top)]
        elif top.is_dir():
            parts += ["--ro-bind", str(top), str(top)]
    parts += ["--dir", "/etc"]
    for shared in ("/etc/ld.so.cache", "/etc/alternatives"):
        parts += ["--ro-bind-try", shared, shared]
    for made in sorted(folders.etc.iterdir()):
        parts += ["--ro-bind", str(made), f"/etc/{made.name}"]
    prefix = _interpreter_prefix()
    if prefix:
        parts += ["--ro-bind", str(prefix), str(prefix)]
    python = shutil.which("python3", path=_search_path())
    if python and not shutil.which("python", path=_search_path()):
        parts += ["--dir", "/opt", "--dir", _ALIASES, "--symlink", python, f"{_ALIASES}/python"]
    return [*parts, "--proc", "/proc", "--dev", "/dev"]


def find_host_files(recipe: recipes.Recipe) -> list[Mount]:
    """Return the host files that the recipe needs beside ``/usr``, which every sandbox shows.

    Raises:
        UserError: the host lacks some of the files.
    """
    path = _search_path()
    matches = {pattern: sorted(map(str, Path("/").glob(pattern.lstrip("/")))) for pattern in recipe.files}
    missing = [command for command in recipe.commands if shutil.which(command, path=path) is None]
    missing += [pattern for pattern, files in matches.items() if not files]
    if missing:
        file = Path(recipe.folder, "sandbox.toml")
        raise UserError(f"{file}: this host lacks {', '.join(missing)}: install them, or start Docker")
    beside = [file for files in matches.values() for file in files if not file.startswith("/usr/")]
    return [Mount(Path(file), file) for file in beside]
