"""What one bubblewrap sandbox has on the host: its folder, its control group, and a note by which both are removed.

For root the folder holds a tmpfs of the allowed size, so that the kernel itself bounds it. For an ordinary user it is a
plain folder, and a watcher checks ``usage``. Control groups are those of version 2, which only root can make. Without
one, resource limits bound each program.
"""

import contextlib
import ctypes
import json
import logging
import os
import secrets
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dgm.errors import Infrastructure
from dgm.sandboxes.owners import LABEL, has_ended

log = logging.getLogger(__name__)

WRITABLE = {"work": "/work", "agent": "/agent", "job": "/job", "tmp": "/tmp", "shm": "/dev/shm"}
"""Folder of the scratch space → its path inside a sandbox."""
BYTES_PER_FILE = 4096
"""Minimum size of a file for the disk bound, so that the number of empty files is bounded too."""
_GROUPS = Path("/sys/fs/cgroup")
_CONTROLLERS = {"cpu", "memory", "pids"}
_PERIOD_US = 100_000
_GONE_WITHIN_S = 5.0
_MIB = 1024 * 1024
_NOSUID, _NODEV, _NOEXEC, _DETACH = 2, 4, 8, 2
_TERMINALS = 64
"""Pseudo-terminals of a sandbox: all those of a machine together have about 3,000."""
_NOTE = "sandbox.json"


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A control group: the only hard bound on the processes, memory and processors of all programs together."""

    folder: Path

    def create(self, *, pids: int, memory_mb: int, cpus: float) -> None:
        """Create the group; raise ``Infrastructure`` if the kernel refuses."""
        limits = {
            "pids.max": str(pids),
            "memory.max": str(memory_mb * _MIB),
            "memory.swap.max": "0",
            "cpu.max": f"{int(cpus * _PERIOD_US)} {_PERIOD_US}",
        }
        try:
            self.folder.mkdir()
            for name, value in limits.items():
                if (self.folder / name).exists():
                    (self.folder / name).write_text(value)
        except OSError as error:
            raise Infrastructure(f"cannot make the control group {self.folder.name}: {error}") from error

    def count_memory_kills(self) -> int:
        """Return how many processes of the group the kernel has killed so far for lack of memory."""
        return self._read_counter("memory.events", "oom_kill")

    def processor_s(self) -> float:
        """Return the processor seconds of all the group's processes so far."""
        return self._read_counter("cpu.stat", "usage_usec") / 1e6

    def remove(self) -> None:
        """Kill all processes in the group and remove it; raise ``Infrastructure`` if they do not go away."""
        deadline = time.monotonic() + _GONE_WITHIN_S
        while self.folder.exists():
            self._kill()
            try:
                self.folder.rmdir()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise Infrastructure(f"cannot remove the control group {self.folder}: {error}") from error
                time.sleep(0.002)

    def _read_counter(self, file: str, key: str) -> int:
        with contextlib.suppress(OSError):
            counters = dict(line.split(" ", 1) for line in (self.folder / file).read_text().splitlines())
            return int(counters.get(key, 0))
        return 0

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            if (self.folder / "cgroup.kill").exists():  # since Linux 5.14
                (self.folder / "cgroup.kill").write_text("1")
                return
            for pid in (self.folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


def find_groups() -> Path | None:
    """Return the folder in which this process can make control groups; None if it cannot."""
    groups = _GROUPS / "dgm"
    if os.geteuid() != 0 or not (_GROUPS / "cgroup.controllers").exists():
        return None
    try:
        for folder in (_GROUPS, groups):
            folder.mkdir(exist_ok=True)
            enabled = folder / "cgroup.subtree_control"
            if not set(enabled.read_text().split()) >= _CONTROLLERS:
                enabled.write_text(" ".join(f"+{controller}" for controller in sorted(_CONTROLLERS)))
    except OSError:
        return None
    return groups


@dataclass(frozen=True, slots=True)
class Scratch:
    """One sandbox's folder on the host."""

    folder: Path

    @property
    def name(self) -> str:
        """The folder's name, unique on this host."""
        return self.folder.name

    @property
    def mark(self) -> tuple[str, str]:
        """Options of bubblewrap that change nothing, by which ``reap`` finds its processes."""
        return "--unsetenv", self.name

    @property
    def disk(self) -> Path:
        """The folder that holds the writable folders."""
        return self.folder / "disk"

    @property
    def terminals(self) -> Path:
        """The folder of its pseudo-terminals, which are bounded if the disk is."""
        return self.folder / "pts"

    @property
    def etc(self) -> Path:
        """The folder that holds the few made-up files of ``/etc``."""
        return self.folder / "etc"

    def create(self, note: "Note", disk_mb: int, uid: int, gid: int, *, bounded: bool) -> None:
        """Make the folder, its note first; ``bounded`` (root only) as a tmpfs of ``disk_mb`` for ``uid``.

        Raises:
            Infrastructure: the disk is full, or the kernel refused the mount.
        """
        try:
            self.folder.mkdir(mode=0o700)
            note.write(self.folder)
            self.disk.mkdir(mode=0o700)
            if bounded:
                files = disk_mb * _MIB // BYTES_PER_FILE
                _mount("tmpfs", self.disk, _NOSUID | _NODEV, f"size={disk_mb}m,nr_inodes={files},mode=0755")
                self.terminals.mkdir()
                options = f"newinstance,ptmxmode=0666,mode=0620,max={_TERMINALS}"
                _mount("devpts", self.terminals, _NOSUID | _NOEXEC, options)
            for name in WRITABLE:
                (self.disk / name).mkdir(mode=0o755)
                if bounded:
                    os.chown(self.disk / name, uid, gid)
            self.etc.mkdir()
            _write_etc(self.etc, uid, gid)
        except OSError as error:
            raise Infrastructure(f"cannot prepare the sandbox folder {self.folder}: {error}") from error

    def usage(self) -> tuple[int, int]:
        """Return the current bytes and files in the writable folders."""
        size = count = 0
        folders = [os.fspath(self.disk)]
        while folders:
            # Entries that vanish or cannot be entered meanwhile are not counted.
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    count += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        return size, count

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        for folder in (self.disk, self.terminals):
            _libc().umount2(os.fsencode(folder), _DETACH)
        with contextlib.suppress(FileNotFoundError):
            try:
                shutil.rmtree(self.folder)
            except PermissionError:
                _open_folders(self.folder)
                shutil.rmtree(self.folder)


@dataclass(frozen=True, slots=True)
class Note:
    """What a later process needs to clean up after a sandbox."""

    labels: Mapping[str, str]
    group: ControlGroup | None
    pid: int

    def write(self, folder: Path) -> None:
        """Write the note into a sandbox's folder, in one step."""
        groups = [str(self.group.folder)] if self.group else []
        text = json.dumps({"labels": dict(self.labels), "groups": groups, "pid": self.pid})
        partial = folder / f"{_NOTE}.partial"
        partial.write_text(text, encoding="utf-8")
        partial.rename(folder / _NOTE)


def base_folder() -> Path:
    """Return the folder of all sandboxes of this user.

    Raises:
        Infrastructure: another user put something there.
    """
    folder = Path(tempfile.gettempdir()) / f"dgm-sandboxes-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise Infrastructure(f"{folder} is not a private folder of this user: remove it, or set TMPDIR")
    return folder


def new_scratch() -> Scratch:
    """Return the folder of a new sandbox, without creating it."""
    return Scratch(base_folder() / f"dgm-{secrets.token_hex(8)}")


def list_sandboxes() -> list[tuple[Scratch, Note]]:
    """Return all existing sandboxes of this user whose notes are written."""
    sandboxes = []
    for folder in base_folder().glob("dgm-*"):
        with contextlib.suppress(FileNotFoundError):
            values = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
            group = ControlGroup(Path(values["groups"][0])) if values["groups"] else None
            sandboxes.append((Scratch(folder), Note(values["labels"], group, values["pid"])))
    return sandboxes


def reap(labels: Mapping[str, str], *, only_left: bool = False) -> int:
    """Remove every sandbox of this user that carries all of ``labels``; return their number.

    With ``only_left``, those of living processes are left alone.
    """
    count = 0
    for scratch, note in list_sandboxes():
        if only_left and not has_ended(note.labels.get(LABEL, "")):
            continue
        if note.labels.items() >= labels.items():
            log.info("removing the sandbox %s that process %d left", scratch.name, note.pid)
            _kill_marked(scratch)
            if note.group:
                note.group.remove()
            scratch.remove()
            count += 1
    return count


def _write_etc(folder: Path, uid: int, gid: int) -> None:
    for name, text in {
        "passwd": f"root:x:0:0::/nonexistent:/bin/false\nagent:x:{uid}:{gid}::/tmp:/bin/bash\n",
        "group": f"root:x:0:\nagent:x:{gid}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }.items():
        (folder / name).write_text(text, encoding="ascii")
        (folder / name).chmod(0o644)


def _mount(kind: str, target: Path, flags: int, options: str) -> None:
    name = kind.encode()
    if _libc().mount(name, os.fsencode(target), name, flags, options.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount of a {kind} refused: {os.strerror(code)}", os.fspath(target))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _open_folders(top: Path) -> None:
    """Make every folder accessible again: an agent may have closed its own to everybody, itself included."""
    folders = [os.fspath(top)]
    while folders:
        folder = Path(folders.pop())
        folder.chmod(0o700)
        with os.scandir(folder) as entries:
            folders += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def _kill_marked(scratch: Scratch) -> None:
    """Kill bubblewrap's processes of a sandbox, which carry its mark; the rest dies with them."""
    mark = b"\0".join(map(os.fsencode, ("", *scratch.mark, "")))
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
