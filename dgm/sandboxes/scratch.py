"""The host folder behind one bubblewrap sandbox: its writable folders, and the note by which it is removed later.

For root the folder holds a tmpfs of the allowed size, so that the kernel itself bounds it. For an ordinary user it is a
plain folder, and a watcher checks ``usage``.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.errors import Infrastructure
from dgm.sandboxes.cgroups import ControlGroup
from dgm.sandboxes.owners import LABEL, has_ended

log = logging.getLogger(__name__)

WRITABLE = {"work": "/work", "agent": "/agent", "job": "/job", "tmp": "/tmp", "shm": "/dev/shm"}
"""Folder of the scratch space → its path inside a sandbox."""
_NOSUID, _NODEV, _NOEXEC, _DETACH = 2, 4, 8, 2
_TERMINALS = 64
"""Pseudo-terminals of a sandbox: all those of a machine together have about 3,000."""
BYTES_PER_FILE = 4096
"""Minimum size of a file for the disk bound, so that the number of empty files is bounded too."""
SANDBOX_GID = 10001
"""Default gid of everything in a sandbox; a recipe may set another."""


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
        """Options of bubblewrap that do nothing, by which the reaper finds the sandbox's keepers."""
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
            _write_note(self.folder, note)
            self.disk.mkdir(mode=0o700)
            if bounded:
                _mount_tmpfs(self.disk, disk_mb)
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
    """The data that a later process needs to clean up after a sandbox."""

    labels: Mapping[str, str]
    groups: Sequence[str]
    pid: int


def base_folder() -> Path:
    """Return the folder of all sandboxes of this user.

    Raises:
        Infrastructure: another user put something there.
    """
    folder = Path(tempfile.gettempdir()) / f"dgm-sandboxes-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise Infrastructure(f"{folder} is not a private folder of this user: remove it, or set TMPDIR")
    return folder


def fresh_name() -> str:
    """Return a name for a new sandbox."""
    return f"dgm-{secrets.token_hex(8)}"


def scratch_of(name: str) -> Scratch:
    """Return the folder of that name, without creating it."""
    return Scratch(base_folder() / name)


def list_sandboxes() -> list[tuple[Scratch, Note]]:
    """Return all existing sandboxes of this user; one whose note cannot be read has no labels."""
    found = []
    for folder in base_folder().glob("dgm-*"):
        with contextlib.suppress(FileNotFoundError):
            found.append((Scratch(folder), _read_note(folder / "sandbox.json")))
    return found


def reap(labels: Mapping[str, str], *, only_left: bool = False) -> int:
    """Remove every sandbox of this user that carries all of ``labels``; return their number.

    With ``only_left``, those of living processes are left alone.
    """
    count = 0
    for place, note in list_sandboxes():
        if only_left and not has_ended(note.labels.get(LABEL, "")):
            continue
        if all(note.labels.get(key) == value for key, value in labels.items()):
            log.info("removing the sandbox %s that process %d left", place.name, note.pid)
            _kill_keepers(place)
            ControlGroup(tuple(Path(folder) for folder in note.groups)).remove()
            place.remove()
            count += 1
    return count


def _write_note(folder: Path, note: Note) -> None:
    text = json.dumps({"labels": dict(note.labels), "groups": list(note.groups), "pid": note.pid})
    partial = folder / "sandbox.json.partial"
    partial.write_text(text, encoding="utf-8")
    partial.rename(folder / "sandbox.json")


def _read_note(path: Path) -> Note:
    values = json.loads(path.read_text(encoding="utf-8"))
    return Note(values["labels"], values["groups"], values["pid"])


def _write_etc(folder: Path, uid: int, gid: int) -> None:
    for name, text in {
        "passwd": f"root:x:0:0::/nonexistent:/bin/false\nagent:x:{uid}:{gid}::/tmp:/bin/bash\n",
        "group": f"root:x:0:\nagent:x:{gid}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }.items():
        (folder / name).write_text(text, encoding="ascii")
        (folder / name).chmod(0o644)


def _mount_tmpfs(target: Path, disk_mb: int) -> None:
    files = disk_mb * 1024 * 1024 // BYTES_PER_FILE
    _mount("tmpfs", target, _NOSUID | _NODEV, f"size={disk_mb}m,nr_inodes={files},mode=0755")


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


def _kill_keepers(place: Scratch) -> None:
    """Kill the keepers of the sandbox's programs, which carry its mark; the rest dies with them."""
    wanted = b"\0".join(map(os.fsencode, ("", *place.mark, "")))
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
