"""The call of bubblewrap that confines one program: its view, its user and its permissions.

The only part of the host in view is ``/usr`` (and the interpreter, if it lies elsewhere). Home folders, ``/run``,
``/var`` and the environment are hidden. The program is never root. If dgm runs as root, it changes the program's uid
for real before the start; an ordinary user's program gets a user namespace.
"""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.errors import UserError
from dgm.protocols import Mount
from dgm.sandboxes import users
from dgm.sandboxes.scratch import WRITABLE, Scratch

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_TOP_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_KEEPS = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
_LIMITS_WATCHES = ("CAP_SYS_RESOURCE", "CAP_SETPCAP")
_WATCHES = '{ echo 24 >/proc/sys/user/max_inotify_instances; } 2>/dev/null; exec "$@"'
"""Command that bounds the inotify instances of its user namespace: an ordinary user has 128 (by default) for all."""
_JOIN = (
    'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; '
    'ulimit -c 0; ulimit -n 1024; exec "$@"'
)
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Confinement:
    """The constant properties of a sandbox, common to all its commands."""

    bwrap: str
    """Path of bubblewrap."""
    scratch: Scratch
    mounts: Sequence[Mount]
    uid: int
    gid: int
    entrances: Sequence[Path]
    """Control groups to join; without any, resource limits bound the program."""
    privileged: bool
    capable: bool
    """Whether bubblewrap gives an ordinary user's program capabilities in its namespace; a setuid one does not."""
    pids: int
    memory_mb: int
    disk_mb: int

    def program(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> "ConfinedProgram":
        """Return the call that runs a program in the sandbox."""
        return ConfinedProgram(self, argv, cwd, env)

    def options(self, seccomp_fd: int, status_fd: int) -> list[str]:
        """Return bubblewrap's options."""
        return [
            "--die-with-parent", "--new-session", "--clearenv",
            *self._identity(),
            *_system(self.scratch),
            *self._folders(),
            "--seccomp", str(seccomp_fd), "--json-status-fd", str(status_fd),
            *(part for item in _environment().items() for part in ("--setenv", *item)),
        ]  # fmt: skip

    def command(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], options_fd: int) -> list[str]:
        """Return the command line, which shows nothing of the host to the program.

        The program's variables are set after the switch to its user: some tell a program what to load.
        """
        return [
            "/bin/sh", "-c", _JOIN, "sh", *map(str, self.entrances), "--",
            self.bwrap, "--args", str(options_fd), *self.scratch.mark,
            "--", *self._user_switch(), "/usr/bin/env", "-C", cwd, "--",
            *(f"{name}={value}" for name, value in env.items()), *argv,
        ]  # fmt: skip

    def _identity(self) -> list[str]:
        alone = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        if self.privileged:
            # A user namespace made by root would map the sandbox's user to the host's root.
            keeps = [part for capability in _KEEPS for part in ("--cap-add", capability)]
            return [*alone, "--cap-drop", "ALL", *keeps, "--hostname", "localhost"]
        keeps = [part for capability in _LIMITS_WATCHES for part in ("--cap-add", capability)]
        user = ["--unshare-user", "--uid", str(self.uid), "--gid", str(self.gid)]
        return [*alone, *user, *(keeps if self.capable else ()), "--hostname", "localhost"]

    def _folders(self) -> list[str]:
        writable = [
            part
            for name, seen in WRITABLE.items()
            for part in ("--bind", str(self.scratch.disk / name), seen)
        ]
        shown = [
            part
            for mount in self.mounts
            for part in (*_parents(mount.target), "--ro-bind", str(mount.source), mount.target)
        ]
        terminals = ["--dev-bind", str(self.scratch.terminals), "/dev/pts"] if self.privileged else []
        return [*terminals, *writable, *shown, "--remount-ro", "/dev", "--remount-ro", "/"]

    def _user_switch(self) -> list[str]:
        """Return the arguments that switch the program to the sandbox's user, inside."""
        limits = ["/usr/bin/prlimit", f"--sigpending={users.SIGNALS}", f"--msgqueue={users.QUEUE_BYTES}"]
        if not self.entrances:
            limits += [f"--nproc={self.pids}", f"--as={self.memory_mb * _MIB}"]
            limits += [f"--fsize={self.disk_mb * _MIB}"]
        if self.privileged:
            user = [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
            return [*limits, "--", "/usr/bin/setpriv", *user, "--inh-caps=-all", "--bounding-set=-all", "--"]
        if not self.capable:
            return [*limits, "--"]
        gone = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--"]
        return [*limits, "--", "/bin/sh", "-c", _WATCHES, "sh", "/usr/bin/setpriv", *gone]


@dataclass(frozen=True, slots=True)
class ConfinedProgram:
    """One program in a sandbox, as bubblewrap is told."""

    inside: Confinement
    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]

    def options(self, seccomp_fd: int, status_fd: int) -> bytes:
        """Return the contents of the file with bubblewrap's options."""
        words = _check_words(self.inside.options(seccomp_fd, status_fd))
        return b"".join(os.fsencode(word) + b"\0" for word in words)

    def command(self, options_fd: int) -> list[str]:
        """Return the command line."""
        return _check_words(self.inside.command(self.argv, self.cwd, self.env, options_fd))


def _check_words(words: list[str]) -> list[str]:
    """Return the words, none of which may be several for bubblewrap.

    Raises:
        UserError: one holds a zero byte.
    """
    for word in words:
        if "\0" in word:
            raise UserError(
                f"a sandbox's command, variable or path holds a zero byte: {word[:80]!r}: remove it"
            )
    return words


def interpreter_prefix() -> Path | None:
    """Return the folder of the running Python, if ``/usr`` has none."""
    if shutil.which("python3", path=SEARCH_PATH):
        return None
    return Path(sys.base_prefix)


def search_path() -> str:
    """Return ``PATH`` inside the sandbox."""
    prefix = interpreter_prefix()
    return f"{prefix}/bin:{SEARCH_PATH}" if prefix else SEARCH_PATH


def _environment() -> dict[str, str]:
    return {"PATH": search_path(), "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}


def _parents(target: str) -> list[str]:
    """Return arguments that make a mount's parent folders; only root can enter those that bubblewrap makes itself."""
    above = [str(folder) for folder in Path(target).parents if folder != Path("/")]
    return [part for folder in reversed(above) for part in ("--dir", folder)]


def _system(own: Scratch) -> list[str]:
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
    for made in sorted(own.etc.iterdir()):
        parts += ["--ro-bind", str(made), f"/etc/{made.name}"]
    prefix = interpreter_prefix()
    if prefix:
        parts += ["--ro-bind", str(prefix), str(prefix)]
    return [*parts, "--proc", "/proc", "--dev", "/dev"]
